/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_GRID_H
#define HG_MATRIX_GRID_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "contract/keys.h"
#include "matrix/expr.h"
#include "matrix/value.h"

/* A matrix made ready for walking: every key has a column, every cell is an array of values by
 * column. Made by hg_grid_compile; read-only afterwards. */

#define HG_GRID_CELLS_MAX 10000000 /* cells before exclusion */

struct hg_column {
    char *name;
    char *prefix; /* "\"name\":", canonical */
    size_t prefix_len;
    hg_value start; /* the workload's value */
    bool note;
    bool identity; /* part of the id */
    bool given;    /* some cell can have it */
    bool list;     /* {{key...}} wants a list */
    bool flag;     /* {{key?text}} wants true or false */
    int derive;    /* index of the derive rule that makes it, -1: none */
};

enum hg_alt_kind { HG_ALT_VALUE, HG_ALT_RANGE, HG_ALT_GEOMETRIC, HG_ALT_PRODUCT };

struct hg_product;

/* One alternative of an axis: a value, the values of a generator, or the cells of a product. */
struct hg_alt {
    enum hg_alt_kind kind;
    hg_value value;
    double first, step; /* RANGE: first + i step; GEOMETRIC: first * step^i */
    double size;        /* values or cells it stands for */
    struct hg_product *product;
};

struct hg_axis {
    char *name;
    struct hg_alt *items;
    size_t n, cap;
    int column;   /* for values; -1 when no alternative is one */
    int *columns; /* all it can set */
    size_t n_columns;
    double size;
};

struct hg_product {
    struct hg_axis *items;
    size_t n, cap;
    double size;
};

/* axes, or one entry of include. */
struct hg_source {
    struct hg_product product;
    uint64_t first;   /* rank, in a round, of its first cell */
    char pointer[32]; /* "/axes", "/include/3"; "" for the one cell of a matrix without both */
};

/* One member of an object in exclude: column has one of the values. */
struct hg_match {
    int column;
    hg_value *values;
    size_t n;
};

struct hg_rule {
    struct hg_match *matches; /* of an object */
    size_t n;
    int expr; /* of a string, else -1 */
    char pointer[32];
};

struct hg_derive {
    int column, expr;
    char *pointer;
};

struct hg_overlay {
    int column;
    hg_value value;
};

struct hg_grid {
    struct hg_pool *pool;
    struct hg_exprs *exprs;
    struct {
        struct hg_column *items;
        size_t n, cap;
    } columns; /* the first HG_KEY_COUNT are hg_keys */
    struct {
        struct hg_source *items;
        size_t n, cap;
    } sources;
    struct {
        struct hg_rule *items;
        size_t n, cap;
    } rules;
    struct {
        struct hg_derive *items;
        size_t n, cap;
    } derives;
    struct {
        struct hg_overlay *items;
        size_t n, cap;
    } baseline;
    bool has_baseline;
    bool worker; /* the program is hpcgrid-worker, or was meant to be */
    double size; /* cells of one round */
    int *sorted; /* identity columns in canonical order */
    size_t n_sorted;
    char *identity; /* canonical text of what the id holds of the workload: {"program":...} */
    size_t identity_len;
};

void hg_grid_free(struct hg_grid *g);

/* Column of a name, -1 if there is none. */
int hg_grid_column(const struct hg_grid *g, const char *name);

/* Is this a key that cells may have: given somewhere, or one of hpcgrid's own? */
bool hg_grid_has_key(const struct hg_grid *g, const char *name);

/* Hint for a key that no cell has. */
void hg_grid_suggest(const struct hg_grid *g, const char *name, struct hg_err *err);

/* {"range": [first, last, step]} and {"geometric": [first, last, factor]}: values that a matrix does not list one by one. */

/* The list of an object with the one member "range" or "geometric", lent; NULL for anything else. */
const json_t *hg_generator_of(const json_t *json, enum hg_alt_kind *kind);

/* Fill first, step and size of an alternative whose kind is set. */
int hg_generator_fill(const json_t *list, struct hg_alt *alt, struct hg_err *err);

/* The i-th value. */
double hg_generated(const struct hg_alt *alt, double i);

/* The position of a walk, so that a step sets only what changed. Zero it to begin. */
struct hg_cursor {
    size_t source;
    bool placed;
    uint32_t *at;   /* per axis of the source: which of its values */
    uint32_t *rest; /* per axis: rank of the slower axes */
    size_t cap;
};

/* Fill values[columns] with cell `rank` of a source (before repeats, defaults and derive). */
void hg_grid_place(const struct hg_grid *g, struct hg_cursor *cursor, size_t source, uint64_t rank,
                   hg_value *values);
void hg_cursor_done(struct hg_cursor *cursor);

#endif
