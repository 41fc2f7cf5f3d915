/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/build.h"

#include <string.h>

#include "base/alloc.h"
#include "analysis/absent.h"
#include "analysis/adaptive.h"
#include "analysis/best.h"
#include "analysis/code.h"
#include "analysis/configurations.h"
#include "analysis/cost.h"
#include "analysis/entries.h"
#include "analysis/figures.h"
#include "analysis/keys.h"
#include "analysis/notes.h"
#include "analysis/pivot.h"
#include "analysis/points.h"
#include "analysis/series.h"
#include "analysis/traffic.h"
#include "analysis/work.h"

/* The figures of one table, then what follows from them. */
static void fill_table(struct hg_builder *b, struct hg_table *t)
{
    hg_points_fill(b, t);
    hg_cost_fill(b, t);
    hg_notes_write(b, t);
    hg_figures_settle(b->r, t);
    hg_series_fit(b, t);
    hg_best_list(b, t);
    hg_series_list(b->r, t);
    hg_traffic_list(b, t);
    hg_cost_list(b, t);
}

/* What an option says, else what all sets ask for. */
static int choose_style(struct hg_builder *b)
{
    const struct hg_report_options *o = b->options;
    const struct hg_results *set = &b->r->sets[0];
    struct hg_err err = HG_ERR_INIT;

    b->r->style = o->style;
    if (o->has_style || o->against_first || !set->numbers)
        return 0;
    for (size_t i = 1; i < b->r->n_sets; i++)
        if (!set[i].numbers || strcmp(set[i].numbers, set->numbers) != 0)
            return 0;
    if (hg_style_parse(set->numbers, &b->r->style, &err) < 0)
        return hg_err_hint(hg_json_error(&set->doc, "/report/numbers", b->errs, "%s", err.text),
                           "%s", err.hint);
    b->r->style.from_set = true;
    return 0;
}

/* NULL with b->errs filled. */
static struct hg_report *begin(struct hg_builder *b, const struct hg_results *sets, size_t n_sets,
                               const struct hg_report_options *options, struct hg_errs *errs)
{
    static const struct hg_report_options none;
    struct hg_report *r = hg_alloc_zeroed(1, sizeof *r);

    *b = (struct hg_builder){ .r = r, .options = options ? options : &none, .errs = errs };
    r->sets = sets;
    r->n_sets = n_sets;
    if (choose_style(b) == 0 && hg_entries_list(b) == 0 && hg_work_settle(b) == 0 &&
        hg_configurations_find(b) == 0 && hg_keys_choose(b) == 0)
        return r;
    hg_report_free(r);
    return NULL;
}

struct hg_report *hg_report_arrange(const struct hg_results *sets, size_t n_sets,
                                    const struct hg_report_options *options, struct hg_errs *errs)
{
    struct hg_builder b;
    struct hg_report *r = begin(&b, sets, n_sets, options, errs);

    hg_builder_done(&b);
    return r;
}

struct hg_report *hg_report_build(const struct hg_results *sets, size_t n_sets,
                                  const struct hg_report_options *options, struct hg_errs *errs)
{
    struct hg_builder b;
    struct hg_report *r = begin(&b, sets, n_sets, options, errs);

    if (r) {
        hg_pivot_arrange(&b);
        r->adaptive = hg_adaptive_find(&b);
        hg_points_choose_statistic(&b);
        for (size_t t = 0; t < r->tables.n; t++)
            fill_table(&b, &r->tables.items[t]);
        hg_cost_list_spent(&b);
        hg_code_list(&b);
        hg_absent_list(r);
    }
    hg_builder_done(&b);
    return r;
}
