/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/row.h"

#include "base/buf.h"
#include "matrix/grid.h"
#include "matrix/pointer.h"

static void name_product(const struct hg_product *product, const json_t *json, const char *pointer,
                         uint64_t rank, uint64_t other, struct hg_words *out);

/* Which alternative stands at this place of the axis; *at becomes the place within it. */
static size_t alternative_at(const struct hg_axis *axis, uint64_t *at)
{
    size_t i = 0;

    for (; (double)*at >= axis->items[i].size; i++)
        *at -= (uint64_t)axis->items[i].size;
    return i;
}

static void name_axis(const struct hg_axis *axis, const json_t *json, const char *pointer,
                      uint64_t at, uint64_t other, struct hg_words *out)
{
    size_t i = alternative_at(axis, &at), k = alternative_at(axis, &other);
    struct hg_buf item = HG_BUF_INIT;

    if (json_is_array(json)) {
        json = json_array_get(json, i);
        pointer = hg_item_pointer(&item, pointer, i);
    }
    if (i == k && axis->items[i].kind == HG_ALT_PRODUCT)
        name_product(axis->items[i].product, json, pointer, at, other, out);
    else
        hg_words_push(out, pointer);
    hg_buf_done(&item);
}

static void name_product(const struct hg_product *product, const json_t *json, const char *pointer,
                         uint64_t rank, uint64_t other, struct hg_words *out)
{
    double cells = product->size; /* of this axis and those that vary faster */
    struct hg_buf member = HG_BUF_INIT;

    for (size_t i = 0; i < product->n; i++) {
        const struct hg_axis *axis = &product->items[i];
        uint64_t slower = (uint64_t)cells, faster = (uint64_t)(cells /= axis->size);
        uint64_t at = rank % slower / faster, there = other % slower / faster;

        if (at != there)
            name_axis(axis, json_object_get(json, axis->name),
                      hg_member_pointer(&member, pointer, axis->name), at, there, out);
    }
    hg_buf_done(&member);
}

void hg_row_name(const struct hg_matrix *m, const struct hg_row *row, const struct hg_row *other,
                 struct hg_words *out)
{
    const struct hg_source *source = &m->grid->sources.items[row->source];
    const json_t *json =
        m->axes && row->source == 0 ? m->axes : json_array_get(m->include, row->source - !!m->axes);

    if (row->source == other->source)
        name_product(&source->product, json, source->pointer, row->rank, other->rank, out);
    else
        hg_words_push(out, source->pointer);
}
