/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_TUPLES_H
#define HG_ANALYSIS_TUPLES_H

#include "base/map.h"
#include "results/frame.h"

/* A set of tuples of values of a frame: the keys of tables, rows or columns. Start it with frame and width. */
struct hg_tuples {
    const struct hg_frame *frame;
    size_t width;
    uint32_t *values; /* width to a tuple */
    size_t n, cap;    /* in tuples */
    struct hg_map index;
};

/* Add a tuple if it is new. */
void hg_tuples_put(struct hg_tuples *t, const uint32_t *values);

/* The index of a tuple; HG_MAP_NONE: it is not there. */
size_t hg_tuples_find(const struct hg_tuples *t, const uint32_t *values);

/* Sort them as people expect it. */
void hg_tuples_sort(struct hg_tuples *t);

void hg_tuples_done(struct hg_tuples *t);

#endif
