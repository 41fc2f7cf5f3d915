/* SPDX-License-Identifier: Apache-2.0 */
/* Question answering data in the JSON of SQuAD v1.1 and v2.0. */
#ifndef WK_DATA_SQUAD_H
#define WK_DATA_SQUAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Larger files are refused; the official training sets have 30 and 42 MB. */
#define WK_SQUAD_BYTES_MAX ((size_t)512 << 20)

/* All strings are UTF-8, end in NUL, and belong to the data set. */
struct wk_squad_paragraph {
    const char *context;
    size_t len; /* bytes */
};

struct wk_squad_answer {
    const char *text;
    size_t len;
    uint32_t start, end; /* code points of the context: context[start:end] is the text */
};

struct wk_squad_question {
    const char *id, *text;
    size_t len;                       /* bytes of text */
    uint32_t paragraph;               /* index */
    uint32_t first_answer, n_answers; /* none: the text does not answer it (v2.0) */
};

struct wk_squad {
    char version[16]; /* as written: "1.1", "v2.0"; "" if absent */
    bool v2;          /* questions without answers belong to it: scored by the rules of v2.0 */
    size_t n_articles, n_paragraphs, n_questions, n_answers;
    struct wk_squad_paragraph *paragraphs;
    struct wk_squad_question *questions; /* in the order of the file */
    struct wk_squad_answer *answers;
    size_t dropped_answers, dropped_questions; /* by skip_bad_answers */
    char *strings;
};

struct wk_squad_options {
    /* Leave out answers that are not at their offset, and questions left with none; do not fail. */
    bool skip_bad_answers;
    /* For scoring, as lenient as the official scripts: only ids and answer texts are needed; offsets are
     * not looked at (all answers have start 0), contexts and questions may be absent. */
    bool answers_only;
};

/* Read a file, plain or gzip; "-" is standard input. Every problem is added to errs with file, line
 * and JSON pointer, INPUT: not JSON, cut off, a member missing or of another type, an id twice, an
 * offset outside the text, an answer that is not what the text has at its offset. Returns 0, or -1
 * with *squad empty; wk_squad_done either way. */
int wk_squad_load(const char *path, const struct wk_squad_options *options, struct wk_squad *squad,
                  struct hg_errs *errs);

/* The same for (unpacked) text in memory; name is for messages. */
int wk_squad_parse(const char *name, const char *text, size_t len,
                   const struct wk_squad_options *options, struct wk_squad *squad,
                   struct hg_errs *errs);

void wk_squad_done(struct wk_squad *squad);

#endif
