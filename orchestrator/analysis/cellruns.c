/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cellruns.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "analysis/entries.h"
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
    b->entries = sorted;
    free(of_entry);
}

void hg_cellruns_close(struct hg_cellruns *b)
{
    free(b->values);
    free(b->entries);
    free(b->begin);
    free(b->set);
}

/* Of n entries, published means among them; without runs if one of these has no logarithm. */
static struct hg_moments moments_of(const struct hg_cellruns *b, size_t begin, size_t n)
{
    struct hg_moments all = { 0 };

    for (size_t i = 0; i < n; i++) {
        size_t entry = b->entries[begin + i];
        struct hg_moments own = hg_entry_moments(b->report, &b->report->entries[entry]);

        if (!own.n)
            return own;
        hg_moments_add(&all, &own);
    }
    return all;
}

void hg_cellruns_row(const struct hg_cellruns *b, const struct hg_table *t, size_t row,
                     struct hg_cell_run *runs)
{
    memset(runs, 0, b->report->n_sets * sizeof *runs);
    for (size_t column = 0; column < t->n_columns; column++) {
        const struct hg_point *p = hg_table_point(t, row, column);
        struct hg_cell_run *run;
        size_t begin;

        if (p->of == 0)
            continue;
        run = &runs[b->set[p->config]];
        run->point = p;
        begin = b->begin[p->config];
        if (p->published)
            run->moments = moments_of(b, begin, p->n);
        else
            hg_moments_make(b->values + begin, p->n, &run->moments);
    }
}
