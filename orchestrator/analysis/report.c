/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/report.h"

#include <stdlib.h>

#include "base/vec.h"
#include "matrix/names.h"

bool hg_report_is_complete(const struct hg_report *r)
{
    return r->complete == r->cells;
}

static void free_table(struct hg_table *t)
{
    free(t->split);
    free(t->rows);
    free(t->columns);
    free(t->points);
    for (size_t i = 0; i < t->notes.n; i++)
        free(t->notes.items[i]);
    HG_VEC_DONE(&t->notes);
    for (size_t i = 0; i < t->remarks.n; i++)
        free(t->remarks.items[i]);
    HG_VEC_DONE(&t->remarks);
    for (size_t i = 0; i < t->series.n; i++) {
        free(t->series.items[i].label);
        free(t->series.items[i].points);
    }
    HG_VEC_DONE(&t->series);
    hg_listings_done(&t->listings);
}

void hg_report_free(struct hg_report *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->tables.n; i++)
        free_table(&r->tables.items[i]);
    HG_VEC_DONE(&r->tables);
    hg_listings_done(&r->listings);
    HG_VEC_DONE(&r->states);
    hg_names_free(r->names);
    hg_frame_done(&r->frame);
    json_decref(r->baseline);
    for (size_t i = 0; r->labels && i < r->n_sets; i++)
        free(r->labels[i]);
    free(r->labels);
    free(r->title);
    free(r->metric);
    free(r->row_keys);
    free(r->column_keys);
    free(r->split_keys);
    free(r->same_keys);
    free(r->entries);
    free(r);
}
