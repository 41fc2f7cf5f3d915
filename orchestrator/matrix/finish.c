/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/finish.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "contract/keys.h"
#include "matrix/evaluator.h"
#include "matrix/fate.h"
#include "matrix/judge.h"

struct hg_finisher {
    const struct hg_matrix *m;
    const struct hg_grid *g;
    struct hg_judge judge;
    struct hg_evaluator *evaluator;
    struct hg_fates *fates;
    hg_value *judged;                        /* per column: the derived value found right last */
    bool *derived;                           /* per column, of the last cell */
    uint64_t *uses;                          /* per derive rule */
    hg_value site, single, default_hardware; /* defaults; absent: none */
    const struct hg_site *at;                /* whose default_hardware is */
};

/* Of several sites, each has a default of its own. */
static void enter_site(struct hg_finisher *f, const struct hg_site *site)
{
    const char *hardware = site ? site->default_hardware : NULL;

    if (site == f->at)
        return;
    f->at = site;
    f->default_hardware = hardware ? hg_pool_add_string(f->g->pool, hardware) : HG_VALUE_ABSENT;
}

struct hg_finisher *hg_finisher_create(const struct hg_matrix *m)
{
    struct hg_finisher *f = hg_alloc_zeroed(1, sizeof *f);

    f->m = m;
    f->g = m->grid;
    f->judge = (struct hg_judge){ m->site, m->grid->worker, m->several.n ? &m->several : NULL };
    f->evaluator = hg_evaluator_create(m);
    f->fates = hg_fates_create(f->g, f->judge.worker);
    f->judged = hg_alloc(f->g->columns.n * sizeof *f->judged);
    for (size_t i = 0; i < f->g->columns.n; i++)
        f->judged[i] = HG_VALUE_ABSENT;
    f->derived = hg_alloc_zeroed(f->g->columns.n, sizeof *f->derived);
    f->uses = hg_alloc_zeroed(f->g->derives.n, sizeof *f->uses);
    f->site = m->several.n > 1 ? HG_VALUE_ABSENT : hg_pool_add_string(f->g->pool, m->site->name);
    f->single = hg_pool_add_string(f->g->pool, "single");
    f->default_hardware = HG_VALUE_ABSENT;
    enter_site(f, m->site);
    return f;
}

void hg_finisher_free(struct hg_finisher *f)
{
    if (!f)
        return;
    hg_evaluator_free(f->evaluator);
    hg_fates_free(f->fates);
    free(f->judged);
    free(f->derived);
    free(f->uses);
    free(f);
}

bool hg_finish_derived(const struct hg_finisher *f, int column)
{
    return f->derived[column];
}

const uint64_t *hg_finish_uses(const struct hg_finisher *f)
{
    return f->uses;
}

/* May a default stand now, when `done` derive rules have been tried? */
static bool is_due(const struct hg_finisher *f, const hg_value *values, int column, int done)
{
    return hg_value_is_absent(values[column]) && f->g->columns.items[column].derive < done;
}

static double default_tasks(const struct hg_finisher *f, const hg_value *values)
{
    const char *strategy = hg_pool_string(f->g->pool, values[HG_COLUMN_STRATEGY]);
    double gpus = hg_value_number(values[HG_COLUMN_GPUS_PER_NODE]);

    if (f->judge.worker && strategy && strcmp(strategy, "dp") == 0)
        return 1;
    return gpus >= 1 ? gpus : 1;
}

static void fill_shape(struct hg_finisher *f, hg_value *values, int done)
{
    const struct hg_hardware *hw = hg_evaluator_hardware(f->evaluator, values);
    hg_value one = hg_value_of_number(1), zero = hg_value_of_number(0);

    if (!hw)
        return;
    if (is_due(f, values, HG_COLUMN_GPUS_PER_NODE, done))
        values[HG_COLUMN_GPUS_PER_NODE] = one;
    if (!hw->gpus_per_node && values[HG_COLUMN_GPUS_PER_NODE] == one)
        values[HG_COLUMN_GPUS_PER_NODE] = zero; /* so one baseline serves GPUs and CPUs */
    if (is_due(f, values, HG_COLUMN_TASKS_PER_NODE, done) &&
        hg_value_is_number(values[HG_COLUMN_GPUS_PER_NODE]) &&
        !(f->judge.worker && hg_value_is_absent(values[HG_COLUMN_STRATEGY])))
        values[HG_COLUMN_TASKS_PER_NODE] = hg_value_of_number(default_tasks(f, values));
}

static void fill_defaults(struct hg_finisher *f, hg_value *values, int done)
{
    if (is_due(f, values, HG_COLUMN_SITE, done))
        values[HG_COLUMN_SITE] = f->site;
    if (f->m->several.n > 1)
        enter_site(f, hg_matrix_site(f->m, hg_pool_string(f->g->pool, values[HG_COLUMN_SITE])));
    if (is_due(f, values, HG_COLUMN_HARDWARE, done))
        values[HG_COLUMN_HARDWARE] = f->default_hardware;
    if (is_due(f, values, HG_COLUMN_NODES, done))
        values[HG_COLUMN_NODES] = hg_value_of_number(1);
    if (f->judge.worker && is_due(f, values, HG_COLUMN_STRATEGY, done))
        values[HG_COLUMN_STRATEGY] = f->single;
    fill_shape(f, values, done);
}

static int derive(struct hg_finisher *f, hg_value *values, struct hg_errs *errs)
{
    const struct hg_grid *g = f->g;

    for (size_t i = 0; i < g->derives.n; i++) {
        const struct hg_derive *d = &g->derives.items[i];

        f->derived[d->column] = false;
        if (hg_value_is_absent(values[d->column])) {
            if (hg_evaluator_derive(f->evaluator, d, values, &values[d->column], errs) < 0)
                return -1;
            if (!hg_value_is_absent(values[d->column])) {
                f->derived[d->column] = true;
                f->uses[i]++;
            }
        }
        if (d->column < HG_KEY_COUNT)
            fill_defaults(f, values, (int)i + 1);
    }
    return 0;
}

static bool match_holds(const struct hg_match *match, const hg_value *values)
{
    for (size_t i = 0; i < match->n; i++)
        if (values[match->column] == match->values[i])
            return true;
    return false;
}

static bool object_matches(const struct hg_rule *rule, const hg_value *values)
{
    for (size_t i = 0; i < rule->n; i++)
        if (!match_holds(&rule->matches[i], values))
            return false;
    return true;
}

/* Number of the first rule that removes the cell, -1 if none does, -2 on failure. */
static int find_rule(struct hg_finisher *f, const hg_value *values, struct hg_errs *errs)
{
    for (size_t i = 0; i < f->g->rules.n; i++) {
        const struct hg_rule *rule = &f->g->rules.items[i];
        int holds = rule->expr < 0 ? object_matches(rule, values)
                                   : hg_evaluator_judge(f->evaluator, rule, values, errs);

        if (holds)
            return holds < 0 ? -2 : (int)i;
    }
    return -1;
}

/* Formulas can give what a person could not have written; that is the formula's mistake. */
static int judge_derived(struct hg_finisher *f, const hg_value *values, struct hg_errs *errs)
{
    for (size_t i = 0; i < f->g->derives.n; i++) {
        const struct hg_derive *d = &f->g->derives.items[i];
        hg_value v = values[d->column];
        struct hg_err err = HG_ERR_INIT;
        json_t *json;

        if (!f->derived[d->column] || v == f->judged[d->column])
            continue;
        json = hg_pool_json(f->g->pool, v);
        if (hg_member_judge(&f->judge, f->g->columns.items[d->column].name, json, &err) < 0) {
            json_decref(json);
            return hg_evaluator_fail(f->evaluator, d->expr, d->pointer, values, &err, errs);
        }
        json_decref(json);
        f->judged[d->column] = v;
    }
    return 0;
}

static int no_site(struct hg_finisher *f, struct hg_errs *errs)
{
    struct hg_err *err =
        hg_json_error(&f->m->doc, "", errs, "a cell names no site, and the matrix has several");

    return hg_several_hint(&f->m->several, "; add \"site\" to each row of \"include\"", err);
}

static int no_hardware(struct hg_finisher *f, struct hg_errs *errs)
{
    struct hg_buf names = HG_BUF_INIT;
    struct hg_err *err;

    for (size_t i = 0; i < f->at->n_hardware; i++)
        hg_buf_printf(&names, "%s%s", i ? ", " : "", f->at->hardware[i].name);
    err = hg_json_error(&f->m->doc, "", errs,
                        "a cell names no hardware, and site %s has no default", f->at->name);
    hg_err_hint(err, "add \"hardware\" to the workload or the axes; known: %s", hg_buf_str(&names));
    hg_buf_done(&names);
    return -1;
}

static int judge_fate(struct hg_finisher *f, const hg_value *values, struct hg_finished *out,
                      struct hg_errs *errs)
{
    const struct hg_hardware *hw;

    if (judge_derived(f, values, errs) < 0)
        return -1;
    if (f->m->several.n > 1 && f->at && (out->why = hg_fate_why_not_at(f->fates, f->at, values))) {
        out->fate = HG_CELL_SKIPPED;
        return 0;
    }
    hw = hg_evaluator_hardware(f->evaluator, values);
    if (!hw)
        return f->at ? no_hardware(f, errs) : no_site(f, errs);
    out->why = hg_fate_why_not(f->fates, hw, values);
    if (out->why)
        out->fate = HG_CELL_SKIPPED;
    return 0;
}

int hg_finish(struct hg_finisher *f, hg_value *values, struct hg_finished *out,
              struct hg_errs *errs)
{
    *out = (struct hg_finished){ .fate = HG_CELL_RUNS, .rule = -1 };
    fill_defaults(f, values, 0);
    out->why = f->m->several.n > 1 && f->at ? hg_fate_why_not_at(f->fates, f->at, values) : NULL;
    if (out->why) { /* formulas and rules could not use its $hw */
        out->fate = HG_CELL_SKIPPED;
        return 0;
    }
    if (derive(f, values, errs) < 0)
        return -1;
    out->rule = find_rule(f, values, errs);
    if (out->rule == -2)
        return -1;
    if (out->rule >= 0) {
        out->fate = HG_CELL_EXCLUDED;
        return 0;
    }
    return judge_fate(f, values, out, errs);
}
