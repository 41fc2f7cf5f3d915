/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/places.h"

#include <string.h>

void hg_place_value(const struct hg_report *r, struct hg_listing *l, uint32_t value)
{
    const struct hg_frame_value *v = &r->frame.values.items[value];
    const char *point = strchr(v->text, '.');

    if (v->is_number && !strpbrk(v->text, "eE"))
        hg_listing_number(l, v->number, point ? (int)strlen(point + 1) : 0);
    else
        hg_listing_text(l, v->text);
}

void hg_place_columns(const struct hg_report *r, struct hg_listing *l)
{
    for (size_t i = 0; i < r->n_row_keys + r->n_column_keys; i++) {
        size_t key = i < r->n_row_keys ? r->row_keys[i] : r->column_keys[i - r->n_row_keys];

        hg_listing_column(l, r->frame.keys.items[key].name, r->frame.keys.items[key].name, false);
    }
    l->n_keys = l->columns.n;
}

void hg_place_values(const struct hg_report *r, const struct hg_table *t, size_t point,
                     struct hg_listing *l)
{
    for (size_t i = 0; i < r->n_row_keys; i++)
        hg_place_value(r, l, t->rows[point / t->n_columns * r->n_row_keys + i]);
    for (size_t i = 0; i < r->n_column_keys; i++)
        hg_listing_text(l,
                        hg_report_text(r, t->columns[point % t->n_columns * r->n_column_keys + i]));
}

void hg_place_metric(const struct hg_report *r, struct hg_listing *l, double v, int decimals)
{
    if (hg_metric_is_time(r->metric))
        hg_listing_seconds(l, v, decimals);
    else
        hg_listing_number(l, v, decimals);
}
