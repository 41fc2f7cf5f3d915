/* SPDX-License-Identifier: Apache-2.0 */
#include "render/kinds.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/labels.h"
#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "render/lines.h"
#include "typeset/escape.h"

#define EOL "\r\n"

/* ---- Steps and epochs ---- */

/* The lists of one result, by name: those of `loss` that belong to steps; or `loss.epoch`, called loss, and those of the result
 * itself. A new reference. */
static json_t *lists_of(const struct hg_result *result, bool steps)
{
    json_t *lists = json_object(), *value;
    json_t *loss = hg_result_get(result, "loss"), *entry = steps ? NULL : hg_result_entry(result);
    const char *name;

    json_object_foreach(steps ? loss : entry, name, value) {
        if (json_is_array(value) && json_is_number(json_array_get(value, 0)) &&
            strcmp(name, "epoch") != 0)
            json_object_set(lists, name, value);
    }
    if (!steps && json_array_size(json_object_get(loss, "epoch")))
        json_object_set(lists, "loss", json_object_get(loss, "epoch"));
    json_decref(loss);
    json_decref(entry);
    return lists;
}

static size_t longest(const json_t *lists)
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)lists, name, value)
        n = json_array_size(value) > n ? json_array_size(value) : n;
    return n;
}

/* Names of lists in order of appearance: the values of an object. */
static json_t *all_names(const struct hg_report *r, bool steps)
{
    json_t *names = json_object(), *value;
    const char *name;

    for (size_t i = 0; i < r->n_entries; i++) {
        json_t *lists = r->entries[i].shown ? lists_of(r->entries[i].result, steps) : NULL;

        json_object_foreach(lists, name, value)
            json_object_set_new(names, name, json_null());
        json_decref(lists);
    }
    if (steps) /* it numbers the lines */
        json_object_del(names, "step");
    return names;
}

static void append_curve(const struct hg_report *r, size_t entry, bool steps, const json_t *names,
                         struct hg_buf *out)
{
    const struct hg_result *result = r->entries[entry].result;
    json_t *lists = lists_of(result, steps), *value;
    const uint32_t *row = hg_frame_row(&r->frame, entry);
    const char *gap = hg_csv_separator(&r->style), *name;

    for (size_t i = 0; i < longest(lists); i++) {
        const json_t *step = json_array_get(json_object_get(lists, "step"), i);

        hg_csv_append_text(&r->style, result->id, out);
        hg_buf_puts(out, gap);
        hg_csv_append_text(&r->style, result->attempt, out);
        for (size_t k = 0; k < r->frame.keys.n; k++) {
            hg_buf_puts(out, gap);
            hg_csv_append_json(&r->style, "", r->frame.values.items[row[k]].json, out);
        }
        hg_buf_puts(out, gap);
        hg_csv_append_number(&r->style, steps && step ? json_number_value(step) : (double)(i + 1),
                             out);
        json_object_foreach((json_t *)names, name, value) {
            hg_buf_puts(out, gap);
            hg_csv_append_json(&r->style, name, json_array_get(json_object_get(lists, name), i),
                               out);
        }
        hg_buf_puts(out, EOL);
    }
    json_decref(lists);
}

static int render_curves(const struct hg_report *r, bool steps, struct hg_buf *out,
                         struct hg_err *err)
{
    json_t *names = all_names(r, steps), *value;
    const char *gap = hg_csv_separator(&r->style), *name;
    int rc = 0;

    if (json_object_size(names) == 0) {
        rc = hg_err_set(err, HG_E_INPUT, "--csv: no result has a list by %s",
                        steps ? "step (loss.step, loss.loss)" : "epoch (loss.epoch, epoch_s)");
        goto out;
    }
    hg_buf_printf(out, "id%sattempt", gap);
    for (size_t k = 0; k < r->frame.keys.n; k++) {
        hg_buf_puts(out, gap);
        hg_csv_append(&r->style, r->frame.keys.items[k].name, out);
    }
    hg_buf_printf(out, "%s%s", gap, steps ? "step" : "epoch");
    json_object_foreach(names, name, value) {
        hg_buf_puts(out, gap);
        hg_csv_append(&r->style, name, out);
    }
    hg_buf_puts(out, EOL);
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            append_curve(r, i, steps, names, out);
out:
    json_decref(names);
    return rc;
}

/* ---- pgfplots ---- */

/* The columns of a plot: cases of all tables. */
struct cases {
    struct hg_map index; /* label: number */
    char **items;        /* as names for pgfplots */
    size_t n, cap;
};

static char *plot_name(const char *label)
{
    struct hg_buf name = HG_BUF_INIT;

    for (const char *p = label; *p; p++)
        if (isalnum((unsigned char)*p))
            hg_buf_append(&name, p, 1);
        else if (name.len && name.data[name.len - 1] != '_')
            hg_buf_puts(&name, "_");
    return hg_buf_detach(&name);
}

static size_t case_of(struct cases *c, const struct hg_report *r, const struct hg_table *t,
                      size_t point)
{
    struct hg_buf label = HG_BUF_INIT;
    size_t at;

    hg_point_label(r, t, point, HG_LABEL_CASE, &label);
    at = hg_map_put(&c->index, hg_buf_str(&label), label.len, c->n);
    if (at == c->n) {
        char *name = plot_name(hg_buf_str(&label));

        for (size_t i = 0; i < at; i++)
            if (strcmp(c->items[i], name) == 0) { /* "a b" and "a-b" */
                char *numbered = hg_str_printf("%s_%zu", name, at + 1);

                free(name);
                name = numbered;
            }
        *HG_VEC_PUSH(c) = name;
    }
    hg_buf_done(&label);
    return at;
}

static void append_plain(double v, struct hg_buf *out)
{
    static const struct hg_style points = HG_STYLE_INIT;

    if (isfinite(v))
        hg_csv_append_number(&points, v, out);
    else
        hg_buf_puts(out, "nan");
}

static void append_bars(const struct hg_estimate *e, struct hg_buf *out)
{
    hg_buf_puts(out, ",");
    append_plain(e->value, out);
    hg_buf_puts(out, ",");
    append_plain(e->has_interval ? e->value - e->low : NAN, out);
    hg_buf_puts(out, ",");
    append_plain(e->has_interval ? e->high - e->value : NAN, out);
}

/* The places of one table on the same devices, one for each case, in a line. */
static void append_devices(const struct hg_report *r, size_t table, const size_t *of_case, size_t n,
                           struct hg_buf *out)
{
    static const struct hg_point nothing = { .value = HG_ESTIMATE_NONE,
                                             .speedup = HG_ESTIMATE_NONE,
                                             .efficiency = NAN };
    const struct hg_table *t = &r->tables.items[table];
    bool first = true;

    for (size_t c = 0; c < n; c++) {
        const struct hg_point *p = of_case[c] == SIZE_MAX ? &nothing : &t->points[of_case[c]];

        if (first && p != &nothing) {
            hg_buf_printf(out, "%zu,", table + 1);
            append_plain(p->devices, out);
            first = false;
        }
    }
    for (size_t c = 0; c < n; c++) {
        const struct hg_point *p = of_case[c] == SIZE_MAX ? &nothing : &t->points[of_case[c]];

        append_bars(&p->value, out);
        append_bars(&p->speedup, out);
        hg_buf_puts(out, ",");
        append_plain(p->efficiency, out);
    }
    hg_buf_puts(out, EOL);
}

/* Places by their devices; of equally many, those of other shapes follow in lines of their own. */
static void append_plot(const struct hg_report *r, size_t table, struct cases *cases,
                        struct hg_buf *out)
{
    const struct hg_table *t = &r->tables.items[table];
    size_t n = t->n_rows * t->n_columns, left = 0;
    size_t *of_case = hg_alloc((cases->n + 1) * sizeof *of_case);
    bool *done = hg_alloc_zeroed(n + 1, sizeof *done);

    for (size_t i = 0; i < n; i++) {
        done[i] = t->points[i].n == 0;
        left += !done[i];
    }
    while (left) {
        double devices = NAN;

        for (size_t i = 0; i < n; i++)
            if (!done[i] && !(t->points[i].devices >= devices))
                devices = t->points[i].devices;
        memset(of_case, 0xff, cases->n * sizeof *of_case); /* SIZE_MAX */
        for (size_t i = 0; i < n; i++) {
            size_t c = done[i] ? 0 : case_of(cases, r, t, i);
            bool here =
                t->points[i].devices == devices || (isnan(devices) && isnan(t->points[i].devices));

            if (done[i] || !here || of_case[c] != SIZE_MAX)
                continue;
            of_case[c] = i;
            done[i] = true;
            left--;
        }
        append_devices(r, table, of_case, cases->n, out);
    }
    free(of_case);
    free(done);
}

static void render_plots(const struct hg_report *r, struct hg_buf *out)
{
    static const char *const figures[] = { "",           "_minus",         "_plus",
                                           "_speedup",   "_speedup_minus", "_speedup_plus",
                                           "_efficiency" };
    struct cases cases = { 0 };

    for (size_t i = 0; i < r->tables.n; i++)
        for (size_t k = 0; k < r->tables.items[i].n_rows * r->tables.items[i].n_columns; k++)
            if (r->tables.items[i].points[k].n)
                case_of(&cases, r, &r->tables.items[i], k);
    hg_buf_puts(out, "table,devices");
    for (size_t c = 0; c < cases.n; c++)
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
            hg_buf_printf(out, ",%s%s", cases.items[c], figures[f]);
    hg_buf_puts(out, EOL);
    for (size_t i = 0; i < r->tables.n; i++)
        append_plot(r, i, &cases, out);
    for (size_t c = 0; c < cases.n; c++)
        free(cases.items[c]);
    HG_VEC_DONE(&cases);
    hg_map_done(&cases.index);
}

int hg_csv_kind_render(const struct hg_report *r, const char *kind, struct hg_buf *out,
                       struct hg_err *err)
{
    if (strcmp(kind, "pgfplots") == 0) {
        render_plots(r, out);
        return 0;
    }
    if (strcmp(kind, "steps") != 0 && strcmp(kind, "epochs") != 0)
        return hg_err_set(err, HG_E_USAGE, "--csv: \"%s\" is not " HG_CSV_KINDS, kind);
    return render_curves(r, strcmp(kind, "steps") == 0, out, err);
}
