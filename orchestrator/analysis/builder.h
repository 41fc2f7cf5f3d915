/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_BUILDER_H
#define HG_ANALYSIS_BUILDER_H

#include "analysis/report.h"

/* A report in the making: what the steps of hg_report_build (build.c) hand to each other. */

/* Cells that differ only in `repeat` (and in what follows from it, such as a seed): one place of a table. */
struct hg_configuration {
    size_t entry;     /* the first of its entries */
    size_t n_entries; /* see hg_builder_entry */
    size_t begin;     /* of its entries, in builder.members */
    size_t base;      /* the configuration it is compared with; HG_MAP_NONE: none */
    bool off_law;     /* its point is off_law or unlike, once that has its notes */
};

struct hg_builder {
    struct hg_report *r;
    const struct hg_report_options *options;
    struct hg_errs *errs;
    bool wants_speedup; /* some set has a baseline, or an option names one */
    bool *masked;       /* by key: not part of a configuration's identity */
    struct {
        struct hg_configuration *items;
        size_t n, cap;
    } configurations;
    size_t *members; /* entries, one configuration after the other */
    double *room,
        *room_base; /* for one number of each entry of a configuration, and of its baseline */
};

void hg_builder_done(struct hg_builder *b);

/* Entry i of a configuration. */
static inline const struct hg_report_entry *hg_builder_entry(const struct hg_builder *b,
                                                             const struct hg_configuration *c,
                                                             size_t i)
{
    return &b->r->entries[b->members[c->begin + i]];
}

/* The configuration of a point; NULL if it has no cell. */
const struct hg_configuration *hg_builder_configuration(const struct hg_builder *b,
                                                        const struct hg_point *p);

/* The first result of a configuration that counts; NULL if none does. */
const struct hg_result *hg_builder_first(const struct hg_builder *b,
                                         const struct hg_configuration *c);

/* The metric of the entries that count, shown or not, in v (room for n_entries). Returns how many. */
size_t hg_builder_values(const struct hg_builder *b, const struct hg_configuration *c, double *v);

/* What the results of a configuration that count (shown_only: and are shown) say of all their runs, if one of them is a published mean of
 * several; m may be NULL. Returns how many runs they stand for; 0: none is such a mean. */
size_t hg_builder_published(const struct hg_builder *b, const struct hg_configuration *c,
                            bool shown_only, struct hg_moments *m);

/* A number's statistic over the entries that count (shown_only: and are shown); NaN if one of them does not have it. The numbers stay
 * in b->room. */
double hg_builder_center(const struct hg_builder *b, const struct hg_configuration *c,
                         bool shown_only, enum hg_statistic statistic,
                         double (*number)(const struct hg_result *r));

/* Key of a name, or HG_MAP_NONE with an error that suggests one. The name comes from an option or a member `what` ("rows",
 * "--baseline"), or from the document of a set, at the pointer. */
size_t hg_builder_key(struct hg_builder *b, const char *what, const char *name,
                      const struct hg_results *set, const char *pointer);

#endif
