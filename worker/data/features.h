/* SPDX-License-Identifier: Apache-2.0 */
/* Features: what a model reads of question answering data. A question and the part of its text that
 * fits become one sequence [CLS] question [SEP] text [SEP]; a longer text becomes several, its
 * windows. */
#ifndef WK_DATA_FEATURES_H
#define WK_DATA_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/squad.h"
#include "data/wordpiece.h"

/* How windows follow each other; `stride` means one thing in one and another in the other.
 *   OVERLAP  As Hugging Face's run_qa: the next window begins `stride` tokens before the end of
 *            this one. The tokenizer's rules are WK_WORDPIECE_HF. A question that leaves too little
 *            room in the sequence is an error.
 *   ADVANCE  As Google's run_squad: the next window begins `stride` tokens (at most a window) after
 *            this one began. The rules are WK_WORDPIECE_GOOGLE. Questions are cut to 64 tokens; a
 *            text without tokens has no window. */
enum wk_windows { WK_WINDOWS_OVERLAP, WK_WINDOWS_ADVANCE };

/* TRUE   The tokens of the first answer, or position 0 ([CLS]) where the window does not hold all
 *        of it. OVERLAP finds them by characters, ADVANCE by words and then the answer's own tokens,
 *        as each reference does. (run_qa itself labels an answer that begins with the very last
 *        token of a window too far to the right; here it has its place.)
 * DUMMY  Position 0 for all, for runs that measure throughput only. */
enum wk_labels { WK_LABELS_TRUE, WK_LABELS_DUMMY };

struct wk_feature_options {
    uint32_t max_length; /* tokens of a sequence, at most */
    uint32_t stride;     /* tokens, see wk_windows */
    enum wk_windows windows;
    enum wk_labels labels;
    size_t questions;                    /* use only the first so many; 0: all */
    bool skip_bad_answers;               /* see struct wk_squad_options; wk_features_open only */
    const char *length_key, *stride_key; /* what the user calls the first two; NULL: as here */
};
#define WK_FEATURE_OPTIONS_INIT          \
    {                                    \
        .max_length = 384, .stride = 128 \
    }

#define WK_FEATURE_LENGTH_MIN 8
#define WK_FEATURE_LENGTH_MAX 65536

struct wk_feature {
    uint32_t question;   /* index */
    uint32_t at, n;      /* its tokens of the text: context_ids[at .. at + n - 1] */
    uint32_t start, end; /* labels: positions in the sequence, both included */
};

struct wk_feature_question {
    uint32_t at, n; /* its tokens: question_ids[at .. at + n - 1] */
};

/* A text's tokens are kept once, however many questions and windows use them. Everything is in one
 * block of memory. */
struct wk_features {
    uint32_t max_length;
    uint32_t pad, cls, sep; /* ids */
    size_t n, n_questions, n_context, n_question_ids;
    const struct wk_feature *items; /* in the order of the questions, windows from left to right */
    const struct wk_feature_question *questions;
    const uint32_t *question_ids, *context_ids;
    const uint32_t *starts, *ends; /* of context_ids, in code points; NULL in synthetic data */
    bool cached;                   /* came from the cache */
    void *memory;
    size_t size; /* bytes of it */
};

/* Called now and then during long work. */
struct wk_progress {
    void (*report)(void *context, size_t done, size_t total);
    void *context;
};

/* Make the features of a data set. progress may be NULL. Fails with INPUT: options that contradict
 * each other, a question that leaves no room. wk_features_done frees it. */
int wk_features_build(const struct wk_squad *squad, const struct wk_wordpiece *wp,
                      const struct wk_feature_options *options, const struct wk_progress *progress,
                      struct wk_features *out, struct hg_err *err);

void wk_features_done(struct wk_features *f);

/* Tokens of feature i with [CLS] and both [SEP]. */
static inline uint32_t wk_feature_length(const struct wk_features *f, size_t i)
{
    return 3 + f->questions[f->items[i].question].n + f->items[i].n;
}

/* Position of the first token of the text in feature i's sequence. */
static inline uint32_t wk_feature_context(const struct wk_features *f, size_t i)
{
    return 2 + f->questions[f->items[i].question].n;
}

/* Write feature i's ids and token types (0: [CLS] question [SEP]; 1: text [SEP]), as many as its
 * length. */
void wk_feature_write(const struct wk_features *f, size_t i, int32_t *ids, int32_t *types);

/* Names of the choices as users write them: "overlap", "advance"; "true", "dummy". NULL-terminated,
 * in enum order. */
extern const char *const wk_windows_names[];
extern const char *const wk_labels_names[];

/* The index of a word in such a list, or -1 with err set: INPUT, `what` names the option. */
int wk_feature_word(const char *const *names, const char *word, const char *what,
                    struct hg_err *err);

#endif
