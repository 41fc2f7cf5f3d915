/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/value.h"

const json_t *hg_generator_of(const json_t *json, enum hg_alt_kind *kind)
{
    const json_t *range = json_object_get(json, "range");
    const json_t *geometric = json_object_get(json, "geometric");

    if (json_object_size(json) != 1)
        return NULL;
    *kind = range ? HG_ALT_RANGE : HG_ALT_GEOMETRIC;
    return json_is_array(range) ? range : json_is_array(geometric) ? geometric : NULL;
}

double hg_generated(const struct hg_alt *alt, double i)
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

int hg_generator_fill(const json_t *list, struct hg_alt *alt, struct hg_err *err)
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

#define NAMES_MAX 256

int hg_grid_column(const struct hg_grid *g, const char *name)
{
    for (size_t i = 0; i < g->columns.n; i++)
        if (strcmp(g->columns.items[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool is_always_there(const struct hg_grid *g, int column)
{
    return column < HG_KEY_COUNT &&
           (column != HG_COLUMN_STRATEGY || g->columns.items[column].given);
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
        values[axis->column] = hg_value_of_number(hg_generated(alt, at));
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
