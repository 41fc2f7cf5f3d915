/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cellruns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "analysis/groups.h"

void hg_cellruns_open(const struct hg_report *r, struct hg_cellruns *b)
{
    size_t *of_entry = hg_alloc((r->n_entries + 1) * sizeof *of_entry), n_configs = 0;
    size_t *sorted = hg_alloc((r->n_entries + 1) * sizeof *sorted), n = 0;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        n_configs = e->config >= n_configs ? e->config + 1 : n_configs;
        of_entry[i] = e->shown && !e->state ? e->config : HG_MAP_NONE;
        n += of_entry[i] != HG_MAP_NONE;
    }
    *b = (struct hg_cellruns){ .report = r };
    b->begin = hg_alloc_zeroed(n_configs + 2, sizeof *b->begin);
    b->values = hg_alloc((n + 1) * sizeof *b->values);
    b->set = hg_alloc_zeroed(n_configs + 1, sizeof *b->set);
    for (size_t i = 0; i < r->n_entries; i++)
        b->set[r->entries[i].config] = r->entries[i].set;
    hg_groups_sort(of_entry, r->n_entries, n_configs, b->begin, sorted);
    for (size_t i = 0; i < n; i++)
        b->values[i] = r->entries[sorted[i]].value;
    free(of_entry);
    free(sorted);
}

void hg_cellruns_close(struct hg_cellruns *b)
{
    free(b->values);
    free(b->begin);
    free(b->set);
}

void hg_cellruns_row(const struct hg_cellruns *b, const struct hg_table *t, size_t row,
                     struct hg_cell_run *runs)
{
    memset(runs, 0, b->report->n_sets * sizeof *runs);
    for (size_t column = 0; column < t->n_columns; column++) {
        const struct hg_point *p = hg_table_point(t, row, column);
        struct hg_cell_run *run;

        if (p->of == 0)
            continue;
        run = &runs[b->set[p->config]];
        run->point = p;
        if (!hg_moments_make(b->values + b->begin[p->config], p->n, &run->moments))
            run->moments.n = 0;
    }
}

struct hg_estimate hg_moments_estimate(const struct hg_moments *b)
{
    struct hg_variance v = { 0 };
    struct hg_estimate e;
    double n = (double)b->n;

    if (b->n == 0)
        return (struct hg_estimate)HG_ESTIMATE_NONE;
    if (b->n >= HG_STATS_INTERVAL_MIN)
        v = (struct hg_variance){ b->squares / (n - 1) / n, n - 1 };
    e = hg_contrast_ratio(b->mean, v);
    e.has_interval = e.has_interval && b->n >= HG_STATS_INTERVAL_MIN;
    return e;
}
