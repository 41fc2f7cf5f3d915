/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/axes.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "contract/keys.h"
#include "matrix/grid.h"
#include "matrix/pointer.h"

#define JUDGED_MAX 100000 /* values of a geometric series that are judged one by one */

static int parse_product(struct hg_draft *p, const json_t *object, const char *pointer,
                         struct hg_product *product);

static int judge_generated(struct hg_draft *p, const char *key, const struct hg_alt *alt, double i,
                           struct hg_err *err)
{
    json_t *number = hg_json_number(hg_generated(alt, i));
    int rc = hg_member_judge(&p->judge, key, number, err);

    json_decref(number);
    return rc;
}

/* The values are judged at their ends, and where they would stop being whole. */
static int judge_generator(struct hg_draft *p, const char *key, const struct hg_alt *alt,
                           struct hg_err *err)
{
    double ends[] = { 0, alt->size - 1, 1 };

    for (int i = 0; i < (alt->size > 1 ? 3 : 1); i++)
        if (judge_generated(p, key, alt, ends[i], err) < 0)
            return -1;
    if (alt->kind == HG_ALT_GEOMETRIC && alt->size <= JUDGED_MAX)
        for (double i = 2; i < alt->size - 1; i++)
            if (judge_generated(p, key, alt, i, err) < 0)
                return -1;
    return 0;
}

static int parse_generator(struct hg_draft *p, const char *key, const json_t *list,
                           const char *pointer, struct hg_alt *alt)
{
    struct hg_err err = HG_ERR_INIT;

    if (hg_generator_fill(list, alt, &err) < 0 || judge_generator(p, key, alt, &err) < 0)
        return hg_draft_report(p, pointer, false, &err);
    return 0;
}

static void axis_sets(struct hg_draft *p, struct hg_axis *axis, int column)
{
    for (size_t i = 0; i < axis->n_columns; i++)
        if (axis->columns[i] == column)
            return;
    axis->columns = hg_realloc(axis->columns, (axis->n_columns + 1) * sizeof *axis->columns);
    axis->columns[axis->n_columns++] = column;
    p->g->columns.items[column].given = true;
}

static int parse_nested(struct hg_draft *p, struct hg_axis *axis, const json_t *json,
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
static int use_own_key(struct hg_draft *p, struct hg_axis *axis, const char *key_pointer)
{
    if (axis->column >= 0)
        return 0;
    if (axis->column != -2)
        axis->column = hg_draft_column(p, axis->name, key_pointer);
    if (axis->column < 0) {
        axis->column = -2; /* reported already */
        return -1;
    }
    axis_sets(p, axis, axis->column);
    return 0;
}

static int parse_alt(struct hg_draft *p, struct hg_axis *axis, const json_t *json,
                     const char *pointer, const char *key_pointer)
{
    struct hg_alt *alt = HG_VEC_PUSH(axis);
    enum hg_alt_kind kind = HG_ALT_VALUE;
    const json_t *list = hg_generator_of(json, &kind);

    *alt = (struct hg_alt){ .size = 1, .value = HG_VALUE_ABSENT };
    if (json_is_object(json) && !list)
        return parse_nested(p, axis, json, pointer, alt);
    if (use_own_key(p, axis, key_pointer) < 0)
        return -1;
    if (!list)
        return hg_draft_value(p, axis->name, json, pointer, &alt->value);
    alt->kind = kind;
    return parse_generator(p, axis->name, list, pointer, alt);
}

/* In an object of values that belong together, a list of words is most likely meant as one value, but would multiply. */
static int check_words_list(struct hg_draft *p, const char *name, const json_t *json,
                            const char *pointer)
{
    int key = hg_key_find(name);
    struct hg_err *err;

    if (strncmp(pointer, "/include/", 9) != 0 || key < 0 || hg_keys[key].kind != HG_KEY_WORDS ||
        json_array_size(json) < 2 || !json_is_string(json_array_get(json, 0)))
        return 0;
    err = hg_json_error(&p->m->doc, pointer, p->errs,
                        "%zu values of \"%s\": each would make a cell of its own",
                        json_array_size(json), name);
    return hg_err_hint(
        err, "one list of words is written [[\"a\", \"b\"]]; several values belong into \"axes\"");
}

static int parse_axis(struct hg_draft *p, const char *name, const json_t *json, const char *pointer,
                      struct hg_axis *axis)
{
    struct hg_buf path = HG_BUF_INIT;
    json_t *item;
    size_t i;
    int rc = 0;

    axis->name = hg_strdup(name);
    if (check_words_list(p, name, json, pointer) < 0)
        return -1;
    if (!json_is_array(json))
        rc = parse_alt(p, axis, json, pointer, pointer);
    if (json_is_array(json) && json_array_size(json) == 0) {
        hg_json_error(&p->m->doc, pointer, p->errs,
                      "an empty list: \"%s\" has no values, so there are no cells", name);
        rc = -1;
    }
    json_array_foreach((json_t *)json, i, item) {
        if (parse_alt(p, axis, item, hg_item_pointer(&path, pointer, i), pointer) < 0)
            rc = -1;
    }
    for (i = 0; i < axis->n; i++)
        axis->size += axis->items[i].size;
    hg_buf_done(&path);
    return rc;
}

/* Two axes of one product that set the same key would overwrite each other. */
static int check_overlap(struct hg_draft *p, const struct hg_product *product, const char *pointer)
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

static int parse_product(struct hg_draft *p, const json_t *object, const char *pointer,
                         struct hg_product *product)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;
    int rc = 0;

    product->size = 1;
    json_object_foreach((json_t *)object, name, json) {
        const char *at = hg_member_pointer(&path, pointer, name);
        struct hg_axis *axis = HG_VEC_PUSH(product);

        *axis = (struct hg_axis){ .column = -1 };
        if (parse_axis(p, name, json, at, axis) < 0 || check_overlap(p, product, at) < 0)
            rc = -1;
        product->size *= axis->size;
    }
    hg_buf_done(&path);
    return rc;
}

static int add_source(struct hg_draft *p, const json_t *object, const char *pointer)
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

void hg_axes_parse(struct hg_draft *p)
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

void hg_axes_check_size(struct hg_draft *p)
{
    double cells = p->g->size * (double)p->m->repeats.max;
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
