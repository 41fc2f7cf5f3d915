/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/tuples.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void hg_tuples_put(struct hg_tuples *t, const uint32_t *values)
{
    size_t at = hg_map_put(&t->index, values, t->width * sizeof *values, t->n);

    if (at != t->n)
        return;
    hg_vec_grow((void **)&t->values, t->n, &t->cap, (t->width + 1) * sizeof *values);
    if (t->width)
        memcpy(t->values + t->n * t->width, values, t->width * sizeof *values);
    t->n++;
}

size_t hg_tuples_find(const struct hg_tuples *t, const uint32_t *values)
{
    return hg_map_find(&t->index, values, t->width * sizeof *values);
}

static int compare_tuples(const void *pa, const void *pb, void *context)
{
    const struct hg_tuples *t = context;
    const uint32_t *a = pa, *b = pb;

    for (size_t i = 0; i < t->width; i++) {
        int order = hg_frame_compare(t->frame, a[i], b[i]);

        if (order)
            return order;
    }
    return 0;
}

void hg_tuples_sort(struct hg_tuples *t)
{
    size_t n = t->n;

    if (n == 0 || t->width == 0)
        return;
    qsort_r(t->values, n, t->width * sizeof *t->values, compare_tuples, t);
    hg_map_done(&t->index);
    for (size_t i = 0; i < n; i++)
        hg_map_put(&t->index, t->values + i * t->width, t->width * sizeof *t->values, i);
}

void hg_tuples_done(struct hg_tuples *t)
{
    free(t->values);
    hg_map_done(&t->index);
}
