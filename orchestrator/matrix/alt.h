/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_ALT_H
#define HG_MATRIX_ALT_H

#include <jansson.h>

#include "base/err.h"
#include "matrix/value.h"

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

/* {"range": [first, last, step]} and {"geometric": [first, last, factor]}: values that a matrix does not list one by one. */

/* The list of an object with the one member "range" or "geometric", lent; NULL for anything else. */
const json_t *hg_generator_of(const json_t *json, enum hg_alt_kind *kind);

/* Fill first, step and size of an alternative whose kind is set. */
int hg_generator_fill(const json_t *list, struct hg_alt *alt, struct hg_err *err);

/* The i-th value. */
double hg_generated(const struct hg_alt *alt, double i);

#endif
