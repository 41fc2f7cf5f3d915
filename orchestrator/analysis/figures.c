/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "analysis/build.h"

#define STATE_MAX 9 /* longer words stand in a note */

bool hg_section_exists(const struct hg_table *t, enum hg_section section)
{
    return section == HG_SECTION_VALUE || (section == HG_SECTION_SPEEDUP && t->has_speedup) ||
           (section == HG_SECTION_EFFICIENCY && t->has_efficiency);
}

static const char *unit_of(const char *metric)
{
    static const struct {
        const char *ending, *unit;
    } units[] = {
        { "_per_s", "per second" }, { "_s", "seconds" }, { "_j", "joules" }, { "_bytes", "bytes" }
    };
    size_t len = strcspn(metric, ".");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].ending);

        if (len > n && memcmp(metric + len - n, units[i].ending, n) == 0)
            return units[i].unit;
    }
    return NULL;
}

void hg_section_title(const struct hg_report *r, enum hg_section section, struct hg_buf *out)
{
    const char *unit = r->style.durations && hg_metric_is_time(r->metric) ? "minutes and seconds"
                                                                          : unit_of(r->metric);

    if (section == HG_SECTION_SPEEDUP) {
        hg_buf_puts(out, "speedup");
    } else if (section == HG_SECTION_EFFICIENCY) {
        hg_buf_puts(out, "efficiency");
    } else {
        hg_clean_append(r->metric, 0, out);
        if (unit)
            hg_buf_printf(out, ", %s", unit);
    }
}

static int value_decimals(const struct hg_table *t)
{
    double smallest = INFINITY, largest = 0, narrowest = INFINITY;
    int digits, decimals;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];
        double v = fabs(p->value.value);

        if (p->n == 0)
            continue;
        if (v > 0)
            smallest = fmin(smallest, v);
        largest = fmax(largest, v);
        if (p->value.has_interval)
            narrowest = fmin(narrowest, hg_stats_spread(&p->value));
    }
    if (!isfinite(smallest) || largest == 0)
        return 0;
    digits = isfinite(narrowest) && narrowest >= 0.01 ? 3 : 4;
    decimals = digits - 1 - (int)floor(log10(smallest));
    if (decimals > 6 - (int)floor(log10(largest))) /* seven digits in all */
        decimals = 6 - (int)floor(log10(largest));
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

/* Two, and more where a speedup is far below one. */
static int speedup_decimals(const struct hg_table *t)
{
    double smallest = 1;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++)
        if (t->points[i].speedup.value < smallest)
            smallest = t->points[i].speedup.value;
    return smallest >= 0.1 ? 2 : smallest >= 0.01 ? 3 : 4;
}

void hg_build_decimals(struct hg_table *t)
{
    t->value_decimals = value_decimals(t);
    t->speedup_decimals = speedup_decimals(t);
}

int hg_section_decimals(const struct hg_table *t, enum hg_section section)
{
    return section == HG_SECTION_SPEEDUP      ? t->speedup_decimals
           : section == HG_SECTION_EFFICIENCY ? 3
                                              : t->value_decimals;
}

static void format_spread(const struct hg_style *style, const struct hg_estimate *e,
                          char out[static 16])
{
    double percent = hg_stats_spread(e) * 100;
    struct hg_buf text = HG_BUF_INIT;

    out[0] = '\0';
    if (!e->has_interval)
        return;
    hg_buf_puts(&text, percent > 0 && percent < 0.05 ? "±<" : percent > 999 ? "±>" : "±");
    if (percent > 0 && percent < 0.05)
        hg_number_append(style, 0.1, 1, &text);
    else
        hg_number_append(style, fmin(percent, 999), percent > 0 && percent < 0.95, &text);
    snprintf(out, 16, "%s %%", hg_buf_str(&text));
    hg_buf_done(&text);
}

static void format_number(const struct hg_report *r, enum hg_section section, double v,
                          int decimals, struct hg_buf *out)
{
    if (v != 0 && (fabs(v) >= 1e15 || fabs(v) < 1e-9))
        hg_digits_append(&r->style, v, 4, out);
    else if (section == HG_SECTION_VALUE && hg_metric_is_time(r->metric))
        hg_seconds_append(&r->style, v, decimals, out);
    else
        hg_number_append(&r->style, v, decimals, out);
}

void hg_figure_format(const struct hg_report *r, const struct hg_point *p, enum hg_section section,
                      int decimals, struct hg_figure *figure)
{
    struct hg_buf text = HG_BUF_INIT;
    const struct hg_estimate *e = section == HG_SECTION_VALUE ? &p->value : &p->speedup;
    double v = section == HG_SECTION_EFFICIENCY ? p->efficiency : e->value;

    *figure = (struct hg_figure){ .number = "" };
    if (p->of == 0)
        return;
    if (p->n == 0 && section == HG_SECTION_VALUE && strlen(p->state) <= STATE_MAX)
        hg_clean_append(p->state, 0, &text);
    else if (p->n == 0 || isnan(v))
        hg_buf_puts(&text, "–");
    else
        format_number(r, section, v, decimals, &text);
    snprintf(figure->number, sizeof figure->number, "%s", hg_buf_str(&text));
    hg_buf_done(&text);
    if (p->n && !isnan(v) && section != HG_SECTION_EFFICIENCY)
        format_spread(&r->style, e, figure->spread);
}

void hg_mark_format(size_t number, struct hg_buf *out)
{
    static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
    char text[24];

    snprintf(text, sizeof text, "%zu", number + 1);
    for (const char *p = text; *p; p++)
        hg_buf_puts(out, digits[*p - '0']);
}

static bool is_called_by(const struct hg_report *r, const struct hg_table *t,
                         const struct hg_frame_key *key, enum hg_label what)
{
    if (key->flags & HG_KEY_SHAPE)
        return what == HG_LABEL_SHAPE;
    if (what == HG_LABEL_SERIES)
        return !(key->flags & HG_KEY_NOTE) && !(t->weak && hg_report_is_work(r, key->name));
    return what == HG_LABEL_CASE;
}

/* Append the values of a place's keys; numbers that are no shape have their key. */
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

void hg_marks_format(const struct hg_point *p, struct hg_buf *out)
{
    for (size_t i = 0; i < p->n_notes; i++) {
        hg_buf_puts(out, " ");
        hg_mark_format(p->notes[i], out);
    }
}

/* ---- Sentences ---- */

void hg_completeness_format(const struct hg_report *r, struct hg_buf *out)
{
    if (hg_report_is_complete(r)) {
        hg_buf_printf(out, "%zu of %zu cell%s complete", r->complete, r->cells,
                      hg_text_s(r->cells));
        return;
    }
    hg_buf_printf(out, "partial: %zu of %zu cell%s complete (", r->complete, r->cells,
                  hg_text_s(r->cells));
    for (size_t i = 0; i < r->states.n; i++) {
        hg_buf_printf(out, "%s%zu ", i ? ", " : "", r->states.items[i].n);
        hg_clean_append(r->states.items[i].word, 40, out);
    }
    hg_buf_puts(out, ")");
}

static void append_member(const char *name, const char *value, struct hg_buf *out)
{
    if (*value)
        hg_clean_append(name, 40, out);
    else
        hg_buf_puts(out, "no ");
    hg_buf_puts(out, *value ? "=" : "");
    hg_clean_append(*value ? value : name, 40, out);
}

static void append_json_member(const char *name, const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_string(value))
        hg_buf_puts(&text, json_string_value(value));
    else if (!json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    append_member(name, hg_buf_str(&text), out);
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
    if (r->repeats > 1)
        hg_buf_printf(out, ": median of %zu of %zu runs%s", r->repeats, r->repeats,
                      any_interval(r) ? ", ± is the 95 % interval" : "");
    else
        hg_buf_puts(out, ": one run each");
    if (r->has_direction)
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
        hg_buf_printf(out, "; %zu place%s refused: not like %s baseline", r->refused,
                      hg_text_s(r->refused), r->refused == 1 ? "its" : "their");
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
        append_member(r->frame.keys.items[r->same_keys[i]].name, hg_report_text(r, value), out);
        first = false;
    }
}

void hg_table_title(const struct hg_report *r, const struct hg_table *t, struct hg_buf *out)
{
    for (size_t i = 0; i < r->n_split_keys; i++) {
        hg_buf_puts(out, i ? " " : "");
        append_member(r->frame.keys.items[r->split_keys[i]].name, hg_report_text(r, t->split[i]),
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
    hg_buf_puts(out, ": not the hardware it names");
}

/* Control characters, and those that would turn the text around them: a name must not rearrange
 * what stands beside it. Letters that are written from right to left are no such thing. */
static bool is_control(const char *one)
{
    static const char *const bidi[] = {
        "\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
        "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff",
    };
    unsigned char first = (unsigned char)one[0];

    if (first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)one[1] < 0xa0))
        return true;
    for (size_t i = 0; first >= 0xd8 && i < sizeof bidi / sizeof *bidi; i++)
        if (strcmp(one, bidi[i]) == 0)
            return true;
    return false;
}

void hg_clean_append(const char *text, size_t columns, struct hg_buf *out)
{
    size_t width = 0;
    bool cut = columns && hg_text_width(text) > columns;

    while (*text) {
        size_t n = 1;
        char one[8];

        while (((unsigned char)text[n] & 0xc0) == 0x80 && n < 4)
            n++;
        memcpy(one, text, n);
        one[n] = '\0';
        if (is_control(one))
            strcpy(one, "?");
        width += hg_text_width(one);
        if (cut && width > columns - 1) {
            hg_buf_puts(out, "…");
            return;
        }
        hg_buf_puts(out, one);
        text += n;
    }
}

/* ---- Lines ---- */

void hg_line_end(struct hg_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    if (out->data)
        out->data[out->len] = '\0';
    hg_buf_puts(out, "\n");
}

/* Bytes of the text that fit into so many columns; at least one character. */
static size_t fitting(const char *text, size_t n, size_t columns)
{
    size_t fits = 0, width = 0;

    while (fits < n) {
        char one[8] = { text[fits] };
        size_t len = 1;

        while (fits + len < n && len < 4 && ((unsigned char)text[fits + len] & 0xc0) == 0x80) {
            one[len] = text[fits + len];
            len++;
        }
        width += hg_text_width(one);
        if (fits && width > columns)
            break;
        fits += len;
    }
    return fits;
}

static size_t fitted_width(const char *text, size_t n)
{
    char *part = strndup(text, n);
    size_t width = part ? hg_text_width(part) : n;

    free(part);
    return width;
}

void hg_wrapped_append(const char *text, size_t width, size_t indent, size_t at, struct hg_buf *out)
{
    bool first = true;

    while (*text) {
        size_t n = strcspn(text, " "), room = width > at + !first ? width - at - !first : 0;
        bool fits = room && fitting(text, n, room) == n;

        if (!fits && at > indent) {
            hg_line_end(out);
            hg_buf_printf(out, "%*s", (int)indent, "");
            at = indent;
            first = true;
            continue;
        }
        if (!first) {
            hg_buf_puts(out, " ");
            at++;
        }
        n = fits ? n : fitting(text, n, room);
        hg_buf_append(out, text, n);
        at = fits ? at + fitted_width(text, n) : width;
        first = !fits;
        text += n + (fits ? strspn(text + n, " ") : 0);
    }
    hg_buf_puts(out, "\n");
}
