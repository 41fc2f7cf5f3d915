/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_LISTINGS_H
#define HG_RENDER_LISTINGS_H

#include <jansson.h>

#include "analysis/listing.h"
#include "typeset/sheet.h"

/* The header and the rows as words; hg_sheet_done it. */
struct hg_sheet hg_listing_sheet(const struct hg_listing *l, const struct hg_style *style);

/* Append a listing as text that fits the width (it has at least one column). */
void hg_listing_write_text(const struct hg_listing *l, const struct hg_style *style, size_t width,
                           struct hg_buf *out);

void hg_listing_write_md(const struct hg_listing *l, const struct hg_style *style,
                         struct hg_buf *out);

/* {"name", "title", "rows": [{column: value}], "notes"}; a new reference. Numbers have all digits, NaN is null. */
json_t *hg_listing_encode(const struct hg_listing *l);

/* The same of all listings, as an array. */
json_t *hg_listings_encode(const struct hg_listings *list);

#endif
