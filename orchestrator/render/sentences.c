/* SPDX-License-Identifier: Apache-2.0 */
#include "render/sentences.h"

#include "base/json.h"
#include "base/text.h"
#include "analysis/code.h"
#include "analysis/labels.h"
#include "render/page.h"
#include "typeset/plain.h"

static void append_absent(const struct hg_report *r, struct hg_buf *out)
{
    if (r->skipped)
        hg_buf_printf(out, "; %zu more cannot run", r->skipped);
    if (r->removed)
        hg_buf_printf(out, "; %zu %s no longer in the matrix", r->removed,
                      r->removed == 1 ? "is" : "are");
}

void hg_completeness_format(const struct hg_report *r, struct hg_buf *out)
{
    bool complete = hg_report_is_complete(r);

    hg_buf_printf(out, "%s%zu of %zu cell%s complete", complete ? "" : "partial: ", r->complete,
                  r->cells, hg_text_s(r->cells));
    for (size_t i = 0; i < r->states.n && !complete; i++) {
        hg_buf_printf(out, "%s%zu ", i ? ", " : " (", r->states.items[i].n);
        hg_clean_append(r->states.items[i].word, 40, out);
    }
    hg_buf_puts(out, complete ? "" : ")");
    append_absent(r, out);
}

static void append_json_member(const char *name, const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_string(value))
        hg_buf_puts(&text, json_string_value(value));
    else if (!json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    hg_member_append(name, hg_buf_str(&text), out);
    hg_buf_done(&text);
}

static bool any_interval(const struct hg_report *r)
{
    for (size_t t = 0; t < r->tables.n; t++)
        for (size_t i = 0; i < r->tables.items[t].n_rows * r->tables.items[t].n_columns; i++)
            if (r->tables.items[t].points[i].value.has_interval)
                return true;
    return false;
}

static bool any_published(const struct hg_report *r)
{
    for (size_t t = 0; t < r->tables.n; t++)
        for (size_t i = 0; i < r->tables.items[t].n_rows * r->tables.items[t].n_columns; i++)
            if (r->tables.items[t].points[i].published)
                return true;
    return false;
}

static bool any_weak(const struct hg_report *r)
{
    for (size_t t = 0; t < r->tables.n; t++)
        if (r->tables.items[t].weak)
            return true;
    return false;
}

static bool any_speedup(const struct hg_report *r)
{
    for (size_t t = 0; t < r->tables.n; t++)
        if (r->tables.items[t].has_speedup)
            return true;
    return false;
}

void hg_method_format(const struct hg_report *r, struct hg_buf *out)
{
    hg_clean_append(r->metric, 0, out);
    if (r->adaptive)
        hg_buf_printf(out, ": %s of %lld to %lld runs, repeated until ±%.3g %%%s",
                      hg_statistic_words[r->statistic], r->adaptive->min, r->adaptive->max,
                      100 * r->adaptive->until, any_interval(r) ? ", ± is the 95 % interval" : "");
    else if (r->repeats > 1)
        hg_buf_printf(out, ": %s of %zu of %zu runs%s", hg_statistic_words[r->statistic],
                      r->repeats, r->repeats, any_interval(r) ? ", ± is the 95 % interval" : "");
    else if (r->tables.n)
        hg_buf_printf(out, ": one run each%s%s", any_published(r) ? " but for the footnotes" : "",
                      any_interval(r) ? "; ± is the 95 % interval" : "");
    if (r->has_direction)
        hg_buf_printf(out, "; %s is better", r->higher_is_better ? "higher" : "lower");
}

void hg_geometric_format(const struct hg_report *r, struct hg_buf *out)
{
    hg_clean_append(r->metric, 0, out);
    if (r->repeats > 1)
        hg_buf_printf(out, ": geometric mean of %zu of %zu runs%s", r->repeats, r->repeats,
                      r->repeats >= HG_STATS_INTERVAL_MIN ? ", ± is the 95 % interval" : "");
    else
        hg_buf_puts(out, ": one run each");
    hg_buf_printf(out, "; %s is better", r->higher_is_better ? "higher" : "lower");
}

void hg_baseline_format(const struct hg_report *r, struct hg_buf *out)
{
    const char *name;
    json_t *value;

    if (!any_speedup(r))
        return;
    hg_buf_puts(out, "speedup and efficiency against");
    if (!r->baseline)
        hg_buf_puts(out, " each cell's baseline");
    json_object_foreach(r->baseline, name, value) {
        hg_buf_puts(out, " ");
        append_json_member(name, value, out);
    }
    if (any_weak(r))
        hg_buf_puts(out, "; weak scaling");
    if (r->refused)
        hg_buf_printf(out, "; %zu place%s refused: not comparable", r->refused,
                      hg_text_s(r->refused));
}

void hg_code_format(const struct hg_report *r, size_t n_a, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;
    bool known = false;

    for (size_t s = 0; s < r->n_sets; s++) {
        size_t before;

        hg_buf_printf(&text, "%s%s ", s ? "; " : "code under test: ", s < n_a ? "A" : "B");
        before = text.len;
        hg_code_of_set(r, s, &text);
        known = known || text.len > before;
        hg_buf_puts(&text, text.len > before ? "" : "not known");
    }
    if (known)
        hg_clean_append(hg_buf_str(&text), 0, out);
    hg_buf_done(&text);
}

void hg_common_format(const struct hg_report *r, struct hg_buf *out)
{
    bool first = true;

    for (size_t i = 0; i < r->n_same_keys; i++) {
        uint32_t value = r->n_entries ? hg_frame_row(&r->frame, 0)[r->same_keys[i]] : 0;

        for (size_t e = 0; e < r->n_entries; e++)
            if (r->entries[e].shown) {
                value = hg_frame_row(&r->frame, e)[r->same_keys[i]];
                break;
            }
        if (value == 0)
            continue;
        hg_buf_puts(out, first ? "" : " ");
        hg_member_append(r->frame.keys.items[r->same_keys[i]].name, hg_report_text(r, value), out);
        first = false;
    }
}

const char *hg_set_text(const struct hg_results *set, const char *member)
{
    const char *text = json_string_value(json_object_get(set->doc.root, member));

    return text && *text ? text : NULL;
}

void hg_origin_format(const struct hg_report *r, struct hg_buf *out)
{
    static const char *const members[] = { "source", "note" };

    for (size_t s = 0; s < r->n_sets; s++)
        for (size_t m = 0; m < 2; m++) {
            const char *text = hg_set_text(&r->sets[s], members[m]);

            if (!text)
                continue;
            hg_buf_puts(out, members[m]);
            if (r->n_sets > 1) {
                hg_buf_puts(out, " of ");
                hg_clean_append(r->labels[s], 0, out);
            }
            hg_buf_puts(out, ": ");
            hg_clean_append(text, 0, out);
            hg_buf_puts(out, "\n");
        }
    hg_buf_puts(out, HG_MADE_BY);
    hg_measured_format(r, out);
    hg_buf_puts(out, "\n");
}
