/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_BUILD_H
#define HG_ANALYSIS_BUILD_H

#include "base/map.h"
#include "analysis/table.h"

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

/* What is usually tabulated: train_s where every good result has it, else wall_s; where there is neither, what else was measured.
 * count: how many of the *ok good results that are shown have the metric. */
const char *hg_build_usual_metric(size_t (*count)(const void *context, const char *metric,
                                                  size_t *ok),
                                  const void *context);

/* Set kind and direction of the metric; better: "lower", "higher", or NULL. */
void hg_build_direct(struct hg_report *r, const char *metric, const char *better,
                     bool against_first);

/* Why a result does not count; NULL: it does. */
const char *hg_build_state(const struct hg_report *r, const struct hg_result *result, double value);

/* Count a cell that is shown, and behind the last one put the states in order. -1 when memory is gone. */
int hg_build_count(struct hg_report *r, const char *state);
void hg_build_sort_states(struct hg_report *r);

/* config.c: group entries into configs and find the baseline of each. */
int hg_build_configs(struct hg_build *b);

/* Entries of a config that count; appends their metric to v (room for n_entries). Returns how many.
 */
size_t hg_config_values(const struct hg_build *b, const struct hg_config *c, double *v);

/* pivot.c: keys of rows and columns, tables, points. */
int hg_build_tables(struct hg_build *b);

/* The first of its entries that counts; NULL if none does. */
const struct hg_result *hg_config_first(const struct hg_build *b, const struct hg_config *c);

/* work.c: the keys of work, as asked for or as the first set says that has some. */
int hg_build_work_keys(struct hg_build *b);

/* The work behind one value of the metric, in units of the baseline's; NaN: not said. */
double hg_build_work(const struct hg_report *r, const struct hg_result *own,
                     const struct hg_result *base);

/* What two results must agree in for their ratio to mean something: a member of `comparable`, or of
 * the cell where the result has none. NULL: not said. */
const json_t *hg_build_comparable(const struct hg_result *result, const char *key);

/* Do they agree in all that but the global batch, and but what `ignored` says? */
bool hg_build_is_like(const struct hg_result *a, const struct hg_result *b,
                      bool (*ignored)(const void *context, const char *key), const void *context);

/* notes.c: footnotes of a table and of the report. */
int hg_build_notes(struct hg_build *b, struct hg_table *t);

/* cost.c: device-hours, energy, price and throughput of a place; room for n_entries numbers. */
void hg_build_cost(struct hg_build *b, const struct hg_config *c, double *room, struct hg_point *p);

/* The listing "cost" of a table, and "spent" of all results. */
int hg_build_cost_listing(struct hg_build *b, struct hg_table *t);
int hg_build_spent(struct hg_build *b);

/* figures.c: how many decimals suit the points, once for all that ask hg_section_decimals. */
void hg_build_decimals(struct hg_table *t);

/* traffic.c: the listing "traffic", if it was asked for: bytes sent, exposed communication, peak memory. */
int hg_build_traffic(struct hg_build *b, struct hg_table *t);

/* The keys of rows and columns as a listing's first columns, and their values at a place. */
void hg_build_list_keys(const struct hg_report *r, struct hg_listing *l);
void hg_build_list_place(const struct hg_report *r, const struct hg_table *t, size_t point,
                         struct hg_listing *l);

/* Append the value of a key to a listing, a number as a number. */
void hg_build_list_value(const struct hg_report *r, struct hg_listing *l, uint32_t value);

/* best.c: the listing "best": which strategy is best in each case, and can it be told? */
int hg_build_best(struct hg_build *b, struct hg_table *t);

/* laws.c: the listings "scaling", "laws" and "predicted" of the table's series. */
int hg_build_laws(const struct hg_report *r, struct hg_table *t);

/* series.c: scaling curves, and what follows from them. */
int hg_build_series(const struct hg_report *r, struct hg_table *t);

/* The points of each group one after the other: those of group g from points + begin[g] to
 * points + begin[g + 1]. of_point: HG_MAP_NONE for those of no group. begin: n_groups + 2 zeros. */
void hg_build_sort_points(const size_t *of_point, size_t n, size_t n_groups, size_t *begin,
                          size_t *points);

/* Key of a name, or HG_MAP_NONE with an error that suggests one. The name was asked for by `what`
 * ("rows", "--baseline"), or by the set (NULL: by an option) whose document has it at the pointer. */
size_t hg_build_key(struct hg_build *b, const char *what, const char *name,
                    const struct hg_results *set, const char *pointer);

#endif
