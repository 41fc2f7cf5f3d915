/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_VEC_H
#define HG_BASE_VEC_H

#include <stdlib.h>

#include "base/alloc.h"

/* A growing array inside any struct that has members `items`, `n` and `cap`:
 *
 *     struct { struct hg_axis *items; size_t n, cap; } axes;
 *     struct hg_axis *a = HG_VEC_PUSH(&m->axes);       not initialised
 *     HG_VEC_DONE(&m->axes);                           frees the array, not what items point to
 */
#define HG_VEC_PUSH(v)                                                         \
    (hg_vec_grow((void **)&(v)->items, (v)->n, &(v)->cap, sizeof *(v)->items), \
     &(v)->items[(v)->n++])
#define HG_VEC_DONE(v) (free((v)->items), (v)->items = NULL, (v)->n = 0, (v)->cap = 0)

/* Make room for one more item of `size` bytes. */
static inline void hg_vec_grow(void **items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return;
    *cap = *cap ? *cap * 2 : 8;
    *items = hg_realloc(*items, *cap * size);
}

#endif
