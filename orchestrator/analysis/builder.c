/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/builder.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/entries.h"
#include "base/text.h"
#include "base/vec.h"

void hg_builder_done(struct hg_builder *b)
{
    free(b->masked);
    free(b->members);
    free(b->room);
    free(b->room_base);
    HG_VEC_DONE(&b->configurations);
}

const struct hg_configuration *hg_builder_configuration(const struct hg_builder *b,
                                                        const struct hg_point *p)
{
    return p->config == HG_MAP_NONE ? NULL : &b->configurations.items[p->config];
}

const struct hg_result *hg_builder_first(const struct hg_builder *b,
                                         const struct hg_configuration *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (!e->state)
            return e->result;
    }
    return NULL;
}

size_t hg_builder_values(const struct hg_builder *b, const struct hg_configuration *c, double *v)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (!e->state)
            v[n++] = e->value;
    }
    return n;
}

size_t hg_builder_published(const struct hg_builder *b, const struct hg_configuration *c,
                            bool shown_only, struct hg_moments *m)
{
    struct hg_moments all = { 0 };
    size_t results = 0, runs = 0;
    bool positive = true;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);
        struct hg_moments own;

        if (e->state || (shown_only && !e->shown))
            continue;
        own = hg_entry_moments(b->r, e);
        positive = positive && own.n;
        hg_moments_add(&all, &own);
        runs += e->result->runs;
        results++;
    }
    if (!positive)
        all.n = 0; /* one has no logarithm */
    if (m)
        *m = all;
    return runs > results ? runs : 0;
}

double hg_builder_center(const struct hg_builder *b, const struct hg_configuration *c,
                         bool shown_only, enum hg_statistic statistic,
                         double (*number)(const struct hg_result *r))
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (e->state || (shown_only && !e->shown))
            continue;
        b->room[n] = number(e->result);
        if (isnan(b->room[n++]))
            return NAN;
    }
    return hg_stats_center(b->room, n, statistic).value;
}

size_t hg_builder_key(struct hg_builder *b, const char *what, const char *name,
                      const struct hg_results *set, const char *pointer)
{
    const struct hg_frame *f = &b->r->frame;
    size_t key = hg_frame_find_key(f, name);
    const char **names;
    struct hg_err *err;

    if (key != HG_MAP_NONE)
        return key;
    if (set) {
        err = hg_json_error(&set->doc, pointer, b->errs, "no cell has \"%s\"", name);
    } else {
        err = hg_errs_next(b->errs);
        hg_err_set(err, HG_E_INPUT, "%s: no cell has \"%s\"", what, name);
    }
    names = hg_alloc((f->keys.n + 1) * sizeof *names);
    for (size_t k = 0; k < f->keys.n; k++)
        names[k] = f->keys.items[k].name;
    if (f->keys.n)
        hg_text_suggest(err, name, names, f->keys.n);
    free(names);
    return HG_MAP_NONE;
}
