/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/listing.h"

#include <stdlib.h>

#include "base/vec.h"

struct hg_listing *hg_listing_add(struct hg_listings *list, const char *name, const char *title)
{
    struct hg_listing *l = HG_VEC_PUSH(list);

    *l = (struct hg_listing){ .name = hg_strdup(name), .title = hg_strdup(title) };
    return l;
}

void hg_listing_column(struct hg_listing *l, const char *name, const char *title, bool left)
{
    *HG_VEC_PUSH(&l->columns) =
        (struct hg_listing_column){ hg_strdup(name), hg_strdup(title), left };
}

void hg_listing_text(struct hg_listing *l, const char *text)
{
    *HG_VEC_PUSH(&l->data) = (struct hg_datum){ .kind = HG_DATUM_TEXT, .text = hg_strdup(text) };
}

void hg_listing_cell(struct hg_listing *l, const char *id, const char *name)
{
    hg_listing_text(l, id);
    l->data.items[l->data.n - 1].name = hg_strdup(name);
}

void hg_listing_number(struct hg_listing *l, double v, int decimals)
{
    *HG_VEC_PUSH(&l->data) =
        (struct hg_datum){ .kind = HG_DATUM_NUMBER, .v = v, .decimals = decimals };
}

void hg_listing_seconds(struct hg_listing *l, double s, int decimals)
{
    *HG_VEC_PUSH(&l->data) =
        (struct hg_datum){ .kind = HG_DATUM_SECONDS, .v = s, .decimals = decimals };
}

void hg_listing_none(struct hg_listing *l)
{
    *HG_VEC_PUSH(&l->data) = (struct hg_datum){ .kind = HG_DATUM_NONE };
}

void hg_listing_note(struct hg_listing *l, const char *text)
{
    *HG_VEC_PUSH(&l->notes) = hg_strdup(text);
}

void hg_listing_done(struct hg_listing *l)
{
    free(l->name);
    free(l->title);
    for (size_t i = 0; i < l->columns.n; i++) {
        free(l->columns.items[i].name);
        free(l->columns.items[i].title);
    }
    HG_VEC_DONE(&l->columns);
    for (size_t i = 0; i < l->data.n; i++) {
        free(l->data.items[i].text);
        free(l->data.items[i].name);
    }
    HG_VEC_DONE(&l->data);
    for (size_t i = 0; i < l->notes.n; i++)
        free(l->notes.items[i]);
    HG_VEC_DONE(&l->notes);
    *l = (struct hg_listing){ 0 };
}

void hg_listings_done(struct hg_listings *list)
{
    for (size_t i = 0; i < list->n; i++)
        hg_listing_done(&list->items[i]);
    HG_VEC_DONE(list);
}

void hg_datum_format(const struct hg_datum *d, const struct hg_style *style, struct hg_buf *out)
{
    switch (d->kind) {
    case HG_DATUM_NONE:
        break;
    case HG_DATUM_TEXT:
        hg_buf_puts(out, d->name ? d->name : d->text);
        break;
    case HG_DATUM_NUMBER:
        hg_number_append(style, d->v, d->decimals, out);
        break;
    case HG_DATUM_SECONDS:
        hg_seconds_append(style, d->v, d->decimals, out);
        break;
    }
}
