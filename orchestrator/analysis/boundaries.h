/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_BOUNDARIES_H
#define HG_ANALYSIS_BOUNDARIES_H

#include "base/map.h"
#include "analysis/report.h"

/* In what the results of a cell differ from those of the same cell in the set before: what is no progress though it looks like it. The
 * report has the sets as columns, as for a history. */
struct hg_boundaries {
    const struct hg_report *r;
    size_t *begin, *entries; /* entries that count, by configuration */
    struct hg_map index;     /* of notes */
    struct {
        struct {
            char *text; /* "nightly/004: driver 570 (before 560)" */
            size_t cells;
        } * items;
        size_t n, cap;
    } notes;
};

void hg_boundaries_open(const struct hg_report *r, struct hg_boundaries *b);
void hg_boundaries_close(struct hg_boundaries *b);

/* Append "precision bf16 (before fp32), driver 570 (before 560)": how a row's results in a set differ from those in the last set before it that
 * has any. False: not at all. */
bool hg_boundaries_text(const struct hg_boundaries *b, const struct hg_table *t, size_t row,
                        size_t set, struct hg_buf *out);

/* The newest set, not before `from`, whose results differ from those before it; SIZE_MAX: none. */
size_t hg_boundaries_last(const struct hg_boundaries *b, const struct hg_table *t, size_t row,
                          size_t from);

/* All of them as notes below a listing. */
void hg_boundaries_list(const struct hg_boundaries *b, size_t cells, struct hg_listing *l);

#endif
