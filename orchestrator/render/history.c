/* SPDX-License-Identifier: Apache-2.0 */
#include "render/history.h"

#include <math.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/compare.h"
#include "analysis/labels.h"
#include "plot/svg.h"
#include "plot/track.h"
#include "render/listings.h"
#include "render/sentences.h"
#include "typeset/escape.h"
#include "typeset/plain.h"

#define WIDTH 80

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

static void append_head(const struct hg_history *h, struct hg_buf *out)
{
    const struct hg_report *r = h->report;

    hg_clean_append(r->labels[0], 0, out);
    hg_buf_puts(out, " to ");
    hg_clean_append(r->labels[r->n_sets - 1], 0, out);
}

static void append_state(const struct hg_history *h, struct hg_buf *out)
{
    hg_buf_printf(out, "%zu sets, %zu cell%s: ", h->report->n_sets, h->cells.n,
                  hg_text_s(h->cells.n));
    append_counts(h, out);
}

static void append_assumptions(const struct hg_history *h, struct hg_buf *out)
{
    const struct hg_style *style = &h->report->style;

    hg_buf_puts(out, "changes up to ");
    hg_digits_append(style, h->tolerance * 100, 3, out);
    hg_buf_puts(out, " % are ignored; whole runs are assumed ");
    if (h->between > 0) {
        hg_buf_puts(out, "to differ by ");
        hg_digits_append(style, h->between * 100, 3, out);
        hg_buf_puts(out, " %");
    } else {
        hg_buf_puts(out, "not to differ");
    }
    if (h->baseline != SIZE_MAX) {
        hg_buf_puts(out, "; judged against ");
        hg_clean_append(h->report->labels[h->baseline], 0, out);
    }
}

static void write_text(const struct hg_history *h, struct hg_buf *out)
{
    struct hg_buf line = HG_BUF_INIT;

    append_head(h, &line);
    hg_buf_puts(&line, " · ");
    append_state(h, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    hg_buf_clear(&line);
    hg_geometric_format(h->report, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    hg_buf_clear(&line);
    append_assumptions(h, &line);
    hg_wrapped_append(hg_buf_str(&line), WIDTH, 2, 0, out);
    for (size_t i = 0; i < h->listings.n; i++) {
        hg_buf_puts(out, "\n");
        hg_listing_write_text(&h->listings.items[i], &h->report->style, WIDTH, out);
    }
    hg_buf_done(&line);
}

/* ---- Other forms ---- */

static void fill_cases(const struct hg_history *h, struct hg_verdict_page *page)
{
    for (size_t i = 0; i < h->cells.n; i++) {
        const struct hg_history_cell *c = &h->cells.items[i];
        bool fails = c->verdict != HG_VERDICT_SAME && c->verdict != HG_VERDICT_FASTER;
        struct hg_buf name = HG_BUF_INIT, message = HG_BUF_INIT;

        hg_row_label(h->report, c->table, c->row, &name);
        hg_history_verdict(h, c, &message);
        if (!isnan(c->speed.value)) {
            hg_buf_puts(&message, ", speed ");
            hg_number_append(&h->report->style, c->speed.value, 2, &message);
        }
        *HG_VEC_PUSH(&page->cases) = (struct hg_verdict_case){
            .name = hg_buf_detach(&name),
            .message = hg_buf_detach(&message),
            .failure = !fails                            ? NULL
                       : c->verdict == HG_VERDICT_ONLY_A ? "gone"
                       : c->verdict == HG_VERDICT_BROKEN ? "broken"
                                                         : hg_verdict_word(h->report, c->verdict),
        };
    }
}

static void draw(const struct hg_history *h, struct hg_buf *out)
{
    struct hg_plots plots = { 0 };

    hg_plot_tracks(h, &plots);
    for (size_t i = 0; i < plots.n; i++) {
        hg_buf_puts(out, "<figure>\n<figcaption>");
        hg_html_append(h->report->tables.n > 1 ? plots.items[i].title : plots.items[i].what, out);
        if (plots.items[i].note) {
            hg_buf_puts(out, ": ");
            hg_html_append(plots.items[i].note, out);
        }
        hg_buf_puts(out, "</figcaption>\n");
        hg_plot_svg(&plots.items[i], i + 1, out);
        hg_buf_puts(out, "</figure>\n");
    }
    hg_plots_done(&plots);
}

static void fill_page(const struct hg_history *h, struct hg_verdict_page *page)
{
    struct hg_buf text = HG_BUF_INIT;

    *page = (struct hg_verdict_page){ .good = hg_history_is_good(h),
                                      .suite = hg_strdup(h->report->metric) };
    append_head(h, &text);
    page->title = hg_buf_detach(&text);
    append_state(h, &text);
    page->state = hg_buf_detach(&text);
    hg_geometric_format(h->report, &text);
    hg_verdict_head(page, &text);
    append_assumptions(h, &text);
    hg_verdict_head(page, &text);
    for (size_t i = 0; i < h->listings.n; i++)
        *HG_VEC_PUSH(&page->tables) = (struct hg_verdict_table){
            .title = hg_strdup(h->listings.items[i].title),
            .sheet = hg_listing_sheet(&h->listings.items[i], &h->report->style),
        };
}

static void write_json(const struct hg_history *h, struct hg_buf *out)
{
    const struct hg_report *r = h->report;
    json_t *labels = json_array(), *root;

    for (size_t s = 0; s < r->n_sets; s++)
        json_array_append_new(labels, hg_json_text(r->labels[s]));
    root =
        json_pack("{s:s, s:s, s:b, s:f, s:f, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}",
                  "schema", "hpcgrid-history/1", "metric", r->metric, "good", hg_history_is_good(h),
                  "tolerance", h->tolerance, "between", h->between, "baseline",
                  h->baseline == SIZE_MAX ? json_null() : hg_json_text(r->labels[h->baseline]),
                  "sets", labels, "cells", (json_int_t)h->cells.n, "steady", (json_int_t)h->steady,
                  "faster", (json_int_t)h->faster, "slower", (json_int_t)h->slower, "broken",
                  (json_int_t)h->broken, "gone", (json_int_t)h->missing, "not_comparable",
                  (json_int_t)h->unlike, "listings", hg_listings_encode(&h->listings));
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}

void hg_history_write(const struct hg_history *h, enum hg_verdict_form form, struct hg_buf *out)
{
    struct hg_verdict_page page;

    if (form == HG_FORM_TEXT || form == HG_FORM_JSON) {
        (form == HG_FORM_TEXT ? write_text : write_json)(h, out);
        return;
    }
    fill_page(h, &page);
    fill_cases(h, &page);
    if (form == HG_FORM_MD) {
        hg_verdict_md(&page, out);
    } else if (form == HG_FORM_HTML) {
        draw(h, &page.pictures);
        hg_verdict_html(&page, out);
    } else {
        hg_verdict_junit(&page, out);
    }
    hg_verdict_page_done(&page);
}
