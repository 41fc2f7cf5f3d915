/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_WORDS_H
#define HG_BASE_WORDS_H

#include <stddef.h>

/* A list of words that ends with NULL, so that it serves as argv. */
struct hg_words {
    char **items;
    size_t n, cap;
};
#define HG_WORDS_INIT \
    {                 \
        0             \
    }

/* Append a copy. */
void hg_words_push(struct hg_words *words, const char *word);
/* Drop all words from the n-th on. */
void hg_words_cut(struct hg_words *words, size_t n);
/* By their bytes. */
void hg_words_sort(struct hg_words *words);
void hg_words_done(struct hg_words *words);

#endif
