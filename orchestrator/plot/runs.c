/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/runs.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "analysis/groups.h"

void hg_plot_runs_find(const struct hg_report *r, struct hg_plot_runs *runs)
{
    size_t *of_entry = hg_alloc((r->n_entries + 1) * sizeof *of_entry);

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        of_entry[i] = e->shown && !e->state ? e->config : HG_MAP_NONE;
        if (e->config >= runs->n_configs && e->config != HG_MAP_NONE)
            runs->n_configs = e->config + 1;
    }
    runs->begin = hg_alloc_zeroed(runs->n_configs + 2, sizeof *runs->begin);
    runs->entries = hg_alloc((r->n_entries + 1) * sizeof *runs->entries);
    runs->room = hg_alloc((r->n_entries + 1) * sizeof *runs->room);
    hg_groups_sort(of_entry, r->n_entries, runs->n_configs, runs->begin, runs->entries);
    free(of_entry);
}

void hg_plot_runs_done(struct hg_plot_runs *runs)
{
    free(runs->begin);
    free(runs->entries);
    free(runs->room);
}

const struct hg_report_entry *hg_plot_entry(const struct hg_report *r,
                                            const struct hg_plot_runs *runs, size_t config,
                                            size_t i)
{
    if (config == HG_MAP_NONE || config >= runs->n_configs ||
        runs->begin[config] + i >= runs->begin[config + 1])
        return NULL;
    return &r->entries[runs->entries[runs->begin[config] + i]];
}

const struct hg_result *hg_plot_run(const struct hg_report *r, const struct hg_plot_runs *runs,
                                    size_t config, size_t i)
{
    const struct hg_report_entry *e = hg_plot_entry(r, runs, config, i);

    return e ? e->result : NULL;
}
