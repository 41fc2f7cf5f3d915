/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/evaluator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "matrix/expr.h"

#define MEMO_ENTRIES 1024          /* at first; a power of two */
#define MEMOS_BYTES_MAX (16 << 20) /* of all that have grown */

/* What an expression gave for the members it reads, remembered: values of its columns, then the
 * result. An entry whose result is UNKNOWN is free; at most two thirds are taken. What may grow no more begins anew. */
#define UNKNOWN (HG_VALUE_POOLED | UINT64_C(0xffffffffffff))

struct memo {
    int *columns;
    size_t n;
    hg_value *entries; /* `size` of n + 1 */
    hg_value *last;    /* n + 1: the entry of the last call */
    size_t size;       /* a power of two */
    size_t used;
};

struct hg_evaluator {
    const struct hg_matrix *m;
    const struct hg_grid *g;
    struct memo *memos; /* per expression */
    size_t n_memos, grown_bytes;
    hg_value *scratch;       /* per column */
    jv *names;               /* per column, for cells as jq sees them */
    hg_value site, hardware; /* names of the site and hardware looked up last */
    const struct hg_hardware *hw;
    jv hw_json;
    const struct memo *now; /* being evaluated, over these values */
    const hg_value *now_values;
};

static hg_value *make_entries(size_t size, size_t n)
{
    hg_value *entries = hg_alloc_zeroed(size * (n + 1), sizeof *entries);

    for (size_t i = 0; i < size; i++)
        entries[i * (n + 1) + n] = UNKNOWN;
    return entries;
}

static void make_memo(struct hg_evaluator *f, int expr)
{
    const struct hg_expr_uses *u = hg_exprs_uses(f->g->exprs, expr);
    struct memo *memo = &f->memos[expr];
    size_t max = f->g->columns.n + 1;
    bool has_hardware = false, has_site = !f->m->several.n;

    memo->columns = hg_alloc_zeroed(max, sizeof *memo->columns);
    for (size_t c = 0; c < f->g->columns.n; c++) {
        bool reads = u->all;

        for (size_t i = 0; i < u->n && !reads; i++)
            reads = strcmp(u->names[i], f->g->columns.items[c].name) == 0;
        if (reads)
            memo->columns[memo->n++] = (int)c;
        if (reads && c == HG_COLUMN_HARDWARE)
            has_hardware = true;
        if (reads && c == HG_COLUMN_SITE)
            has_site = true;
    }
    if (u->hw && !has_hardware)
        memo->columns[memo->n++] = HG_COLUMN_HARDWARE;
    if (u->hw && !has_site)
        memo->columns[memo->n++] = HG_COLUMN_SITE;
    memo->size = MEMO_ENTRIES;
    memo->last = memo->entries = make_entries(memo->size, memo->n);
}

static void make_memos(struct hg_evaluator *f)
{
    const struct hg_grid *g = f->g;

    f->n_memos = g->derives.n + g->rules.n;
    f->memos = hg_alloc_zeroed(f->n_memos, sizeof *f->memos);
    for (size_t i = 0; i < g->derives.n; i++)
        make_memo(f, g->derives.items[i].expr);
    for (size_t i = 0; i < g->rules.n; i++)
        if (g->rules.items[i].expr >= 0)
            make_memo(f, g->rules.items[i].expr);
}

static jv jv_of_value(const struct hg_evaluator *f, hg_value value)
{
    json_t *json;
    jv v;

    if (hg_value_is_number(value))
        return jv_number(hg_value_number(value));
    json = hg_pool_json(f->g->pool, value);
    v = hg_jv_of_json(json);
    json_decref(json);
    return v;
}

const struct hg_hardware *hg_evaluator_hardware(struct hg_evaluator *f, const hg_value *values)
{
    hg_value name = values[HG_COLUMN_HARDWARE];
    const struct hg_site *site;
    const char *text;

    if (name == f->hardware && values[HG_COLUMN_SITE] == f->site)
        return f->hw;
    text = hg_pool_string(f->g->pool, name);
    site = hg_matrix_site(f->m, hg_pool_string(f->g->pool, values[HG_COLUMN_SITE]));
    f->site = values[HG_COLUMN_SITE];
    f->hardware = name;
    f->hw = text && site ? hg_site_find_hardware(site, text) : NULL;
    jv_free(f->hw_json);
    f->hw_json = f->hw ? hg_jv_of_json(f->hw->json) : jv_null();
    return f->hw;
}

/* "nodes 2, lr absent": what an expression sees. Takes no memory: also called when an expression
 * that does not end was interrupted. */
static void describe_cell(const struct hg_evaluator *f, const struct memo *memo,
                          const hg_value *values, char *out, size_t size)
{
    size_t shown = 0, used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < memo->n && shown < 8 && used + 1 < size; i++) {
        const struct hg_column *c = &f->g->columns.items[memo->columns[i]];
        hg_value v = values[memo->columns[i]];
        bool absent = hg_value_is_absent(v);
        char scratch[32];
        size_t len = 6;
        const char *text = "absent";

        if (absent && memo->n > 8)
            continue;
        if (!absent)
            text = hg_pool_text(f->g->pool, v, scratch, &len);
        used += (size_t)snprintf(out + used, size - used, "%s%.64s %.*s", shown++ ? ", " : "",
                                 c->name, (int)(len > 40 ? 40 : len), text);
    }
}

static void describe_now(const void *context, char *out, size_t size)
{
    const struct hg_evaluator *f = context;

    describe_cell(f, f->now, f->now_values, out, size);
}

struct hg_evaluator *hg_evaluator_create(const struct hg_matrix *m)
{
    struct hg_evaluator *f = hg_alloc_zeroed(1, sizeof *f);

    f->m = m;
    f->g = m->grid;
    f->site = f->hardware = UNKNOWN;
    f->hw_json = jv_null();
    f->names = hg_alloc_zeroed(f->g->columns.n, sizeof *f->names);
    for (size_t i = 0; i < f->g->columns.n; i++)
        f->names[i] = jv_string(f->g->columns.items[i].name);
    f->scratch = hg_alloc_zeroed(f->g->columns.n, sizeof *f->scratch);
    make_memos(f);
    hg_exprs_describe(f->g->exprs, describe_now, f);
    return f;
}

void hg_evaluator_free(struct hg_evaluator *f)
{
    if (!f)
        return;
    hg_exprs_describe(f->g->exprs, NULL, NULL);
    for (size_t i = 0; i < f->n_memos; i++) {
        free(f->memos[i].columns);
        free(f->memos[i].entries);
    }
    for (size_t i = 0; i < f->g->columns.n; i++)
        jv_free(f->names[i]);
    free(f->memos);
    free(f->names);
    free(f->scratch);
    jv_free(f->hw_json);
    free(f);
}

/* A member that an expression surely reads and no cell has: null, which nearly always is a typing mistake. NULL: none. */
static const char *unknown_member(const struct hg_evaluator *f, int expr)
{
    const struct hg_expr_uses *u = hg_exprs_uses(f->g->exprs, expr);

    for (size_t i = 0; i < u->n; i++)
        if (u->certain[i] && !hg_grid_has_key(f->g, u->names[i]))
            return u->names[i];
    return NULL;
}

int hg_evaluator_fail(const struct hg_evaluator *f, int expr, const char *pointer,
                      const hg_value *values, const struct hg_err *err, struct hg_errs *errs)
{
    const char *unknown = unknown_member(f, expr);
    char cell[400];
    struct hg_err *e;

    if (unknown) {
        e = hg_json_error(&f->m->doc, pointer, errs, "no cell has \"%s\", so it is null here: %s",
                          unknown, err->text);
        hg_grid_suggest(f->g, unknown, e);
        return -1;
    }
    describe_cell(f, &f->memos[expr], values, cell, sizeof cell);
    e = hg_json_error(&f->m->doc, pointer, errs, "%s", err->text);
    if (cell[0])
        hg_err_hint(e, "in the cell with %s%s%s", cell, err->hint[0] ? "; " : "", err->hint);
    else if (err->hint[0])
        hg_err_hint(e, "%s", err->hint);
    return -1;
}

static uint64_t mix(uint64_t hash, hg_value value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static bool entry_holds(const struct memo *memo, const hg_value *entry, const hg_value *values)
{
    if (entry[memo->n] == UNKNOWN)
        return false;
    for (size_t i = 0; i < memo->n; i++)
        if (entry[i] != values[memo->columns[i]])
            return false;
    return true;
}

/* Where these values (of all columns) have their place, if no others took it first. Whole numbers differ in their high
 * bits only. */
static size_t place_of(const struct memo *memo, const hg_value *values)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < memo->n; i++)
        hash = mix(hash, values[memo->columns[i]]);
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (memo->size - 1);
}

/* The entry of these values, or the free one where they belong. */
static hg_value *find_entry(struct memo *memo, const hg_value *values)
{
    size_t i;

    if (entry_holds(memo, memo->last, values))
        return memo->last;
    for (i = place_of(memo, values);; i = (i + 1) & (memo->size - 1)) {
        memo->last = memo->entries + i * (memo->n + 1);
        if (memo->last[memo->n] == UNKNOWN || entry_holds(memo, memo->last, values))
            return memo->last;
    }
}

/* Twice the places; as many, but free ones, if the memory may not grow. */
static void make_room(struct hg_evaluator *f, struct memo *memo)
{
    size_t width = memo->n + 1, bytes = memo->size * width * sizeof(hg_value);
    bool grows = f->grown_bytes + bytes <= MEMOS_BYTES_MAX;
    struct memo old = *memo;

    memo->size <<= grows;
    memo->last = memo->entries = make_entries(memo->size, memo->n);
    memo->used = grows ? old.used : 0;
    f->grown_bytes += grows ? bytes : 0;
    for (size_t i = 0; grows && i < old.size; i++) {
        const hg_value *e = old.entries + i * width;

        if (e[memo->n] == UNKNOWN)
            continue;
        for (size_t k = 0; k < memo->n; k++)
            f->scratch[memo->columns[k]] = e[k];
        memcpy(find_entry(memo, f->scratch), e, width * sizeof *e);
    }
    free(old.entries);
}

static void remember(struct hg_evaluator *f, struct memo *memo, const hg_value *values,
                     hg_value result)
{
    hg_value *entry;

    if (3 * memo->used >= 2 * memo->size)
        make_room(f, memo);
    memo->used++;
    entry = find_entry(memo, values);
    for (size_t i = 0; i < memo->n; i++)
        entry[i] = values[memo->columns[i]];
    entry[memo->n] = result;
}

static int evaluate(struct hg_evaluator *f, int expr, const hg_value *values, jv *out,
                    struct hg_err *err)
{
    const struct memo *memo = &f->memos[expr];
    jv cell = jv_object();

    for (size_t i = 0; i < memo->n; i++) {
        int c = memo->columns[i];

        if (!hg_value_is_absent(values[c]))
            cell = jv_object_set(cell, jv_copy(f->names[c]), jv_of_value(f, values[c]));
    }
    hg_evaluator_hardware(f, values);
    f->now = memo;
    f->now_values = values;
    return hg_exprs_eval(f->g->exprs, expr, cell, jv_copy(f->hw_json), out, err);
}

static int derive_value(struct hg_evaluator *f, const struct hg_derive *d, const hg_value *values,
                        hg_value *result, struct hg_err *err)
{
    char shown[64];
    json_t *json;
    jv out;
    int rc = evaluate(f, d->expr, values, &out, err);

    if (rc < 0)
        return -1;
    if (rc == 0) {
        hg_err_set(err, HG_E_INPUT, "the expression gives no value");
        return hg_err_hint(err, "null leaves the member out");
    }
    hg_expr_show(jv_copy(out), shown);
    json = hg_json_of_jv(out);
    if (!json)
        return hg_err_set(
            err, HG_E_INPUT,
            "the expression gives %s, which a cell cannot hold (not a finite number, or a string with a NUL)",
            shown);
    *result = hg_pool_add(f->g->pool, json);
    json_decref(json);
    return 0;
}

static int judge_rule(struct hg_evaluator *f, int expr, const hg_value *values, hg_value *result,
                      struct hg_err *err)
{
    char shown[64];
    jv out;
    int rc = evaluate(f, expr, values, &out, err);
    jv_kind kind;

    if (rc < 0)
        return -1;
    if (rc == 0)
        return hg_err_set(err, HG_E_INPUT, "the rule gives no value, neither true nor false");
    kind = jv_get_kind(out);
    if (kind == JV_KIND_TRUE || kind == JV_KIND_FALSE || kind == JV_KIND_NULL) {
        jv_free(out);
        *result = hg_value_of_number(kind == JV_KIND_TRUE);
        return 0;
    }
    hg_expr_show(out, shown);
    hg_err_set(err, HG_E_INPUT, "the rule gives %s, neither true nor false", shown);
    return hg_err_hint(err, "compare it with something: .nodes > 2");
}

/* Value of an expression for a cell, remembered if it was evaluated before. */
static int look_up(struct hg_evaluator *f, int expr, const struct hg_derive *d, const char *pointer,
                   const hg_value *values, hg_value *result, struct hg_errs *errs)
{
    struct memo *memo = &f->memos[expr];
    hg_value *entry = find_entry(memo, values);
    struct hg_err err = HG_ERR_INIT;

    if (entry_holds(memo, entry, values)) {
        *result = entry[memo->n];
        return 0;
    }
    if ((d ? derive_value(f, d, values, result, &err) : judge_rule(f, expr, values, result, &err)) <
        0)
        return hg_evaluator_fail(f, expr, pointer, values, &err, errs);
    remember(f, memo, values, *result);
    return 0;
}

int hg_evaluator_derive(struct hg_evaluator *f, const struct hg_derive *d, const hg_value *values,
                        hg_value *result, struct hg_errs *errs)
{
    return look_up(f, d->expr, d, d->pointer, values, result, errs);
}

int hg_evaluator_judge(struct hg_evaluator *f, const struct hg_rule *rule, const hg_value *values,
                       struct hg_errs *errs)
{
    hg_value truth = 0;

    if (look_up(f, rule->expr, NULL, rule->pointer, values, &truth, errs) < 0)
        return -1;
    return hg_value_number(truth) != 0;
}
