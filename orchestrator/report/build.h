/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_REPORT_BUILD_H
#define HG_REPORT_BUILD_H

#include "base/map.h"
#include "report/table.h"

/* Inside of hg_report_build: what its steps hand to each other. */

/* Cells that differ in `repeat` (and in what goes with it, such as a seed) only: one place of a table.
 */
struct hg_config {
    size_t entry;     /* the first of its entries */
    size_t n_entries; /* entries, in their order, from config_entries + begin */
    size_t begin;
    size_t base; /* config it is compared with; HG_MAP_NONE: none */
    bool looked_up;
};

struct hg_build {
    struct hg_report *r;
    const struct hg_report_options *options;
    struct hg_errs *errs;
    bool *masked; /* by key: no part of a config's identity */
    struct {
        struct hg_config *items;
        size_t n, cap;
    } configs;
    size_t *config_entries;
    bool wants_speedup; /* some set has a baseline, or one was asked for */
};

/* entries.c: fill r->entries, r->frame, title, metric and states. */
int hg_build_entries(struct hg_build *b);

/* config.c: group entries into configs and find the baseline of each. */
int hg_build_configs(struct hg_build *b);

/* Entries of a config that count; appends their metric to v (room for n_entries). Returns how many.
 */
size_t hg_config_values(const struct hg_build *b, const struct hg_config *c, double *v);

/* pivot.c: keys of rows and columns, tables, points. */
int hg_build_tables(struct hg_build *b);

/* notes.c: footnotes of a table and of the report. */
int hg_build_notes(struct hg_build *b, struct hg_table *t, const size_t *point_config);

/* Key of a name, or HG_MAP_NONE with an error that suggests one. The name was asked for by `what`
 * ("rows", "--baseline"), or by the set (NULL: by an option) whose document has it at the pointer. */
size_t hg_build_key(struct hg_build *b, const char *what, const char *name,
                    const struct hg_results *set, const char *pointer);

#endif
