/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/labels.h"

#include <string.h>

#include "analysis/work.h"
#include "matrix/names.h"
#include "typeset/plain.h"

void hg_entry_name(const struct hg_report *r, const struct hg_report_entry *e, struct hg_buf *out)
{
    hg_names_append(r->names, (size_t)(e - r->entries), out);
}

static bool is_called_by(const struct hg_report *r, const struct hg_table *t,
                         const struct hg_frame_key *key, enum hg_label what)
{
    if (key->flags & HG_KEY_SHAPE)
        return what == HG_LABEL_SHAPE;
    if (what == HG_LABEL_SERIES)
        return !(key->flags & HG_KEY_NOTE) && !(t->weak && hg_work_is_key(r, key->name));
    return what == HG_LABEL_CASE;
}

/* Append the values of a place's keys; numbers have their key, except those of the shape. */
static void append_values(const struct hg_report *r, const struct hg_table *t, size_t point,
                          enum hg_label what, struct hg_buf *out)
{
    const struct {
        const size_t *keys;
        size_t n;
        const uint32_t *values;
    } parts[2] = { { r->column_keys, r->n_column_keys,
                     t->columns + point % t->n_columns * r->n_column_keys },
                   { r->row_keys, r->n_row_keys, t->rows + point / t->n_columns * r->n_row_keys } };
    const char *between = what == HG_LABEL_SHAPE ? "×" : " ";
    size_t before = out->len;

    for (size_t part = 0; part < 2; part++)
        for (size_t i = 0; i < parts[part].n; i++) {
            const struct hg_frame_key *key = &r->frame.keys.items[parts[part].keys[i]];
            const struct hg_frame_value *v = &r->frame.values.items[parts[part].values[i]];
            bool named = what != HG_LABEL_SHAPE && v->is_number;

            if (parts[part].values[i] == 0 || !is_called_by(r, t, key, what))
                continue;
            hg_buf_printf(out, "%s%s%s%s", out->len > before ? between : "", named ? key->name : "",
                          named ? "=" : "", v->text);
        }
}

void hg_point_label(const struct hg_report *r, const struct hg_table *t, size_t point,
                    enum hg_label what, struct hg_buf *out)
{
    struct hg_buf sizes = HG_BUF_INIT;

    hg_buf_clear(out);
    append_values(r, t, point, what == HG_LABEL_PLACE ? HG_LABEL_CASE : what, out);
    if (what == HG_LABEL_PLACE)
        append_values(r, t, point, HG_LABEL_SHAPE, &sizes);
    if (sizes.len)
        hg_buf_printf(out, "%s%s", out->len ? " " : "", sizes.data);
    if (!out->len && what != HG_LABEL_SHAPE)
        hg_buf_puts(out, "all");
    hg_buf_done(&sizes);
}

void hg_row_label(const struct hg_report *r, const struct hg_table *t, size_t row,
                  struct hg_buf *out)
{
    for (size_t k = 0; k < r->n_split_keys; k++) {
        hg_buf_puts(out, k ? " " : "");
        hg_member_append(r->frame.keys.items[r->split_keys[k]].name, hg_report_text(r, t->split[k]),
                         out);
    }
    for (size_t k = 0; k < r->n_row_keys; k++) {
        hg_buf_puts(out, k + r->n_split_keys ? " " : "");
        hg_member_append(r->frame.keys.items[r->row_keys[k]].name,
                         hg_report_text(r, t->rows[row * r->n_row_keys + k]), out);
    }
    if (r->n_split_keys + r->n_row_keys == 0)
        hg_buf_puts(out, "all");
}

void hg_column_label(const struct hg_report *r, const struct hg_table *t, size_t column,
                     struct hg_buf *out)
{
    const uint32_t *values = t->columns + column * r->n_column_keys;

    for (size_t k = 0; k < r->n_column_keys; k++) {
        bool word = values[k] && !r->frame.values.items[values[k]].is_number;

        hg_buf_printf(out, "%s%s%s%s", k ? " " : "",
                      word ? "" : r->frame.keys.items[r->column_keys[k]].name, word ? "" : "=",
                      values[k] ? hg_report_text(r, values[k]) : "–");
    }
}

void hg_member_append(const char *name, const char *value, struct hg_buf *out)
{
    if (*value)
        hg_clean_append(name, 40, out);
    else
        hg_buf_puts(out, "no ");
    hg_buf_puts(out, *value ? "=" : "");
    hg_clean_append(*value ? value : name, 40, out);
}

void hg_table_title(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    for (size_t i = 0; i < r->n_split_keys; i++) {
        hg_buf_puts(out, i ? " " : "");
        hg_member_append(r->frame.keys.items[r->split_keys[i]].name, hg_report_text(r, t->split[i]),
                         out);
    }
    if (!t->rehearsal)
        return;
    hg_buf_puts(out, r->n_split_keys ? " · " : "");
    hg_buf_puts(out, "rehearsal");
    if (t->device) {
        hg_buf_puts(out, " on ");
        hg_clean_append(t->device, 40, out);
    }
    hg_buf_puts(out, ": not the cells' hardware or size");
}
