/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/table.h"

#include <stdlib.h>

#include "base/vec.h"
#include "analysis/build.h"

bool hg_report_is_complete(const struct hg_report *r)
{
    return r->complete == r->cells;
}

struct hg_report *hg_report_build(const struct hg_results *sets, size_t n_sets,
                                  const struct hg_report_options *options, struct hg_errs *errs)
{
    static const struct hg_report_options none;
    struct hg_build b = { .options = options ? options : &none, .errs = errs };
    struct hg_report *r = b.r = calloc(1, sizeof *r);
    int rc = -1;

    if (!r) {
        hg_err_oom(hg_errs_next(errs));
        return NULL;
    }
    r->style = b.options->style;
    r->sets = sets;
    r->n_sets = n_sets;
    if (hg_build_entries(&b) == 0 && hg_build_configs(&b) == 0 && hg_build_tables(&b) == 0)
        rc = 0;
    free(b.masked);
    free(b.config_entries);
    HG_VEC_DONE(&b.configs);
    if (rc < 0) {
        hg_report_free(r);
        return NULL;
    }
    return r;
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
