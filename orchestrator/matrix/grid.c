/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/alloc.h"
#include "base/vec.h"
#include "matrix/alt.h"

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
