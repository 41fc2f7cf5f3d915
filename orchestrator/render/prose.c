/* SPDX-License-Identifier: Apache-2.0 */
/* One sentence for each comparison, ready to paste: "ddp on 4 GPUs is 3.18 (95 % CI 3.02 to 3.35, n = 5) times as fast as single on 1
 * GPU." Behind it what its footnotes say, so that it says no more than the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/figures.h"
#include "analysis/labels.h"
#include "analysis/metric.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/text.h"
#include "render/renderers.h"
#include "render/sentences.h"
#include "typeset/plain.h"

struct prose {
    const struct hg_report *r;
    const struct hg_report_entry **of_config; /* the first entry of each configuration */
    struct hg_buf *out;
};

static size_t runs_of(const struct hg_point *p)
{
    return p->published ? p->published : p->n;
}

/* "ddp on 4 GPUs (2×2)" */
static void append_name(const struct prose *w, const struct hg_table *t, size_t point)
{
    const struct hg_point *p = &t->points[point];
    bool on_cores = w->of_config[p->config]->result->on_cores;
    struct hg_buf label = HG_BUF_INIT;

    hg_point_label(w->r, t, point, HG_LABEL_CASE, &label);
    hg_clean_append(strcmp(hg_buf_str(&label), "all") == 0 ? "the run" : hg_buf_str(&label), 0,
                    w->out);
    if (!isnan(p->devices))
        hg_buf_printf(w->out, " on %.0f %s%s", p->devices, on_cores ? "core" : "GPU",
                      p->devices == 1 ? "" : "s");
    hg_point_label(w->r, t, point, HG_LABEL_SHAPE, &label);
    if (strstr(hg_buf_str(&label), "×") && p->devices != 1)
        hg_buf_printf(w->out, " (%s)", hg_buf_str(&label));
    hg_buf_done(&label);
}

/* The place of a configuration; false: no table shows it. */
static bool find_place(const struct hg_report *r, size_t config, const struct hg_table **t,
                       size_t *point)
{
    for (size_t i = 0; i < r->tables.n; i++)
        for (size_t k = 0; k < r->tables.items[i].n_rows * r->tables.items[i].n_columns; k++)
            if (r->tables.items[i].points[k].config == config) {
                *t = &r->tables.items[i];
                *point = k;
                return true;
            }
    return false;
}

/* "3.18 (95 % CI 3.02 to 3.35, n = 5)"; n = 5 and 3: of both sides */
static void append_ratio(const struct prose *w, const struct hg_table *t, const struct hg_point *p,
                         size_t base_runs)
{
    const struct hg_style *style = &w->r->style;
    int decimals = hg_section_decimals(t, HG_SECTION_SPEEDUP);
    size_t runs = runs_of(p);

    hg_number_append(style, p->speedup.value, decimals, w->out);
    hg_buf_puts(w->out, " (");
    if (p->speedup.has_interval) {
        hg_buf_printf(w->out, "%.0f %% CI ", HG_STATS_LEVEL * 100);
        hg_number_append(style, p->speedup.low, decimals, w->out);
        hg_buf_puts(w->out, " to ");
        hg_number_append(style, p->speedup.high, decimals, w->out);
        hg_buf_puts(w->out, ", ");
    }
    hg_buf_printf(w->out, "n = %zu", runs);
    if (runs != base_runs)
        hg_buf_printf(w->out, " and %zu", base_runs);
    hg_buf_puts(w->out, p->speedup.has_interval ? ")" : ", no interval)");
}

static void append_notes(const struct prose *w, const struct hg_table *t, const struct hg_point *p)
{
    for (size_t i = 0; i < p->n_notes; i++) {
        hg_buf_puts(w->out, i ? "; " : " Note: ");
        hg_clean_append(t->notes.items[p->notes[i]], 0, w->out);
    }
    hg_buf_puts(w->out, p->n_notes ? ".\n" : "\n");
}

static void append_comparison(const struct prose *w, const struct hg_table *t, size_t point)
{
    const struct hg_point *p = &t->points[point];
    bool speed = hg_metric_is_time(w->r->metric) || hg_metric_is_rate(w->r->metric);
    const struct hg_table *base_table;
    size_t base, base_runs = p->base_n;
    bool found = find_place(w->r, p->base, &base_table, &base);

    if (found)
        base_runs = runs_of(&base_table->points[base]);
    if (!speed) {
        hg_clean_append(w->r->metric, 0, w->out);
        hg_buf_puts(w->out, " of ");
    }
    append_name(w, t, point);
    hg_buf_puts(w->out, p->weak ? " has a scaled speedup of " : " is ");
    append_ratio(w, t, p, base_runs);
    hg_buf_puts(w->out, p->weak ? " over "
                        : speed ? " times as fast as "
                                : " times better than that of ");
    if (found)
        append_name(w, base_table, base);
    else
        hg_buf_puts(w->out, "its baseline");
    hg_buf_puts(w->out, ".");
    if (p->speedup.has_interval && p->speedup.low <= 1 && p->speedup.high >= 1)
        hg_buf_puts(w->out, " The interval contains 1: no difference is shown.");
    append_notes(w, t, p);
}

static void append_table(const struct prose *w, const struct hg_table *t)
{
    struct hg_buf title = HG_BUF_INIT;

    hg_table_title(w->r, t, &title);
    if (title.len) {
        hg_buf_puts(w->out, "\n");
        hg_clean_append(hg_buf_str(&title), 0, w->out);
        hg_buf_puts(w->out, "\n");
    }
    hg_buf_done(&title);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];

        if (p->n == 0 || p->is_baseline)
            continue;
        if (!isnan(p->speedup.value)) {
            append_comparison(w, t, i);
        } else if (p->n_notes) {
            hg_buf_puts(w->out, "No comparison of ");
            append_name(w, t, i);
            hg_buf_puts(w->out, ".");
            append_notes(w, t, p);
        }
    }
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    struct prose w = { .r = r, .out = out };
    struct hg_buf line = HG_BUF_INIT;
    size_t n = 0;

    (void)o;
    for (size_t i = 0; i < r->n_entries; i++)
        n = r->entries[i].config != SIZE_MAX && r->entries[i].config >= n ? r->entries[i].config + 1
                                                                          : n;
    w.of_config = hg_alloc_zeroed(n + 1, sizeof *w.of_config);
    for (size_t i = r->n_entries; i-- > 0;)
        if (r->entries[i].config != SIZE_MAX)
            w.of_config[r->entries[i].config] = &r->entries[i];
    hg_method_format(r, &line);
    hg_clean_append(r->title, 0, out);
    hg_buf_printf(out, ": %s\n\n", hg_buf_str(&line));
    for (size_t i = 0; i < r->tables.n; i++)
        append_table(&w, &r->tables.items[i]);
    hg_buf_puts(out, "\n");
    hg_origin_format(r, out);
    hg_buf_done(&line);
    free(w.of_config);
}

static void escape(const char *text, struct hg_buf *out)
{
    hg_clean_append(text, 0, out);
}

const struct hg_renderer hg_renderer_sentences = {
    .name = "sentences",
    .endings = "",
    .render = render,
    .escape = escape,
};
