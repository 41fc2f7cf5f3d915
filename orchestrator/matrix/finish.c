/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/finish.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "matrix/matrix.h"

#define MEMO_ENTRIES 1024          /* at first; a power of two */
#define MEMO_BYTES_MAX (4 << 20)   /* of one expression */
#define MEMOS_BYTES_MAX (16 << 20) /* of all that have grown */

/* What an expression gave for the members it reads, remembered: values of its columns, then the
 * result. An entry whose result is UNKNOWN is free. A place is an entry's own: who comes later has it. */
#define UNKNOWN (HG_VALUE_POOLED | UINT64_C(0xffffffffffff))

struct memo {
    int *columns;
    size_t n;
    hg_value *entries; /* `size` of n + 1 */
    hg_value *last;    /* n + 1: the entry of the last call */
    size_t size;       /* a power of two */
    size_t lost;       /* entries that others have taken the places of, since it grew */
};

struct hg_finisher {
    const struct hg_matrix *m;
    const struct hg_grid *g;
    struct hg_judge judge;
    struct memo *memos; /* per expression */
    size_t n_memos, grown_bytes;
    jv *names;                               /* per column, for cells as jq sees them */
    hg_value *judged;                        /* per column: the derived value found right last */
    bool *derived;                           /* per column, of the last cell */
    uint64_t *uses;                          /* per derive rule */
    bool *option;                            /* per column: an option of some strategies only */
    hg_value site, single, default_hardware; /* defaults; the last may be absent */
    hg_value hardware;                       /* name of the hardware looked up last */
    const struct hg_hardware *hw;
    jv hw_json;
    int devices;            /* column of the parameter dp_devices, -1: none */
    hg_value strategy_name; /* looked up last */
    const struct hg_strategy *strategy;
    struct hg_buf why;
    const struct memo *now; /* being evaluated, over these values */
    const hg_value *now_values;
};

/* ---- Making and freeing ---- */

static hg_value *make_entries(size_t size, size_t n)
{
    hg_value *entries = hg_alloc_zeroed(size * (n + 1), sizeof *entries);

    for (size_t i = 0; i < size; i++)
        entries[i * (n + 1) + n] = UNKNOWN;
    return entries;
}

static void make_memo(struct hg_finisher *f, int expr)
{
    const struct hg_expr_uses *u = hg_exprs_uses(f->g->exprs, expr);
    struct memo *memo = &f->memos[expr];
    size_t max = f->g->columns.n + 1;
    bool has_hardware = false;

    memo->columns = hg_alloc_zeroed(max, sizeof *memo->columns);
    for (size_t c = 0; c < f->g->columns.n; c++) {
        bool reads = u->all;

        for (size_t i = 0; i < u->n && !reads; i++)
            reads = strcmp(u->names[i], f->g->columns.items[c].name) == 0;
        if (reads)
            memo->columns[memo->n++] = (int)c;
        if (reads && c == HG_KEY_HARDWARE)
            has_hardware = true;
    }
    if (u->hw && !has_hardware)
        memo->columns[memo->n++] = HG_KEY_HARDWARE;
    memo->size = MEMO_ENTRIES;
    memo->last = memo->entries = make_entries(memo->size, memo->n);
}

static void make_memos(struct hg_finisher *f)
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

static void make_columns(struct hg_finisher *f)
{
    size_t n = f->g->columns.n;

    f->names = hg_alloc_zeroed(n, sizeof *f->names);
    f->judged = hg_alloc(n * sizeof *f->judged);
    f->derived = hg_alloc_zeroed(n, sizeof *f->derived);
    f->option = hg_alloc_zeroed(n, sizeof *f->option);
    f->uses = hg_alloc_zeroed(f->g->derives.n, sizeof *f->uses);
    for (size_t i = 0; i < n; i++) {
        const char *name = f->g->columns.items[i].name;

        f->names[i] = jv_string(name);
        f->judged[i] = UNKNOWN;
        f->option[i] = f->judge.worker && hg_param_is_option(name);
    }
}

static void describe_now(const void *context, char *out, size_t size);

struct hg_finisher *hg_finisher_create(const struct hg_matrix *m)
{
    struct hg_finisher *f = hg_alloc_zeroed(1, sizeof *f);

    f->m = m;
    f->g = m->grid;
    f->judge = (struct hg_judge){ m->site, m->workload.program != NULL };
    f->hardware = f->strategy_name = UNKNOWN;
    f->default_hardware = HG_VALUE_ABSENT;
    f->devices = hg_grid_column(f->g, "dp_devices");
    f->hw_json = jv_null();
    hg_exprs_describe(f->g->exprs, describe_now, f);
    make_columns(f);
    make_memos(f);
    f->site = hg_pool_add_string(f->g->pool, m->site->name);
    f->single = hg_pool_add_string(f->g->pool, "single");
    if (m->site->default_hardware)
        f->default_hardware = hg_pool_add_string(f->g->pool, m->site->default_hardware);
    return f;
}

void hg_finisher_free(struct hg_finisher *f)
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
    free(f->judged);
    free(f->derived);
    free(f->uses);
    free(f->option);
    jv_free(f->hw_json);
    hg_buf_done(&f->why);
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

/* ---- jq and back ---- */

static jv jv_of_json(const json_t *json)
{
    const char *key;
    json_t *inner;
    size_t i;
    jv v;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        v = jv_object();
        json_object_foreach((json_t *)json, key, inner)
            v = jv_object_set(v, jv_string(key), jv_of_json(inner));
        return v;
    case JSON_ARRAY:
        v = jv_array();
        json_array_foreach((json_t *)json, i, inner)
            v = jv_array_append(v, jv_of_json(inner));
        return v;
    case JSON_STRING:
        return jv_string_sized(json_string_value(json), (int)json_string_length(json));
    case JSON_INTEGER:
    case JSON_REAL:
        return jv_number(json_number_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return jv_bool(json_is_true(json));
    default:
        return jv_null();
    }
}

static json_t *json_of_jv(jv v);

static json_t *json_of_jv_inner(jv v)
{
    json_t *json;

    if (jv_get_kind(v) == JV_KIND_ARRAY) {
        json = json_array();
        jv_array_foreach(v, i, x)
        {
            if (json_array_append_new(json, json_of_jv(x)) < 0) {
                json_decref(json);
                return NULL;
            }
        }
        return json;
    }
    json = json_object();
    jv_object_foreach(v, key, x)
    {
        int rc = json_object_set_new(json, jv_string_value(key), json_of_jv(x));

        jv_free(key);
        if (rc < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

/* A string that no variable and no file of ours could hold. */
static bool has_nul(jv v)
{
    return (size_t)jv_string_length_bytes(jv_copy(v)) != strlen(jv_string_value(v));
}

/* JSON of a value, numbers rounded; NULL for NaN, an infinite number and a string with a NUL. Consumes v. */
static json_t *json_of_jv(jv v)
{
    json_t *json = NULL;

    switch (jv_get_kind(v)) {
    case JV_KIND_NUMBER:
        if (isfinite(jv_number_value(v)) && fabs(jv_number_value(v)) < 1e300)
            json = hg_json_number(hg_value_round(jv_number_value(v)));
        break;
    case JV_KIND_STRING:
        if (!has_nul(v))
            json = json_stringn(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
        break;
    case JV_KIND_TRUE:
    case JV_KIND_FALSE:
        json = json_boolean(jv_get_kind(v) == JV_KIND_TRUE);
        break;
    case JV_KIND_ARRAY:
    case JV_KIND_OBJECT:
        json = json_of_jv_inner(v);
        break;
    default:
        json = json_null();
    }
    jv_free(v);
    return json;
}

static jv jv_of_value(const struct hg_finisher *f, hg_value value)
{
    json_t *json;
    jv v;

    if (hg_value_is_number(value))
        return jv_number(hg_value_number(value));
    json = hg_pool_json(f->g->pool, value);
    v = jv_of_json(json);
    json_decref(json);
    return v;
}

/* ---- Hardware ---- */

static const struct hg_hardware *look_up_hardware(struct hg_finisher *f, hg_value name)
{
    const char *text;

    if (name == f->hardware)
        return f->hw;
    text = hg_pool_string(f->g->pool, name);
    f->hardware = name;
    f->hw = text ? hg_site_find_hardware(f->m->site, text) : NULL;
    jv_free(f->hw_json);
    f->hw_json = f->hw ? jv_of_json(f->hw->json) : jv_null();
    return f->hw;
}

/* ---- Evaluation ---- */

/* "nodes 2, lr absent": what an expression sees. Takes no memory: also called when an expression
 * that does not end was interrupted. */
static void describe_cell(const struct hg_finisher *f, const struct memo *memo,
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
    const struct hg_finisher *f = context;

    describe_cell(f, f->now, f->now_values, out, size);
}

static int fail(const struct hg_finisher *f, const char *pointer, const struct memo *memo,
                const hg_value *values, const struct hg_err *err, struct hg_errs *errs)
{
    char cell[400];
    struct hg_err *e;

    describe_cell(f, memo, values, cell, sizeof cell);
    e = hg_json_error(&f->m->doc, pointer, errs, "%s", err->text);
    if (cell[0])
        hg_err_hint(e, "in the cell with %s%s%s", cell, err->hint[0] ? "; " : "", err->hint);
    else if (err->hint[0])
        hg_err_hint(e, "%s", err->hint);
    return -1;
}

/* Where these values (of the columns, in their order) have their place. Whole numbers differ in their high bits only. */
static size_t place_of(const struct memo *memo, uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (memo->size - 1)) * (memo->n + 1);
}

static uint64_t mix(uint64_t hash, hg_value value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static hg_value *find_entry(struct memo *memo, const hg_value *values)
{
    uint64_t hash = 0;
    size_t i;

    for (i = 0; i < memo->n && memo->last[i] == values[memo->columns[i]]; i++)
        ;
    if (i == memo->n)
        return memo->last;
    for (i = 0; i < memo->n; i++)
        hash = mix(hash, values[memo->columns[i]]);
    memo->last = memo->entries + place_of(memo, hash);
    return memo->last;
}

/* Four times the places, where so many entries were lost that they would have filled it. */
static void grow(struct hg_finisher *f, struct memo *memo)
{
    size_t width = memo->n + 1, bytes = 4 * memo->size * width * sizeof(hg_value);
    struct memo old = *memo;
    hg_value *entries;

    if (bytes > MEMO_BYTES_MAX || f->grown_bytes + bytes > MEMOS_BYTES_MAX)
        return;
    f->grown_bytes += bytes;
    memo->entries = memo->last = entries = make_entries(4 * memo->size, memo->n);
    memo->size *= 4;
    memo->lost = 0;
    for (size_t i = 0; i < old.size; i++) {
        const hg_value *entry = old.entries + i * width;
        uint64_t hash = 0;

        for (size_t k = 0; k < memo->n; k++)
            hash = mix(hash, entry[k]);
        if (entry[memo->n] != UNKNOWN)
            memcpy(entries + place_of(memo, hash), entry, width * sizeof *entry);
    }
    free(old.entries);
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

static int evaluate(struct hg_finisher *f, int expr, const hg_value *values, jv *out,
                    struct hg_err *err)
{
    const struct memo *memo = &f->memos[expr];
    jv cell = jv_object();

    for (size_t i = 0; i < memo->n; i++) {
        int c = memo->columns[i];

        if (!hg_value_is_absent(values[c]))
            cell = jv_object_set(cell, jv_copy(f->names[c]), jv_of_value(f, values[c]));
    }
    look_up_hardware(f, values[HG_KEY_HARDWARE]);
    f->now = memo;
    f->now_values = values;
    return hg_exprs_eval(f->g->exprs, expr, cell, jv_copy(f->hw_json), out, err);
}

static int derive_value(struct hg_finisher *f, const struct hg_derive *d, const hg_value *values,
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
    json = json_of_jv(out);
    if (!json)
        return hg_err_set(
            err, HG_E_INPUT,
            "the expression gives %s, which has no place in a cell (no finite number, or a NUL)",
            shown);
    *result = hg_pool_add(f->g->pool, json);
    json_decref(json);
    return 0;
}

static int judge_rule(struct hg_finisher *f, int expr, const hg_value *values, hg_value *result,
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

/* Value of an expression for a cell, from memory if it was asked before. */
static int look_up(struct hg_finisher *f, int expr, const struct hg_derive *d, const char *pointer,
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
        return fail(f, pointer, memo, values, &err, errs);
    if (entry[memo->n] != UNKNOWN && ++memo->lost % memo->size == 0) {
        grow(f, memo);
        entry = find_entry(memo, values);
    }
    for (size_t i = 0; i < memo->n; i++)
        entry[i] = values[memo->columns[i]];
    entry[memo->n] = *result;
    return 0;
}

/* ---- Defaults ---- */

/* May a default stand now, when `done` derive rules have been tried? */
static bool is_due(const struct hg_finisher *f, const hg_value *values, int column, int done)
{
    return hg_value_is_absent(values[column]) && f->g->columns.items[column].derive < done;
}

static double default_tasks(const struct hg_finisher *f, const hg_value *values)
{
    const char *strategy = hg_pool_string(f->g->pool, values[HG_KEY_STRATEGY]);
    double gpus = hg_value_number(values[HG_KEY_GPUS_PER_NODE]);

    if (f->judge.worker && strategy && strcmp(strategy, "dp") == 0)
        return 1;
    return gpus >= 1 ? gpus : 1;
}

static void fill_shape(struct hg_finisher *f, hg_value *values, int done)
{
    const struct hg_hardware *hw = look_up_hardware(f, values[HG_KEY_HARDWARE]);
    hg_value one = hg_value_of_number(1), zero = hg_value_of_number(0);

    if (!hw)
        return;
    if (is_due(f, values, HG_KEY_GPUS_PER_NODE, done))
        values[HG_KEY_GPUS_PER_NODE] = one;
    if (!hw->gpus_per_node && values[HG_KEY_GPUS_PER_NODE] == one)
        values[HG_KEY_GPUS_PER_NODE] = zero; /* so one baseline serves GPUs and CPUs */
    if (is_due(f, values, HG_KEY_TASKS_PER_NODE, done) &&
        hg_value_is_number(values[HG_KEY_GPUS_PER_NODE]) &&
        !(f->judge.worker && hg_value_is_absent(values[HG_KEY_STRATEGY])))
        values[HG_KEY_TASKS_PER_NODE] = hg_value_of_number(default_tasks(f, values));
}

static void fill_defaults(struct hg_finisher *f, hg_value *values, int done)
{
    if (is_due(f, values, HG_KEY_SITE, done))
        values[HG_KEY_SITE] = f->site;
    if (is_due(f, values, HG_KEY_HARDWARE, done))
        values[HG_KEY_HARDWARE] = f->default_hardware;
    if (is_due(f, values, HG_KEY_NODES, done))
        values[HG_KEY_NODES] = hg_value_of_number(1);
    if (f->judge.worker && is_due(f, values, HG_KEY_STRATEGY, done))
        values[HG_KEY_STRATEGY] = f->single;
    fill_shape(f, values, done);
}

/* ---- Derive ---- */

static int derive(struct hg_finisher *f, hg_value *values, struct hg_errs *errs)
{
    const struct hg_grid *g = f->g;

    for (size_t i = 0; i < g->derives.n; i++) {
        const struct hg_derive *d = &g->derives.items[i];

        f->derived[d->column] = false;
        if (hg_value_is_absent(values[d->column])) {
            if (look_up(f, d->expr, d, d->pointer, values, &values[d->column], errs) < 0)
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

/* ---- Exclude ---- */

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
        hg_value truth = 0;

        if (rule->expr < 0) {
            if (object_matches(rule, values))
                return (int)i;
            continue;
        }
        if (look_up(f, rule->expr, NULL, rule->pointer, values, &truth, errs) < 0)
            return -2;
        if (hg_value_number(truth) != 0)
            return (int)i;
    }
    return -1;
}

/* ---- Can it run? ---- */

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
            return fail(f, d->pointer, &f->memos[d->expr], values, &err, errs);
        }
        json_decref(json);
        f->judged[d->column] = v;
    }
    return 0;
}

static bool because(struct hg_finisher *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static bool because(struct hg_finisher *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&f->why, fmt, ap);
    va_end(ap);
    return true;
}

static bool too_big_for_node(struct hg_finisher *f, const hg_value *values)
{
    const struct hg_hardware *hw = f->hw;
    double gpus = hg_value_number(values[HG_KEY_GPUS_PER_NODE]);
    double tasks = hg_value_number(values[HG_KEY_TASKS_PER_NODE]);
    double cpus = hg_value_number(values[HG_KEY_CPUS_PER_TASK]);
    double per_gpu = hg_value_number(values[HG_KEY_CPUS_PER_GPU]);

    if (gpus > 0 && !hw->gpus_per_node)
        return because(f, "%.0f GPU%s per node asked, %s has none", gpus,
                       hg_text_s((unsigned long long)gpus), hw->name);
    if (gpus > (double)hw->gpus_per_node)
        return because(f, "%.0f GPU%s per node asked, %s has %lld", gpus,
                       hg_text_s((unsigned long long)gpus), hw->name, hw->gpus_per_node);
    if (!hw->cores_per_node)
        return false;
    if (tasks * cpus > (double)hw->cores_per_node)
        return because(f, "%.0f task%s with %.0f core%s each asked, a node of %s has %lld", tasks,
                       hg_text_s((unsigned long long)tasks), cpus,
                       hg_text_s((unsigned long long)cpus), hw->name, hw->cores_per_node);
    if (gpus * per_gpu > (double)hw->cores_per_node)
        return because(f, "%.0f GPU%s with %.0f core%s each asked, a node of %s has %lld", gpus,
                       hg_text_s((unsigned long long)gpus), per_gpu,
                       hg_text_s((unsigned long long)per_gpu), hw->name, hw->cores_per_node);
    return false;
}

static bool above(struct hg_finisher *f, const char *strategy, double n, int limit, const char *one,
                  const char *many)
{
    if (!limit || n <= limit)
        return false;
    return because(f, "strategy %s runs on at most %d %s, %.0f asked", strategy, limit,
                   limit == 1 ? one : many, n);
}

/* An option that only other strategies have would be refused by the worker. */
static bool wrong_option(struct hg_finisher *f, const hg_value *values)
{
    for (size_t i = HG_KEY_COUNT; i < f->g->columns.n; i++) {
        const char *name = f->g->columns.items[i].name;

        if (f->option[i] && !hg_value_is_absent(values[i]) &&
            !hg_strategy_has_option(f->strategy->name, name))
            return because(f, "strategy %s has no %s, that is an option of %s", f->strategy->name,
                           name, hg_option_owners(name));
    }
    return false;
}

static bool wrong_for_strategy(struct hg_finisher *f, const hg_value *values)
{
    double nodes = hg_value_number(values[HG_KEY_NODES]);
    double per_node = hg_value_number(values[HG_KEY_TASKS_PER_NODE]), tasks = nodes * per_node;
    double gpus_per_node = hg_value_number(values[HG_KEY_GPUS_PER_NODE]);
    double gpus = nodes * gpus_per_node;
    const struct hg_strategy *s = f->strategy;

    if (above(f, s->name, nodes, s->max_nodes, "node", "nodes") ||
        above(f, s->name, gpus > 0 ? gpus : tasks, s->max_devices, "device", "devices") ||
        above(f, s->name, tasks, s->max_tasks, "task", "tasks"))
        return true;
    if (wrong_option(f, values))
        return true;
    if (f->devices >= 0 && gpus_per_node > 0 && hg_value_number(values[f->devices]) > gpus_per_node)
        return because(f, "%.0f devices asked, the cell has %.0f GPU%s per node",
                       hg_value_number(values[f->devices]), gpus_per_node,
                       hg_text_s((unsigned long long)gpus_per_node));
    if (s->max_tasks == 1 || gpus_per_node <= 0 || per_node == gpus_per_node)
        return false;
    return because(f,
                   "strategy %s runs one task per GPU, %.0f task%s and %.0f GPU%s per node asked",
                   s->name, per_node, hg_text_s((unsigned long long)per_node), gpus_per_node,
                   hg_text_s((unsigned long long)gpus_per_node));
}

static const struct hg_strategy *look_up_strategy(struct hg_finisher *f, hg_value name)
{
    const char *text;

    if (name == f->strategy_name)
        return f->strategy;
    text = hg_pool_string(f->g->pool, name);
    f->strategy_name = name;
    f->strategy = text ? hg_strategy_find(text) : NULL;
    return f->strategy;
}

static int no_hardware(struct hg_finisher *f, struct hg_errs *errs)
{
    struct hg_buf names = HG_BUF_INIT;
    struct hg_err *err;

    for (size_t i = 0; i < f->m->site->n_hardware; i++)
        hg_buf_printf(&names, "%s%s", i ? ", " : "", f->m->site->hardware[i].name);
    err = hg_json_error(&f->m->doc, "", errs,
                        "a cell names no hardware, and site %s has no default", f->m->site->name);
    hg_err_hint(err, "add \"hardware\" to the workload or the axes; known: %s", hg_buf_str(&names));
    hg_buf_done(&names);
    return -1;
}

static int judge_fate(struct hg_finisher *f, const hg_value *values, struct hg_outcome *out,
                      struct hg_errs *errs)
{
    if (judge_derived(f, values, errs) < 0)
        return -1;
    if (!look_up_hardware(f, values[HG_KEY_HARDWARE]))
        return no_hardware(f, errs);
    hg_buf_clear(&f->why);
    if (f->judge.worker)
        look_up_strategy(f, values[HG_KEY_STRATEGY]);
    if (too_big_for_node(f, values) ||
        (f->judge.worker && f->strategy && wrong_for_strategy(f, values))) {
        out->fate = HG_CELL_SKIPPED;
        out->why = hg_buf_str(&f->why);
    }
    return 0;
}

int hg_finish(struct hg_finisher *f, hg_value *values, struct hg_outcome *out, struct hg_errs *errs)
{
    *out = (struct hg_outcome){ .fate = HG_CELL_RUNS, .rule = -1 };
    fill_defaults(f, values, 0);
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
