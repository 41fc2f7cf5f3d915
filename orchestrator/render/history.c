/* SPDX-License-Identifier: Apache-2.0 */
#include "render/history.h"

#include "base/json.h"
#include "base/text.h"
#include "analysis/compare.h"
#include "render/listings.h"
#include "render/sentences.h"
#include "typeset/plain.h"

#define WIDTH_DEFAULT 80

static void append_counts(const struct hg_history *h, struct hg_buf *out)
{
    const struct {
        size_t n;
        const char *word;
    } counts[] = {
        { h->steady, "steady" },
        { h->faster, hg_verdict_word(h->report, HG_VERDICT_FASTER) },
        { h->slower, hg_verdict_word(h->report, HG_VERDICT_SLOWER) },
        { h->broken, "broken" },
        { h->missing, "gone" },
        { h->unlike, "not comparable" },
    };
    bool first = true;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (!counts[i].n)
            continue;
        hg_buf_printf(out, "%s%zu %s", first ? "" : ", ", counts[i].n, counts[i].word);
        first = false;
    }
}

void hg_history_text(const struct hg_history *h, size_t width, struct hg_buf *out)
{
    const struct hg_report *r = h->report;
    struct hg_buf line = HG_BUF_INIT;

    width = width ? width : WIDTH_DEFAULT;
    hg_clean_append(r->labels[0], 0, &line);
    hg_buf_puts(&line, " to ");
    hg_clean_append(r->labels[r->n_sets - 1], 0, &line);
    hg_buf_printf(&line, " · %zu sets, %zu cell%s: ", r->n_sets, h->cells, hg_text_s(h->cells));
    append_counts(h, &line);
    hg_wrapped_append(hg_buf_str(&line), width, 2, 0, out);
    hg_buf_clear(&line);
    hg_method_format(r, &line);
    hg_wrapped_append(hg_buf_str(&line), width, 2, 0, out);
    hg_buf_puts(out, "changes up to ");
    hg_digits_append(&h->report->style, h->tolerance * 100, 3, out);
    hg_buf_puts(out, " % are ignored\n");
    for (size_t i = 0; i < h->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_text(&h->listings.items[i], &r->style, width, out);
    }
    hg_buf_done(&line);
}

void hg_history_json(const struct hg_history *h, struct hg_buf *out)
{
    const struct hg_report *r = h->report;
    json_t *labels = json_array(), *root;

    for (size_t s = 0; s < r->n_sets; s++)
        json_array_append_new(labels, hg_json_text(r->labels[s]));
    root = json_pack("{s:s, s:s, s:b, s:f, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "schema",
                     "hpcgrid-history/1", "metric", r->metric, "good", hg_history_is_good(h),
                     "tolerance", h->tolerance, "sets", labels, "cells", (json_int_t)h->cells,
                     "steady", (json_int_t)h->steady, "faster", (json_int_t)h->faster, "slower",
                     (json_int_t)h->slower, "broken", (json_int_t)h->broken, "gone",
                     (json_int_t)h->missing, "not_comparable", (json_int_t)h->unlike, "listings",
                     hg_listings_encode(&h->listings));
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}
