/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/draft.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/vec.h"

void hg_draft_done(struct hg_draft *d)
{
    free(d->masked);
    free(d->members);
    free(d->room);
    free(d->room_base);
    HG_VEC_DONE(&d->configurations);
}

const struct hg_configuration *hg_draft_configuration(const struct hg_draft *d,
                                                      const struct hg_point *p)
{
    return p->config == HG_MAP_NONE ? NULL : &d->configurations.items[p->config];
}

const struct hg_result *hg_draft_first(const struct hg_draft *d, const struct hg_configuration *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_draft_entry(d, c, i);

        if (!e->state)
            return e->result;
    }
    return NULL;
}

size_t hg_draft_values(const struct hg_draft *d, const struct hg_configuration *c, double *v)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_draft_entry(d, c, i);

        if (!e->state)
            v[n++] = e->value;
    }
    return n;
}

double hg_draft_median(const struct hg_draft *d, const struct hg_configuration *c, bool shown_only,
                       double (*number)(const struct hg_result *r))
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_draft_entry(d, c, i);

        if (e->state || (shown_only && !e->shown))
            continue;
        d->room[n] = number(e->result);
        if (isnan(d->room[n++]))
            return NAN;
    }
    return hg_stats_median(d->room, n);
}

size_t hg_draft_key(struct hg_draft *d, const char *what, const char *name,
                    const struct hg_results *set, const char *pointer)
{
    const struct hg_frame *f = &d->r->frame;
    size_t key = hg_frame_find_key(f, name);
    const char **names;
    struct hg_err *err;

    if (key != HG_MAP_NONE)
        return key;
    if (set) {
        err = hg_json_error(&set->doc, pointer, d->errs, "no cell has \"%s\"", name);
    } else {
        err = hg_errs_next(d->errs);
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
