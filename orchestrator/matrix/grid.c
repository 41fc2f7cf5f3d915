/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/matrix.h"

#define NAMES_MAX 256
#define MATCH_VALUES_MAX 100000
/* No person writes more; without bounds a file of 16 MB could keep us busy for hours. */
#define KEYS_MAX 2048
#define RULES_MAX 5000
#define EXPRS_MAX 300
#define EXPR_TEXT_MAX 4096

/* ---- Columns ---- */

struct parse {
    struct hg_grid *g;
    const struct hg_matrix *m;
    struct hg_judge judge;
    struct hg_errs *errs;
    bool full; /* of keys; said once */
};

int hg_grid_column(const struct hg_grid *g, const char *name)
{
    for (size_t i = 0; i < g->columns.n; i++)
        if (strcmp(g->columns.items[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Column of a name, made if need be. -1: there are too many (reported). */
static int add_column(struct parse *p, const char *name)
{
    int found = hg_grid_column(p->g, name), key = hg_key_find(name);
    struct hg_buf prefix = HG_BUF_INIT;
    struct hg_column *c;

    if (found >= 0)
        return found;
    if (p->g->columns.n == KEYS_MAX) {
        if (!p->full)
            hg_json_error(&p->m->doc, "", p->errs, "more than %d different keys", KEYS_MAX);
        p->full = true;
        return -1;
    }
    c = HG_VEC_PUSH(&p->g->columns);
    *c = (struct hg_column){ .start = HG_VALUE_ABSENT, .note = name[0] == '_', .derive = -1 };
    c->identity = key >= 0 ? hg_keys[key].identity : !c->note;
    hg_json_dump_string(name, strlen(name), &prefix);
    hg_buf_puts(&prefix, ":");
    c->prefix_len = prefix.len;
    c->prefix = hg_buf_detach(&prefix);
    c->name = hg_strdup(name);
    return (int)p->g->columns.n - 1;
}

static bool is_always_there(const struct hg_grid *g, int column)
{
    return column < HG_KEY_COUNT && (column != HG_KEY_STRATEGY || g->columns.items[column].given);
}

bool hg_grid_has_key(const struct hg_grid *g, const char *name)
{
    int column = hg_grid_column(g, name);

    return column >= 0 && (g->columns.items[column].given || is_always_there(g, column));
}

void hg_grid_suggest(const struct hg_grid *g, const char *name, struct hg_err *err)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (size_t i = 0; i < g->columns.n && n < NAMES_MAX; i++)
        if (g->columns.items[i].given)
            names[n++] = g->columns.items[i].name;
    hg_text_suggest(err, name, names, n);
}

/* ---- Values with their places ---- */

static int report(struct parse *p, const char *pointer, bool at_key, const struct hg_err *err)
{
    struct hg_err *e = at_key ? hg_json_error_key(&p->m->doc, pointer, p->errs, "%s", err->text)
                              : hg_json_error(&p->m->doc, pointer, p->errs, "%s", err->text);

    e->code = err->code;
    if (err->hint[0])
        hg_err_hint(e, "%s", err->hint);
    return -1;
}

static int check_key(struct parse *p, const char *key, const char *pointer)
{
    struct hg_err err = HG_ERR_INIT;

    return hg_key_judge(&p->judge, key, &err) < 0 ? report(p, pointer, true, &err) : 0;
}

static int add_value(struct parse *p, const char *key, const json_t *json, const char *pointer,
                     hg_value *value)
{
    struct hg_err err = HG_ERR_INIT;

    if (hg_member_judge(&p->judge, key, json, &err) < 0)
        return report(p, pointer, false, &err);
    *value = hg_pool_add(p->g->pool, json);
    return 0;
}

/* ---- Axes ---- */

static int parse_product(struct parse *p, const json_t *object, const char *pointer,
                         struct hg_product *product);

static void free_product(struct hg_product *product);

static void free_axis(struct hg_axis *axis)
{
    for (size_t i = 0; i < axis->n; i++)
        if (axis->items[i].product) {
            free_product(axis->items[i].product);
            free(axis->items[i].product);
        }
    HG_VEC_DONE(axis);
    free(axis->columns);
    free(axis->name);
}

static void free_product(struct hg_product *product)
{
    for (size_t i = 0; i < product->n; i++)
        free_axis(&product->items[i]);
    HG_VEC_DONE(product);
}

/* An object with the one member "range" or "geometric" whose value is a list. */
static const json_t *generator_of(const json_t *json, enum hg_alt_kind *kind)
{
    const json_t *range = json_object_get(json, "range");
    const json_t *geometric = json_object_get(json, "geometric");

    if (json_object_size(json) != 1)
        return NULL;
    *kind = range ? HG_ALT_RANGE : HG_ALT_GEOMETRIC;
    return json_is_array(range) ? range : json_is_array(geometric) ? geometric : NULL;
}

static double generated(const struct hg_alt *alt, double i)
{
    return hg_value_round(alt->kind == HG_ALT_RANGE ? alt->first + i * alt->step
                                                    : alt->first * pow(alt->step, i));
}

/* How many values lie between first and last. The tolerance forgives what decimal steps lose in
 * binary: 0.3 / 0.1 is a little less than 3. */
static double count_steps(double q)
{
    return floor(q + 1e-9 + q * 1e-13) + 1;
}

static int size_range(struct hg_alt *alt, double last, struct hg_err *err)
{
    if (alt->step == 0)
        return hg_err_set(err, HG_E_INPUT, "a range with step 0 never ends");
    alt->size = count_steps((last - alt->first) / alt->step);
    if ((last - alt->first) / alt->step >= 0)
        return 0;
    hg_err_set(err, HG_E_INPUT, "the range from %.15g to %.15g in steps of %.15g is empty",
               alt->first, last, alt->step);
    return hg_err_hint(err, "a range that goes down needs a negative step");
}

static int size_geometric(struct hg_alt *alt, double last, struct hg_err *err)
{
    double q;

    if (alt->first == 0 || last / alt->first <= 0 || alt->step <= 0 || alt->step == 1) {
        hg_err_set(err, HG_E_INPUT, "no geometric series leads from %.15g to %.15g by factor %.15g",
                   alt->first, last, alt->step);
        return hg_err_hint(err, "first and last have one sign, the factor is above 0 and not 1");
    }
    q = log(last / alt->first) / log(alt->step);
    alt->size = count_steps(q);
    return q >= -1e-12 ? 0
                       : hg_err_set(err, HG_E_INPUT,
                                    "the geometric series from %.15g to %.15g by %.15g is empty",
                                    alt->first, last, alt->step);
}

static int fill_generator(const json_t *list, struct hg_alt *alt, struct hg_err *err)
{
    size_t n = json_array_size(list), i;
    double last = json_number_value(json_array_get(list, 1));
    json_t *number;

    if (n > 3 || n < (alt->kind == HG_ALT_RANGE ? 2 : 3))
        return hg_err_set(err, HG_E_INPUT,
                          alt->kind == HG_ALT_RANGE
                              ? "a range is [first, last] or [first, last, step]"
                              : "a geometric series is [first, last, factor]");
    json_array_foreach((json_t *)list, i, number) {
        if (!json_is_number(number))
            return hg_err_set(err, HG_E_INPUT, "expected a number, found %s",
                              hg_json_type_name(number));
    }
    alt->first = json_number_value(json_array_get(list, 0));
    alt->step = n == 3 ? json_number_value(json_array_get(list, 2)) : 1;
    return alt->kind == HG_ALT_RANGE ? size_range(alt, last, err) : size_geometric(alt, last, err);
}

static int judge_generated(struct parse *p, const char *key, const struct hg_alt *alt, double i,
                           struct hg_err *err)
{
    json_t *number = hg_json_number(generated(alt, i));
    int rc = hg_member_judge(&p->judge, key, number, err);

    json_decref(number);
    return rc;
}

/* The values are judged at their ends, and where they would stop being whole. */
static int judge_generator(struct parse *p, const char *key, const struct hg_alt *alt,
                           struct hg_err *err)
{
    double ends[] = { 0, alt->size - 1, 1 };

    for (int i = 0; i < (alt->size > 1 ? 3 : 1); i++)
        if (judge_generated(p, key, alt, ends[i], err) < 0)
            return -1;
    if (alt->kind == HG_ALT_GEOMETRIC && alt->size <= MATCH_VALUES_MAX)
        for (double i = 2; i < alt->size - 1; i++)
            if (judge_generated(p, key, alt, i, err) < 0)
                return -1;
    return 0;
}

static int parse_generator(struct parse *p, const char *key, const json_t *list,
                           const char *pointer, struct hg_alt *alt)
{
    struct hg_err err = HG_ERR_INIT;

    if (fill_generator(list, alt, &err) < 0 || judge_generator(p, key, alt, &err) < 0)
        return report(p, pointer, false, &err);
    return 0;
}

static void axis_sets(struct parse *p, struct hg_axis *axis, int column)
{
    for (size_t i = 0; i < axis->n_columns; i++)
        if (axis->columns[i] == column)
            return;
    axis->columns = hg_realloc(axis->columns, (axis->n_columns + 1) * sizeof *axis->columns);
    axis->columns[axis->n_columns++] = column;
    p->g->columns.items[column].given = true;
}

static int parse_nested(struct parse *p, struct hg_axis *axis, const json_t *json,
                        const char *pointer, struct hg_alt *alt)
{
    alt->kind = HG_ALT_PRODUCT;
    alt->product = hg_alloc_zeroed(1, sizeof *alt->product);
    if (parse_product(p, json, pointer, alt->product) < 0)
        return -1;
    alt->size = alt->product->size;
    for (size_t i = 0; i < alt->product->n; i++)
        for (size_t k = 0; k < alt->product->items[i].n_columns; k++)
            axis_sets(p, axis, alt->product->items[i].columns[k]);
    return 0;
}

/* The axis's own key becomes a column with its first value. */
static int use_own_key(struct parse *p, struct hg_axis *axis, const char *key_pointer)
{
    if (axis->column >= 0)
        return 0;
    if (axis->column == -2 || check_key(p, axis->name, key_pointer) < 0) {
        axis->column = -2; /* reported already */
        return -1;
    }
    axis->column = add_column(p, axis->name);
    if (axis->column < 0)
        return -1;
    axis_sets(p, axis, axis->column);
    return 0;
}

static int parse_alt(struct parse *p, struct hg_axis *axis, const json_t *json, const char *pointer,
                     const char *key_pointer)
{
    struct hg_alt *alt = HG_VEC_PUSH(axis);
    enum hg_alt_kind kind = HG_ALT_VALUE;
    const json_t *list = generator_of(json, &kind);

    *alt = (struct hg_alt){ .size = 1, .value = HG_VALUE_ABSENT };
    if (json_is_object(json) && !list)
        return parse_nested(p, axis, json, pointer, alt);
    if (use_own_key(p, axis, key_pointer) < 0)
        return -1;
    if (!list)
        return add_value(p, axis->name, json, pointer, &alt->value);
    alt->kind = kind;
    return parse_generator(p, axis->name, list, pointer, alt);
}

static int parse_axis(struct parse *p, const char *name, const json_t *json, const char *pointer,
                      struct hg_axis *axis)
{
    struct hg_buf path = HG_BUF_INIT;
    json_t *item;
    size_t i;
    int rc = 0;

    axis->name = hg_strdup(name);
    if (!json_is_array(json))
        rc = parse_alt(p, axis, json, pointer, pointer);
    if (json_is_array(json) && json_array_size(json) == 0) {
        hg_json_error(&p->m->doc, pointer, p->errs,
                      "an empty list: \"%s\" has no values, so there are no cells", name);
        rc = -1;
    }
    json_array_foreach((json_t *)json, i, item) {
        hg_buf_clear(&path);
        hg_buf_printf(&path, "%s/%zu", pointer, i);
        if (parse_alt(p, axis, item, hg_buf_str(&path), pointer) < 0)
            rc = -1;
    }
    for (i = 0; i < axis->n; i++)
        axis->size += axis->items[i].size;
    hg_buf_done(&path);
    return rc;
}

/* Two axes of one product that set the same key would overwrite each other. */
static int check_overlap(struct parse *p, const struct hg_product *product, const char *pointer)
{
    const struct hg_axis *last = &product->items[product->n - 1];
    int rc = 0;

    for (size_t i = 0; i + 1 < product->n; i++)
        for (size_t k = 0; k < last->n_columns; k++)
            for (size_t j = 0; j < product->items[i].n_columns; j++)
                if (product->items[i].columns[j] == last->columns[k]) {
                    hg_json_error_key(&p->m->doc, pointer, p->errs,
                                      "\"%s\" and \"%s\" can both set \"%s\"",
                                      product->items[i].name, last->name,
                                      p->g->columns.items[last->columns[k]].name);
                    rc = -1;
                }
    return rc;
}

static int parse_product(struct parse *p, const json_t *object, const char *pointer,
                         struct hg_product *product)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;
    int rc = 0;

    product->size = 1;
    json_object_foreach((json_t *)object, name, json) {
        struct hg_axis *axis = HG_VEC_PUSH(product);

        *axis = (struct hg_axis){ .column = -1 };
        hg_buf_clear(&path);
        hg_buf_puts(&path, pointer);
        hg_json_pointer_push(&path, name);
        if (parse_axis(p, name, json, hg_buf_str(&path), axis) < 0 ||
            check_overlap(p, product, hg_buf_str(&path)) < 0)
            rc = -1;
        product->size *= axis->size;
    }
    hg_buf_done(&path);
    return rc;
}

static int add_source(struct parse *p, const json_t *object, const char *pointer)
{
    struct hg_source *source = HG_VEC_PUSH(&p->g->sources);

    *source = (struct hg_source){ .product.size = 1 };
    snprintf(source->pointer, sizeof source->pointer, "%s", pointer);
    if (object && !json_is_object(object)) {
        hg_json_error(&p->m->doc, pointer, p->errs, "expected an object, found %s",
                      hg_json_type_name(object));
        return -1;
    }
    if (object && parse_product(p, object, pointer, &source->product) < 0)
        return -1;
    if (p->g->size <= HG_GRID_CELLS_MAX)
        source->first = (uint64_t)p->g->size;
    p->g->size += source->product.size;
    return 0;
}

static void parse_sources(struct parse *p)
{
    const json_t *include = p->m->include;
    char pointer[32];

    if (p->m->axes)
        add_source(p, p->m->axes, "/axes");
    for (size_t i = 0; i < json_array_size(include); i++) {
        snprintf(pointer, sizeof pointer, "/include/%zu", i);
        add_source(p, json_array_get(include, i), pointer);
    }
    if (!p->m->axes && !include)
        add_source(p, NULL, "");
    if (!p->g->sources.n)
        hg_json_error(&p->m->doc, "/include", p->errs, "an empty matrix: there are no cells");
}

static void check_size(struct parse *p)
{
    double cells = p->g->size * (double)p->m->repeats;
    const char *pointer = p->m->axes ? "/axes" : p->m->include ? "/include" : "";
    struct hg_err *err;

    if (cells <= HG_GRID_CELLS_MAX)
        return;
    err = hg_json_error(&p->m->doc, pointer, p->errs,
                        cells < 1e18 ? "%.0f cells before exclusion; the limit is %d"
                                     : "%.3g cells before exclusion; the limit is %d",
                        cells, HG_GRID_CELLS_MAX);
    hg_err_hint(err, "an object inside an axis keeps values together that belong together, instead "
                     "of multiplying them");
}

/* ---- Rules ---- */

static int unknown_key(struct parse *p, const char *pointer, bool at_key, const char *name)
{
    struct hg_err *err =
        at_key ? hg_json_error_key(&p->m->doc, pointer, p->errs, "no cell has \"%s\"", name)
               : hg_json_error(&p->m->doc, pointer, p->errs, "no cell has \"%s\"", name);

    hg_grid_suggest(p->g, name, err);
    return -1;
}

/* Errors found with a pattern in front: "x.json:3:5: error: /exclude/0". Yours. */
static char *place_of(struct parse *p, const char *pointer)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err *e = hg_json_error(&p->m->doc, pointer, &errs, "x");
    char *place = hg_str_printf("%s:%d:%d: error: %s", p->m->doc.file, e->line, e->column, pointer);

    hg_errs_done(&errs);
    return place;
}

static int add_expr(struct parse *p, const json_t *json, const char *pointer)
{
    struct hg_err err = HG_ERR_INIT;
    char *place;
    int i;

    if (json_string_length(json) > EXPR_TEXT_MAX || hg_exprs_count(p->g->exprs) == EXPRS_MAX) {
        hg_json_error(&p->m->doc, pointer, p->errs,
                      "a matrix holds at most %d expressions of at most %d characters each",
                      EXPRS_MAX, EXPR_TEXT_MAX);
        return -1;
    }
    place = place_of(p, pointer);
    i = hg_exprs_add(p->g->exprs, json_string_value(json), place, &err);
    free(place);
    return i < 0 ? report(p, pointer, false, &err) : i;
}

static int match_generator(struct parse *p, const json_t *list, enum hg_alt_kind kind,
                           const char *pointer, struct hg_match *match)
{
    struct hg_alt alt = { .kind = kind };
    struct hg_err err = HG_ERR_INIT;

    if (fill_generator(list, &alt, &err) < 0)
        return report(p, pointer, false, &err);
    if (alt.size > MATCH_VALUES_MAX) {
        hg_json_error(&p->m->doc, pointer, p->errs, "more than %d values; write a jq expression",
                      MATCH_VALUES_MAX);
        return -1;
    }
    match->values = hg_alloc_zeroed((size_t)alt.size, sizeof *match->values);
    for (; (double)match->n < alt.size; match->n++)
        match->values[match->n] = hg_value_of_number(generated(&alt, (double)match->n));
    return 0;
}

static int parse_match(struct parse *p, const char *name, const json_t *json, const char *pointer,
                       struct hg_match *match)
{
    enum hg_alt_kind kind = HG_ALT_VALUE;
    const json_t *list = generator_of(json, &kind);
    bool many = json_is_array(json);
    size_t n = many ? json_array_size(json) : 1;

    if (!hg_grid_has_key(p->g, name))
        return unknown_key(p, pointer, true, name);
    match->column = hg_grid_column(p->g, name);
    if (list)
        return match_generator(p, list, kind, pointer, match);
    match->values = hg_alloc_zeroed(n, sizeof *match->values);
    for (; match->n < n; match->n++)
        match->values[match->n] =
            hg_pool_add(p->g->pool, many ? json_array_get(json, match->n) : json);
    return 0;
}

static int parse_object_rule(struct parse *p, const json_t *object, struct hg_rule *rule)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;
    int rc = 0;

    rule->matches = hg_alloc_zeroed(json_object_size(object), sizeof *rule->matches);
    json_object_foreach((json_t *)object, name, json) {
        hg_buf_clear(&path);
        hg_buf_puts(&path, rule->pointer);
        hg_json_pointer_push(&path, name);
        if (parse_match(p, name, json, hg_buf_str(&path), &rule->matches[rule->n++]) < 0)
            rc = -1;
    }
    if (!rule->n) {
        hg_json_error(&p->m->doc, rule->pointer, p->errs, "an empty rule would exclude every cell");
        rc = -1;
    }
    hg_buf_done(&path);
    return rc;
}

static int parse_rule(struct parse *p, const json_t *json, struct hg_rule *rule)
{
    if (json_is_object(json))
        return parse_object_rule(p, json, rule);
    if (!json_is_string(json)) {
        hg_json_error(&p->m->doc, rule->pointer, p->errs,
                      "expected an object or a jq expression in quotes, found %s",
                      hg_json_type_name(json));
        return -1;
    }
    rule->expr = add_expr(p, json, rule->pointer);
    return rule->expr < 0 ? -1 : 0;
}

static void parse_rules(struct parse *p)
{
    const json_t *list = p->m->exclude;

    if (json_array_size(list) > RULES_MAX) {
        hg_json_error(&p->m->doc, "/exclude", p->errs, "%zu rules; the limit is %d",
                      json_array_size(list), RULES_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct hg_rule *rule = HG_VEC_PUSH(&p->g->rules);

        *rule = (struct hg_rule){ .expr = -1 };
        snprintf(rule->pointer, sizeof rule->pointer, "/exclude/%zu", i);
        parse_rule(p, json_array_get(list, i), rule);
    }
}

static int parse_derive(struct parse *p, const char *name, const json_t *json, const char *pointer)
{
    struct hg_derive *d;
    int column;

    if (check_key(p, name, pointer) < 0)
        return -1;
    column = add_column(p, name);
    if (column < 0)
        return -1;
    d = HG_VEC_PUSH(&p->g->derives);
    *d = (struct hg_derive){ .column = column, .expr = -1, .pointer = hg_strdup(pointer) };
    p->g->columns.items[column].given = true;
    p->g->columns.items[column].derive = (int)p->g->derives.n - 1;
    if (!json_is_string(json)) {
        hg_err_hint(hg_json_error(&p->m->doc, pointer, p->errs,
                                  "expected a jq expression in quotes, found %s",
                                  hg_json_type_name(json)),
                    "a constant belongs into \"workload\"");
        return -1;
    }
    d->expr = add_expr(p, json, pointer);
    return d->expr < 0 ? -1 : 0;
}

static void parse_derives(struct parse *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    json_object_foreach(p->m->derive, name, json) {
        hg_buf_clear(&path);
        hg_buf_puts(&path, "/derive");
        hg_json_pointer_push(&path, name);
        parse_derive(p, name, json, hg_buf_str(&path));
    }
    hg_buf_done(&path);
}

static int parse_overlay(struct parse *p, const char *name, const json_t *json, const char *pointer)
{
    hg_value value = HG_VALUE_ABSENT;
    enum hg_alt_kind kind;

    if (!hg_grid_has_key(p->g, name))
        return unknown_key(p, pointer, true, name);
    if ((json_is_array(json) && json_array_size(json) != 1) || generator_of(json, &kind)) {
        hg_err_hint(hg_json_error(&p->m->doc, pointer, p->errs, "a baseline has one value here"),
                    "a list that is one value is written [[...]]");
        return -1;
    }
    if (json_is_array(json))
        json = json_array_get(json, 0);
    if (add_value(p, name, json, pointer, &value) < 0)
        return -1;
    *HG_VEC_PUSH(&p->g->baseline) = (struct hg_overlay){ hg_grid_column(p->g, name), value };
    return 0;
}

static void parse_baseline(struct parse *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    p->g->has_baseline = p->m->baseline != NULL;
    json_object_foreach(p->m->baseline, name, json) {
        hg_buf_clear(&path);
        hg_buf_puts(&path, "/baseline");
        hg_json_pointer_push(&path, name);
        parse_overlay(p, name, json, hg_buf_str(&path));
    }
    hg_buf_done(&path);
}

/* Members that an expression surely reads must exist somewhere; a slip of the pen would compare
 * null, and null is less than any number. */
static void check_names(struct parse *p, int expr, const char *pointer)
{
    const struct hg_expr_uses *u = hg_exprs_uses(p->g->exprs, expr);

    for (size_t i = 0; i < u->n; i++)
        if (u->certain[i] && !hg_grid_has_key(p->g, u->names[i]))
            unknown_key(p, pointer, false, u->names[i]);
}

static const char *pointer_of_expr(const struct hg_grid *g, int expr)
{
    for (size_t i = 0; i < g->derives.n; i++)
        if (g->derives.items[i].expr == expr)
            return g->derives.items[i].pointer;
    for (size_t i = 0; i < g->rules.n; i++)
        if (g->rules.items[i].expr == expr)
            return g->rules.items[i].pointer;
    return "";
}

static void compile_exprs(struct parse *p)
{
    for (;;) {
        struct hg_err err = HG_ERR_INIT;
        int bad = -1;

        if (hg_exprs_compile(p->g->exprs, &bad, &err) == 0)
            break;
        report(p, pointer_of_expr(p->g, bad), false, &err);
        if (bad < 0)
            return;
        hg_exprs_drop(p->g->exprs, bad);
    }
    for (size_t i = 0; i < p->g->rules.n; i++)
        if (p->g->rules.items[i].expr >= 0)
            check_names(p, p->g->rules.items[i].expr, p->g->rules.items[i].pointer);
}

/* ---- The start of cells, and what their ids hold ---- */

static void parse_start(struct parse *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    json_object_foreach(p->m->workload.start, name, json) {
        int column;

        hg_buf_clear(&path);
        hg_buf_puts(&path, "/workload");
        hg_json_pointer_push(&path, name);
        if (check_key(p, name, hg_buf_str(&path)) < 0)
            continue;
        column = add_column(p, name);
        if (column < 0)
            break;
        p->g->columns.items[column].given = true;
        add_value(p, name, json, hg_buf_str(&path), &p->g->columns.items[column].start);
    }
    hg_buf_done(&path);
}

static const struct hg_grid *sorting; /* qsort has no context */

static int compare_columns(const void *a, const void *b)
{
    return hg_json_compare_keys(sorting->columns.items[*(const int *)a].name,
                                sorting->columns.items[*(const int *)b].name);
}

static void sort_columns(struct hg_grid *g)
{
    g->sorted = hg_alloc_zeroed(g->columns.n, sizeof *g->sorted);
    for (size_t i = 0; i < g->columns.n; i++)
        if (g->columns.items[i].identity)
            g->sorted[g->n_sorted++] = (int)i;
    sorting = g;
    qsort(g->sorted, g->n_sorted, sizeof *g->sorted, compare_columns);
}

static void make_identity(struct hg_grid *g, const struct hg_workload *w)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *o = json_object();

    if (w->program)
        json_object_set_new(o, "program", json_string(w->program));
    if (w->words)
        json_object_set(o, "command", w->words);
    if (w->launch)
        json_object_set(o, "launch", w->launch);
    if (w->env)
        json_object_set(o, "env", w->env);
    if (w->files)
        json_object_set(o, "files", w->files);
    hg_json_dump(o, HG_JSON_SORT, &text);
    json_decref(o);
    g->identity_len = text.len;
    g->identity = hg_buf_detach(&text);
}

/* ---- Whole ---- */

static void add_known_columns(struct parse *p)
{
    struct hg_column *c;

    for (int i = 0; i < HG_KEY_COUNT; i++)
        add_column(p, hg_keys[i].name);
    c = p->g->columns.items;
    c[HG_KEY_STRATEGY].given = p->judge.worker;
    c[HG_KEY_SITE].given = c[HG_KEY_HARDWARE].given = c[HG_KEY_NODES].given = true;
    c[HG_KEY_GPUS_PER_NODE].given = c[HG_KEY_TASKS_PER_NODE].given = c[HG_KEY_REPEAT].given = true;
}

struct hg_grid *hg_grid_create(const struct hg_matrix *m, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_grid *g = hg_alloc_zeroed(1, sizeof *g);
    struct parse p = {
        .g = g, .m = m, .judge = { m->site, m->workload.program != NULL }, .errs = errs
    };

    g->pool = hg_pool_create();
    g->exprs = hg_exprs_create();
    add_known_columns(&p);
    parse_start(&p);
    parse_sources(&p);
    parse_derives(&p);
    parse_rules(&p);
    parse_baseline(&p);
    compile_exprs(&p);
    if (errs->n + errs->dropped == before)
        check_size(&p);
    if (errs->n + errs->dropped == before) {
        sort_columns(g);
        make_identity(g, &m->workload);
    }
    return g;
}

static void free_rule(struct hg_rule *rule)
{
    for (size_t i = 0; i < rule->n; i++)
        free(rule->matches[i].values);
    free(rule->matches);
}

void hg_grid_free(struct hg_grid *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->columns.n; i++) {
        free(g->columns.items[i].name);
        free(g->columns.items[i].prefix);
    }
    for (size_t i = 0; i < g->sources.n; i++)
        free_product(&g->sources.items[i].product);
    for (size_t i = 0; i < g->rules.n; i++)
        free_rule(&g->rules.items[i]);
    for (size_t i = 0; i < g->derives.n; i++)
        free(g->derives.items[i].pointer);
    HG_VEC_DONE(&g->columns);
    HG_VEC_DONE(&g->sources);
    HG_VEC_DONE(&g->rules);
    HG_VEC_DONE(&g->derives);
    HG_VEC_DONE(&g->baseline);
    hg_pool_free(g->pool);
    hg_exprs_free(g->exprs);
    free(g->sorted);
    free(g->identity);
    free(g);
}

/* ---- From rank to values ---- */

static void set_product(const struct hg_grid *g, const struct hg_product *product, uint32_t rank,
                        hg_value *values);

static void set_axis(const struct hg_grid *g, const struct hg_axis *axis, uint32_t at,
                     hg_value *values)
{
    const struct hg_alt *alt = axis->items;

    for (size_t i = 0; i < axis->n_columns; i++)
        values[axis->columns[i]] = g->columns.items[axis->columns[i]].start;
    if (axis->size == (double)axis->n) { /* each alternative one value: the usual case */
        alt += at;
        at = 0;
    }
    for (; at >= alt->size; alt++)
        at -= (uint32_t)alt->size;
    if (alt->kind == HG_ALT_PRODUCT)
        set_product(g, alt->product, at, values);
    else if (alt->kind == HG_ALT_VALUE)
        values[axis->column] = alt->value;
    else
        values[axis->column] = hg_value_of_number(generated(alt, at));
}

static void set_product(const struct hg_grid *g, const struct hg_product *product, uint32_t rank,
                        hg_value *values)
{
    for (size_t i = product->n; i-- > 0;) {
        uint32_t size = (uint32_t)product->items[i].size;

        set_axis(g, &product->items[i], rank % size, values);
        rank /= size;
    }
}

static void begin_source(const struct hg_grid *g, struct hg_cursor *c, size_t source,
                         hg_value *values)
{
    size_t n = g->sources.items[source].product.n;

    if (n > c->cap || !c->at) {
        free(c->at);
        free(c->rest);
        c->cap = n ? n : 1;
        c->at = hg_alloc(c->cap * sizeof *c->at);
        c->rest = hg_alloc(c->cap * sizeof *c->rest);
    }
    for (size_t i = 0; i < n; i++)
        c->at[i] = c->rest[i] = UINT32_MAX;
    for (size_t i = 0; i < g->columns.n; i++)
        values[i] = g->columns.items[i].start;
    c->source = source;
    c->placed = true;
}

void hg_grid_place(const struct hg_grid *g, struct hg_cursor *c, size_t source, uint64_t rank,
                   hg_value *values)
{
    const struct hg_product *product = &g->sources.items[source].product;
    uint32_t left = (uint32_t)rank;

    if (!c->placed || c->source != source)
        begin_source(g, c, source, values);
    for (size_t i = product->n; i-- > 0;) {
        uint32_t size = (uint32_t)product->items[i].size;
        uint32_t rest = left / size, at = left - rest * size;

        if (at != c->at[i])
            set_axis(g, &product->items[i], at, values);
        c->at[i] = at;
        if (rest == c->rest[i])
            break; /* the slower axes stand as they stood */
        c->rest[i] = rest;
        left = rest;
    }
}

void hg_cursor_done(struct hg_cursor *c)
{
    free(c->at);
    free(c->rest);
    *c = (struct hg_cursor){ 0 };
}
