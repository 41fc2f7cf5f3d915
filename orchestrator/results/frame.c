/* SPDX-License-Identifier: Apache-2.0 */
#include "results/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/vec.h"
#include "contract/keys.h"

unsigned hg_frame_key_flags(const char *name)
{
    static const unsigned flags[] = {
        [HG_ROLE_SHAPE] = HG_KEY_SHAPE,
        [HG_ROLE_LOOSE] = HG_KEY_LOOSE,
        [HG_ROLE_REPEAT] = HG_KEY_REPEAT,
        [HG_ROLE_WORK] = 0,
    };
    int key = hg_key_find(name);

    if (name[0] == '_')
        return HG_KEY_NOTE;
    return key < 0 ? 0 : flags[hg_keys[key].role];
}

static void encode(const json_t *value, struct hg_buf *out)
{
    hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, out);
}

static void add_key(struct hg_frame *f, const char *name)
{
    if (hg_map_put(&f->key_index, name, strlen(name), f->keys.n) == f->keys.n)
        *HG_VEC_PUSH(&f->keys) =
            (struct hg_frame_key){ .name = hg_strdup(name), .flags = hg_frame_key_flags(name) };
}

static void push_value(struct hg_frame *f, const char *text, const json_t *json)
{
    *HG_VEC_PUSH(&f->values) = (struct hg_frame_value){ .text = hg_strdup(text),
                                                        .json = json_incref((json_t *)json),
                                                        .number = json_number_value(json),
                                                        .is_number = json_is_number(json) };
}

size_t hg_frame_value(struct hg_frame *f, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t at;

    if (f->values.n == 0)
        push_value(f, "", NULL);
    if (!value || json_is_null(value))
        return 0;
    encode(value, &text);
    at = hg_map_put(&f->value_index, text.data, text.len, f->values.n);
    if (at == f->values.n)
        push_value(f, json_is_string(value) ? json_string_value(value) : text.data, value);
    hg_buf_done(&text);
    return at;
}

size_t hg_frame_find_value(const struct hg_frame *f, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t at = HG_MAP_NONE;

    if (value && !json_is_null(value)) {
        encode(value, &text);
        at = hg_map_find(&f->value_index, text.data, text.len);
    }
    hg_buf_done(&text);
    return at == HG_MAP_NONE ? 0 : at;
}

/* Room for as many rows as fit, each as wide as there are keys. */
static void widen(struct hg_frame *f, size_t width, size_t cap)
{
    uint32_t *rows = hg_alloc_zeroed(cap * f->keys.n + 1, sizeof *rows);

    for (size_t i = 0; i < f->n_rows; i++)
        memcpy(rows + i * f->keys.n, f->rows + i * width, width * sizeof *rows);
    free(f->rows);
    f->rows = rows;
    f->cap_rows = cap;
}

void hg_frame_add(struct hg_frame *f, const json_t *cell)
{
    size_t width = f->keys.n;
    const char *name;
    uint32_t *row;
    json_t *value;

    hg_frame_value(f, NULL);
    json_object_foreach((json_t *)cell, name, value)
        add_key(f, name);
    if (f->keys.n > width || f->n_rows == f->cap_rows)
        widen(f, width, f->n_rows < f->cap_rows ? f->cap_rows : f->cap_rows * 2 + 64);
    row = hg_frame_row(f, f->n_rows++);
    json_object_foreach((json_t *)cell, name, value)
        row[hg_frame_find_key(f, name)] = (uint32_t)hg_frame_value(f, value);
}

void hg_frame_build(struct hg_frame *f, const json_t *const *cells, size_t n, const char *extra)
{
    size_t width;

    for (size_t i = 0; i < n; i++)
        hg_frame_add(f, cells[i]);
    hg_frame_value(f, NULL);
    width = f->keys.n;
    if (extra)
        add_key(f, extra);
    if (f->keys.n > width)
        widen(f, width, n);
}

void hg_frame_done(struct hg_frame *f)
{
    for (size_t i = 0; i < f->keys.n; i++)
        free(f->keys.items[i].name);
    for (size_t i = 0; i < f->values.n; i++) {
        free(f->values.items[i].text);
        json_decref(f->values.items[i].json);
    }
    HG_VEC_DONE(&f->keys);
    HG_VEC_DONE(&f->values);
    hg_map_done(&f->key_index);
    hg_map_done(&f->value_index);
    free(f->rows);
    *f = (struct hg_frame){ 0 };
}

size_t hg_frame_find_key(const struct hg_frame *f, const char *name)
{
    return hg_map_find(&f->key_index, name, strlen(name));
}

int hg_frame_compare(const struct hg_frame *f, uint32_t a, uint32_t b)
{
    const struct hg_frame_value *va = &f->values.items[a], *vb = &f->values.items[b];

    if (a == b)
        return 0;
    if (a == 0 || b == 0)
        return a == 0 ? -1 : 1;
    if (va->is_number && vb->is_number)
        return (va->number > vb->number) - (va->number < vb->number);
    if (va->is_number != vb->is_number)
        return va->is_number ? -1 : 1;
    return a < b ? -1 : 1;
}
