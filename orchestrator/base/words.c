/* SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"

void hg_words_push(struct hg_words *words, const char *word)
{
    *HG_VEC_PUSH(words) = hg_strdup(word);
    /* one place more than n, for the NULL at the end */
    hg_vec_grow((void **)&words->items, words->n, &words->cap, sizeof *words->items);
    words->items[words->n] = NULL;
}

void hg_words_cut(struct hg_words *words, size_t n)
{
    while (words->n > n)
        free(words->items[--words->n]);
    if (words->items)
        words->items[words->n] = NULL;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void hg_words_sort(struct hg_words *words)
{
    if (words->n)
        qsort(words->items, words->n, sizeof *words->items, compare);
}

void hg_words_done(struct hg_words *words)
{
    hg_words_cut(words, 0);
    HG_VEC_DONE(words);
}
