/* SPDX-License-Identifier: Apache-2.0 */
/* The report as JSON, "schema": "hpcgrid-report/1": every figure with all its digits. */
#include "render/renderers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "render/listings.h"
#include "render/sentences.h"

static json_t *key_names(const struct hg_report *r, const size_t *keys, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(r->frame.keys.items[keys[i]].name));
    return list;
}

static json_t *members(const struct hg_report *r, const size_t *keys, size_t n,
                       const uint32_t *values)
{
    json_t *object = json_object();

    for (size_t i = 0; i < n; i++) {
        json_t *value = r->frame.values.items[values[i]].json;

        json_object_set_new(object, r->frame.keys.items[keys[i]].name,
                            value ? json_incref(value) : json_null());
    }
    return object;
}

static void set_estimate(json_t *object, const char *name, const struct hg_estimate *e)
{
    char interval[64];

    if (isnan(e->value))
        return;
    json_object_set_new(object, name, hg_json_number(e->value));
    if (!e->has_interval)
        return;
    snprintf(interval, sizeof interval, "%s_interval", name);
    json_object_set_new(object, interval,
                        json_pack("[o, o]", hg_json_number(e->low), hg_json_number(e->high)));
}

static void set_number(json_t *object, const char *name, double v)
{
    if (isfinite(v))
        json_object_set_new(object, name, hg_json_number(v));
}

static json_t *point(const struct hg_report *r, const struct hg_table *t, size_t row, size_t column)
{
    const struct hg_point *p = hg_table_point(t, row, column);
    json_t *object = json_object(), *notes;

    json_object_set_new(object, "row",
                        members(r, r->row_keys, r->n_row_keys, t->rows + row * r->n_row_keys));
    json_object_set_new(
        object, "column",
        members(r, r->column_keys, r->n_column_keys, t->columns + column * r->n_column_keys));
    json_object_set_new(object, "n", json_integer((json_int_t)p->n));
    json_object_set_new(object, "of", json_integer((json_int_t)p->of));
    if (p->state)
        json_object_set_new(object, "state", json_string(p->state));
    if (p->published)
        json_object_set_new(object, "runs", json_integer((json_int_t)p->published));
    set_estimate(object, "value", &p->value);
    set_estimate(object, "speedup", &p->speedup);
    if (p->pairs)
        json_object_set_new(object, "pairs", json_integer((json_int_t)p->pairs));
    set_number(object, "efficiency", p->efficiency);
    set_number(object, "serial_fraction", p->karp_flatt);
    set_number(object, "devices", p->devices);
    set_number(object, "devices_ratio", p->p);
    set_number(object, "work_ratio", p->work);
    if (p->weak)
        json_object_set_new(object, "scaling", json_string("weak"));
    if (p->alone)
        json_object_set_new(object, "comparable", json_false());
    if (p->refused)
        json_object_set_new(object, "refused", json_true());
    set_estimate(object, "samples_per_s", &p->per_s);
    set_number(object, "device_hours", p->device_hours);
    set_number(object, "energy_j", p->energy_j);
    set_number(object, "cost", p->cost);
    if (p->is_baseline)
        json_object_set_new(object, "is_baseline", json_true());
    if (p->n_notes == 0)
        return object;
    notes = json_array();
    for (size_t i = 0; i < p->n_notes; i++)
        json_array_append_new(notes, hg_json_text(t->notes.items[p->notes[i]]));
    json_object_set_new(object, "notes", notes);
    return object;
}

static json_t *prediction(const struct hg_report *r, const struct hg_series *s)
{
    json_t *object = json_pack("{s:s}", "law", hg_law_names[s->prediction.law]);

    set_number(object, "devices", s->prediction.devices);
    set_number(object, "devices_ratio", s->prediction.p);
    set_estimate(object, "speedup", &s->prediction.speedup);
    set_estimate(object, r->metric, &s->prediction.value);
    return object;
}

/* Members of a law: NAME, NAME_error, NAME_interval for each coefficient. */
static const struct {
    const char *name, *coefficients[HG_LAW_COEFFICIENTS_MAX];
} law_members[HG_LAWS] = { { "amdahl", { "serial_fraction" } },
                           { "usl", { "contention", "coherency" } },
                           { "gustafson", { "serial_fraction" } } };

static void set_coefficient(json_t *object, const char *name, const struct hg_coefficient *c)
{
    struct hg_estimate e = { c->value, c->low, c->high, true };
    char *error = hg_str_printf("%s_error", name);

    set_estimate(object, name, &e);
    set_number(object, error, c->error);
    free(error);
}

static json_t *law_fit(const struct hg_law_fit *fit)
{
    json_t *object = json_object();

    for (size_t k = 0; k < fit->n; k++)
        set_coefficient(object, law_members[fit->law].coefficients[k], &fit->coefficients[k]);
    if (fit->law != HG_LAW_GUSTAFSON) {
        set_number(object, "limit", hg_laws_limit(fit));
        set_number(object, "knee_devices_ratio", hg_laws_knee(fit));
    }
    if (fit->law == HG_LAW_USL)
        set_number(object, "peak_devices_ratio", hg_laws_peak(fit));
    set_number(object, "error", fit->error);
    set_number(object, "degrees_of_freedom", fit->freedom);
    if (fit->lack_of_fit)
        json_object_set_new(object, "lack_of_fit", json_true());
    return object;
}

static json_t *series(const struct hg_report *r, const struct hg_series *s)
{
    json_t *object = json_pack("{s:s, s:i, s:s}", "label", s->label, "points", (int)s->n_points,
                               "kind", hg_scaling_kind_words[s->kind]);
    json_t *withheld = json_object();

    for (enum hg_law law = 0; law < HG_LAWS; law++) {
        if (s->has_law[law])
            json_object_set_new(object, law_members[law].name, law_fit(&s->laws[law]));
        if (s->no_law[law])
            json_object_set_new(withheld, law_members[law].name, json_string(s->no_law[law]));
    }
    if (s->has_prediction)
        json_object_set_new(object, "predicted", prediction(r, s));
    if (s->no_prediction)
        json_object_set_new(withheld, "predicted", json_string(s->no_prediction));
    if (s->law_points)
        json_object_set_new(object, "law_points", json_integer((json_int_t)s->law_points));
    if (json_object_size(withheld))
        json_object_set(object, "withheld", withheld);
    json_decref(withheld);
    return object;
}

static json_t *table(const struct hg_report *r, const struct hg_table *t)
{
    json_t *object = json_object(), *points = json_array(), *scaling = json_array(),
           *remarks = json_array();

    json_object_set_new(object, "where", members(r, r->split_keys, r->n_split_keys, t->split));
    json_object_set_new(object, "rehearsal", json_boolean(t->rehearsal));
    if (t->device)
        json_object_set_new(object, "device", json_string(t->device));
    for (size_t row = 0; row < t->n_rows; row++)
        for (size_t column = 0; column < t->n_columns; column++)
            if (hg_table_point(t, row, column)->of)
                json_array_append_new(points, point(r, t, row, column));
    for (size_t i = 0; i < t->series.n; i++)
        json_array_append_new(scaling, series(r, &t->series.items[i]));
    for (size_t i = 0; i < t->remarks.n; i++)
        json_array_append_new(remarks, hg_json_text(t->remarks.items[i]));
    json_object_set_new(object, "points", points);
    json_object_set_new(object, "scaling", scaling);
    json_object_set_new(object, "listings", hg_listings_encode(&t->listings));
    json_object_set_new(object, "remarks", remarks);
    if (t->no_speedup)
        json_object_set_new(object, "no_speedup", hg_json_text(t->no_speedup));
    return object;
}

static json_t *set_list(const struct hg_report *r)
{
    static const char *const members[] = { "source", "repository", "commit", "date", "note" };
    json_t *list = json_array();

    for (size_t s = 0; s < r->n_sets; s++) {
        json_t *object = json_object(), *value;

        json_object_set_new(object, "label", hg_json_text(r->labels[s]));
        for (size_t m = 0; m < sizeof members / sizeof *members; m++)
            if ((value = json_object_get(r->sets[s].doc.root, members[m])))
                json_object_set(object, members[m], value);
        json_array_append_new(list, object);
    }
    return list;
}

static void render(const struct hg_report *r, const struct hg_render_options *o, struct hg_buf *out)
{
    static const char *const kinds[] = { "time", "rate", "other" };
    json_t *root = json_object(), *states = json_object(), *tables = json_array();

    (void)o;
    for (size_t i = 0; i < r->states.n; i++)
        json_object_set_new(states, r->states.items[i].word,
                            json_integer((json_int_t)r->states.items[i].n));
    for (size_t i = 0; i < r->tables.n; i++)
        json_array_append_new(tables, table(r, &r->tables.items[i]));
    json_object_set_new(root, "schema", json_string("hpcgrid-report/1"));
    json_object_set_new(root, "title", hg_json_text(r->title));
    json_object_set_new(root, "complete", json_boolean(hg_report_is_complete(r)));
    json_object_set_new(root, "cells", json_integer((json_int_t)r->cells));
    json_object_set_new(root, "cells_complete", json_integer((json_int_t)r->complete));
    json_object_set_new(root, "states", states);
    if (r->skipped)
        json_object_set_new(root, "skipped", json_integer((json_int_t)r->skipped));
    if (r->removed)
        json_object_set_new(root, "removed", json_integer((json_int_t)r->removed));
    json_object_set_new(root, "metric", json_string(r->metric));
    json_object_set_new(root, "kind", json_string(kinds[r->kind]));
    if (r->has_direction)
        json_object_set_new(root, "better", json_string(r->higher_is_better ? "higher" : "lower"));
    if (r->currency)
        json_object_set_new(root, "currency", json_string(r->currency));
    json_object_set_new(root, "refused", json_integer((json_int_t)r->refused));
    json_object_set_new(root, "statistic", json_string(hg_statistic_words[r->statistic]));
    json_object_set_new(root, "level", json_real(HG_STATS_LEVEL));
    if (r->adaptive)
        json_object_set_new(root, "repeats",
                            json_pack("{s:f,s:I,s:I}", "until", r->adaptive->until, "min",
                                      (json_int_t)r->adaptive->min, "max",
                                      (json_int_t)r->adaptive->max));
    json_object_set_new(root, "baseline", r->baseline ? json_incref(r->baseline) : json_null());
    json_object_set_new(root, "rows", key_names(r, r->row_keys, r->n_row_keys));
    json_object_set_new(root, "columns", key_names(r, r->column_keys, r->n_column_keys));
    json_object_set_new(root, "made_by", json_string(HG_MADE_BY));
    json_object_set_new(root, "sets", set_list(r));
    json_object_set_new(root, "tables", tables);
    json_object_set_new(root, "listings", hg_listings_encode(&r->listings));
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}

/* Inside of a JSON string: without its quotes. */
static void escape(const char *text, struct hg_buf *out)
{
    struct hg_buf quoted = HG_BUF_INIT;

    hg_json_dump_string(text, strlen(text), &quoted);
    if (quoted.len >= 2)
        hg_buf_append(out, quoted.data + 1, quoted.len - 2);
    hg_buf_done(&quoted);
}

const struct hg_renderer hg_renderer_json = {
    .name = "json",
    .endings = "json",
    .file = "report.json",
    .fixed_numbers = true,
    .render = render,
    .escape = escape,
};
