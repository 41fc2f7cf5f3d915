/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_VEC_H
#define HG_BASE_VEC_H

#include <stdlib.h>

/* A growing array inside any struct that has members `items`, `n` and `cap`:
 *
 *     struct { struct hg_axis *items; size_t n, cap; } axes;
 *     struct hg_axis *a = HG_VEC_PUSH(&m->axes);       NULL when memory is gone; not initialised
 *     HG_VEC_DONE(&m->axes);                           frees the array, not what items point to
 */
#define HG_VEC_PUSH(v)                                                            \
    (hg_vec_grow((void **)&(v)->items, (v)->n, &(v)->cap, sizeof *(v)->items) < 0 \
         ? NULL                                                                   \
         : &(v)->items[(v)->n++])
#define HG_VEC_DONE(v) (free((v)->items), (v)->items = NULL, (v)->n = 0, (v)->cap = 0)

/* Make room for one more item of `size` bytes. Returns 0, or -1 with nothing changed. */
static inline int hg_vec_grow(void **items, size_t n, size_t *cap, size_t size)
{
    size_t bigger = *cap ? *cap * 2 : 8;
    void *grown;

    if (n < *cap)
        return 0;
    grown = realloc(*items, bigger * size);
    if (!grown)
        return -1;
    *items = grown;
    *cap = bigger;
    return 0;
}

#endif
