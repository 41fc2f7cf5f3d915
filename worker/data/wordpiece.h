/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer of uncased BERT: text is cleaned, lower-cased, stripped of accents and cut into
 * words and punctuation; each word is cut greedily into the longest pieces that the vocabulary has
 * ("un", "##aff", "##able"). */
#ifndef WK_DATA_WORDPIECE_H
#define WK_DATA_WORDPIECE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The two tokenizers in use agree on nearly every text. They differ in what is odd:
 *                                  HF (Hugging Face, fast)   GOOGLE (the original)
 *   words that become [UNK]        above 100 characters      above 200
 *   "[SEP]" and such in a text     the special token         brackets and letters
 *   private use characters         dropped                   kept
 *   Chinese U+2B820..U+2B91F       parts of words            words of their own
 *   capital sigma ending a word    small sigma               final sigma
 * Which code points are marks, punctuation and control characters says one table, Unicode 8's as in
 * HF's. References that run in Python (Hugging Face's slow tokenizer, the original) ask their
 * Python's Unicode, so they differ in characters that are newer; the slow one also drops code points
 * that are not assigned and has the original's Chinese characters and sigma.
 * Where marks change places in normalization, HF's offsets stay with the place, ours go with the
 * mark. */
enum wk_wordpiece_rules { WK_WORDPIECE_HF, WK_WORDPIECE_GOOGLE };

/* Ids that have a meaning of their own. */
struct wk_wordpiece_special {
    uint32_t pad, unk, cls, sep, mask;
};

/* Tokens of one or more texts. starts and ends count Unicode code points of the original text:
 * token i is text[starts[i]:ends[i]]. */
struct wk_tokens {
    uint32_t *ids, *starts, *ends;
    size_t n, cap;
};
#define WK_TOKENS_INIT \
    {                  \
        0              \
    }

struct wk_wordpiece;

/* Read a vocabulary: one token a line, the line number counted from 0 is the id. Plain or gzip. The
 * result never changes, so threads share it; free it with wk_wordpiece_free. NULL with err set,
 * INPUT: not UTF-8, an empty line, a token given twice, a special token missing, more than 16 MiB. */
struct wk_wordpiece *wk_wordpiece_load(const char *path, struct hg_err *err);

/* The same from memory; name is for messages. */
struct wk_wordpiece *wk_wordpiece_parse(const char *name, const char *text, size_t len,
                                        struct hg_err *err);

void wk_wordpiece_free(struct wk_wordpiece *wp);

/* Number of tokens. */
size_t wk_wordpiece_size(const struct wk_wordpiece *wp);

/* INPUT unless the vocabulary has as many tokens as a model's embedding has rows. */
int wk_wordpiece_check_size(const struct wk_wordpiece *wp, size_t rows, struct hg_err *err);

const struct wk_wordpiece_special *wk_wordpiece_special(const struct wk_wordpiece *wp);

/* The text of a token, lent; NULL if there is no such id. */
const char *wk_wordpiece_token(const struct wk_wordpiece *wp, uint32_t id);

/* Append the tokens of a text of len bytes (no [CLS], no [SEP]). Takes time and memory proportional
 * to the text. Fails with INPUT when the text is not UTF-8 or longer than 1 GiB; out is then as
 * before. */
int wk_wordpiece_encode(const struct wk_wordpiece *wp, enum wk_wordpiece_rules rules,
                        const char *text, size_t len, struct wk_tokens *out, struct hg_err *err);

void wk_tokens_done(struct wk_tokens *t);

#endif
