/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "typeset/plain.h"

#define STATE_MAX 9 /* longer words go into a note */

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

void hg_figures_settle(const struct hg_report *r, struct hg_table *t)
{
    const struct hg_style *s = &r->style;

    t->value_decimals = s->decimals ? s->decimals - 1 : value_decimals(t);
    t->speedup_decimals = s->speedup_decimals ? s->speedup_decimals - 1 : speedup_decimals(t);
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

double hg_section_value(const struct hg_point *p, enum hg_section section)
{
    return p->n == 0                          ? NAN
           : section == HG_SECTION_SPEEDUP    ? p->speedup.value
           : section == HG_SECTION_EFFICIENCY ? p->efficiency
                                              : p->value.value;
}

void hg_figure_format(const struct hg_report *r, const struct hg_point *p, enum hg_section section,
                      int decimals, struct hg_figure *figure)
{
    struct hg_buf text = HG_BUF_INIT;
    const struct hg_estimate *e = section == HG_SECTION_VALUE ? &p->value : &p->speedup;
    double v = hg_section_value(p, section);

    *figure = (struct hg_figure){ .number = "" };
    if (p->of == 0)
        return;
    if (p->n == 0 && section == HG_SECTION_VALUE && strlen(p->state) <= STATE_MAX)
        hg_clean_append(p->state, 0, &text);
    else if (isnan(v))
        hg_buf_puts(&text, "–");
    else
        format_number(r, section, v, decimals, &text);
    snprintf(figure->number, sizeof figure->number, "%s", hg_buf_str(&text));
    hg_buf_done(&text);
    if (!isnan(v) && section != HG_SECTION_EFFICIENCY)
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

void hg_marks_format(const struct hg_point *p, struct hg_buf *out)
{
    for (size_t i = 0; i < p->n_notes; i++) {
        hg_buf_puts(out, " ");
        hg_mark_format(p->notes[i], out);
    }
}
