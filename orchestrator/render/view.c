/* SPDX-License-Identifier: Apache-2.0 */
#include "render/view.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "typeset/escape.h"
#include "analysis/figures.h"
#include "analysis/labels.h"
#include "render/mustache.h"
#include "render/renderers.h"
#include "render/sentences.h"

/* One element of each list, "" for texts. A test compares it with the views of real reports. */
static const char shape_text[] =
    "{ \"title\": \"\", \"metric\": \"\", \"complete\": true, \"completeness\": \"\", \"cells\": 0,"
    "  \"cells_complete\": 0, \"method\": \"\", \"baseline\": \"\", \"common\": \"\", \"command\": \"\","
    "  \"states\": [{ \"state\": \"\", \"n\": 0 }],"
    "  \"facts\": [{ \"name\": \"\", \"value\": \"\" }],"
    "  \"tables\": [{"
    "    \"number\": 0, \"where\": \"\", \"rehearsal\": true, \"no_speedup\": \"\","
    "    \"keys\": [{ \"name\": \"\" }],"
    "    \"columns\": [{ \"label\": \"\", \"members\": [{ \"name\": \"\", \"value\": \"\" }] }],"
    "    \"sections\": [{ \"name\": \"\", \"title\": \"\","
    "      \"rows\": [{ \"keys\": [{ \"name\": \"\", \"value\": \"\" }],"
    "        \"places\": [{ \"number\": \"\", \"spread\": \"\", \"exact\": \"\", \"state\": \"\", \"n\": 0,"
    "          \"of\": 0, \"marks\": [{ \"number\": 0 }] }] }] }],"
    "    \"remarks\": [{ \"text\": \"\" }], \"notes\": [{ \"number\": 0, \"text\": \"\" }],"
    "    \"listings\": [{ \"name\": \"\", \"title\": \"\", \"columns\": [{ \"name\": \"\", \"title\": \"\","
    "      \"left\": true }], \"rows\": [{ \"values\": [{ \"text\": \"\", \"exact\": \"\" }] }],"
    "      \"notes\": [{ \"text\": \"\" }] }] }],"
    "  \"listings\": [{ \"name\": \"\", \"title\": \"\", \"columns\": [{ \"name\": \"\", \"title\": \"\","
    "    \"left\": true }], \"rows\": [{ \"values\": [{ \"text\": \"\", \"exact\": \"\" }] }],"
    "    \"notes\": [{ \"text\": \"\" }] }],"
    "  \"results\": [{ \"set\": \"\", \"id\": \"\", \"attempt\": \"\", \"status\": \"\", \"counts\": true,"
    "    \"value\": \"\", \"exact\": \"\", \"folder\": \"\", \"cell\": { \"*\": \"\" } }] }";

json_t *hg_view_shape(void)
{
    return json_loads(shape_text, 0, NULL);
}

/* ---- Small parts ---- */

static void set(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, hg_json_text(text ? text : ""));
}

static void set_count(json_t *object, const char *name, size_t n)
{
    json_object_set_new(object, name, json_integer((json_int_t)n));
}

/* All digits, with a point; "" if there is no number. */
static void set_exact(json_t *object, double v)
{
    char digits[32] = "";

    if (isfinite(v))
        digits[hg_text_number_format(v, digits)] = '\0';
    set(object, "exact", digits);
}

static void set_buf(json_t *object, const char *name, struct hg_buf *text)
{
    set(object, name, hg_buf_str(text));
    hg_buf_done(text);
}

static void set_sentence(json_t *object, const char *name, const struct hg_report *r,
                         void (*format)(const struct hg_report *r, struct hg_buf *out))
{
    struct hg_buf text = HG_BUF_INIT;

    format(r, &text);
    set_buf(object, name, &text);
}

static json_t *pair(const char *name, const char *value)
{
    json_t *object = json_object();

    set(object, "name", name);
    set(object, "value", value);
    return object;
}

static json_t *members(const struct hg_report *r, const size_t *keys, size_t n,
                       const uint32_t *values)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, pair(r->frame.keys.items[keys[i]].name,
                                         values[i] ? hg_report_text(r, values[i]) : "–"));
    return list;
}

/* ---- Tables ---- */

static json_t *view_place(const struct hg_report *r, const struct hg_point *p,
                          enum hg_section section, int decimals)
{
    json_t *object = json_object(), *marks = json_array();
    struct hg_figure figure;

    hg_figure_format(r, p, section, decimals, &figure);
    set(object, "number", figure.number);
    set(object, "spread", figure.spread);
    set_exact(object, hg_section_value(p, section));
    set(object, "state", p->state);
    set_count(object, "n", p->n);
    set_count(object, "of", p->of);
    for (size_t i = 0; i < p->n_notes && *figure.number; i++)
        json_array_append_new(marks, json_pack("{s:I}", "number", (json_int_t)p->notes[i] + 1));
    json_object_set_new(object, "marks", marks);
    return object;
}

static json_t *view_section(const struct hg_report *r, const struct hg_table *t,
                            enum hg_section section)
{
    static const char *const names[HG_SECTIONS] = { "value", "speedup", "efficiency" };
    json_t *object = json_object(), *rows = json_array();
    int decimals = hg_section_decimals(t, section);
    struct hg_buf title = HG_BUF_INIT;

    hg_section_title(r, section, &title);
    set(object, "name", names[section]);
    set_buf(object, "title", &title);
    for (size_t row = 0; row < t->n_rows; row++) {
        json_t *line = json_object(), *places = json_array();

        for (size_t column = 0; column < t->n_columns; column++)
            json_array_append_new(places,
                                  view_place(r, hg_table_point(t, row, column), section, decimals));
        json_object_set_new(line, "keys",
                            members(r, r->row_keys, r->n_row_keys, t->rows + row * r->n_row_keys));
        json_object_set_new(line, "places", places);
        json_array_append_new(rows, line);
    }
    json_object_set_new(object, "rows", rows);
    return object;
}

static json_t *view_column(const struct hg_report *r, const struct hg_table *t, size_t column)
{
    const uint32_t *values = t->columns + column * r->n_column_keys;
    json_t *object = json_object();
    struct hg_buf label = HG_BUF_INIT;

    hg_column_label(r, t, column, &label);
    if (r->n_column_keys == 0)
        hg_buf_puts(&label, r->metric);
    set_buf(object, "label", &label);
    json_object_set_new(object, "members", members(r, r->column_keys, r->n_column_keys, values));
    return object;
}

static json_t *view_texts(char *const *items, size_t n, bool numbered)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *object = json_object();

        if (numbered)
            set_count(object, "number", i + 1);
        set(object, "text", items[i]);
        json_array_append_new(list, object);
    }
    return list;
}

/* ---- Listings ---- */

static json_t *view_listing(const struct hg_report *r, const struct hg_listing *l)
{
    json_t *object = json_object(), *columns = json_array(), *rows = json_array();

    for (size_t i = 0; i < l->columns.n; i++) {
        json_t *column = json_object();

        set(column, "name", l->columns.items[i].name);
        set(column, "title", l->columns.items[i].title);
        json_object_set_new(column, "left", json_boolean(l->columns.items[i].left));
        json_array_append_new(columns, column);
    }
    for (size_t row = 0; row < hg_listing_rows(l); row++) {
        json_t *line = json_object(), *values = json_array();

        for (size_t i = 0; i < l->columns.n; i++) {
            const struct hg_datum *d = hg_listing_datum(l, row, i);
            json_t *value = json_object();
            struct hg_buf text = HG_BUF_INIT;

            hg_datum_format(d, &r->style, &text);
            set_buf(value, "text", &text);
            set_exact(value,
                      d->kind == HG_DATUM_NUMBER || d->kind == HG_DATUM_SECONDS ? d->v : NAN);
            json_array_append_new(values, value);
        }
        json_object_set_new(line, "values", values);
        json_array_append_new(rows, line);
    }
    set(object, "name", l->name);
    set(object, "title", l->title);
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "rows", rows);
    json_object_set_new(object, "notes", view_texts(l->notes.items, l->notes.n, false));
    return object;
}

static json_t *view_listings(const struct hg_report *r, const struct hg_listings *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(array, view_listing(r, &list->items[i]));
    return array;
}

static json_t *view_table(const struct hg_report *r, size_t number)
{
    const struct hg_table *t = &r->tables.items[number];
    json_t *object = json_object(), *keys = json_array(), *columns = json_array();
    json_t *sections = json_array();
    struct hg_buf title = HG_BUF_INIT;

    hg_table_title(r, t, &title);
    set_count(object, "number", number + 1);
    set_buf(object, "where", &title);
    json_object_set_new(object, "rehearsal", json_boolean(t->rehearsal));
    set(object, "no_speedup", t->no_speedup);
    for (size_t k = 0; k < r->n_row_keys; k++)
        json_array_append_new(keys,
                              json_pack("{s:s}", "name", r->frame.keys.items[r->row_keys[k]].name));
    for (size_t column = 0; column < t->n_columns; column++)
        json_array_append_new(columns, view_column(r, t, column));
    for (int s = 0; s < HG_SECTIONS; s++)
        if (hg_section_exists(t, (enum hg_section)s))
            json_array_append_new(sections, view_section(r, t, (enum hg_section)s));
    json_object_set_new(object, "keys", keys);
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "sections", sections);
    json_object_set_new(object, "remarks", view_texts(t->remarks.items, t->remarks.n, false));
    json_object_set_new(object, "notes", view_texts(t->notes.items, t->notes.n, true));
    json_object_set_new(object, "listings", view_listings(r, &t->listings));
    return object;
}

/* ---- Results ---- */

/* Every key that any cell has, "" where this one lacks it: so a template can name it. */
static json_t *view_cell(const struct hg_report *r, size_t entry)
{
    json_t *object = json_object();

    for (size_t k = 0; k < r->frame.keys.n; k++)
        set(object, r->frame.keys.items[k].name,
            hg_report_text(r, hg_frame_row(&r->frame, entry)[k]));
    return object;
}

static json_t *view_result(const struct hg_report *r, const struct hg_page *page, size_t entry)
{
    const struct hg_report_entry *e = &r->entries[entry];
    const char *root = page ? page->links[e->set] : NULL;
    json_t *object = json_object();
    struct hg_buf value = HG_BUF_INIT, folder = HG_BUF_INIT;

    if (!e->state && hg_metric_is_time(r->metric))
        hg_seconds_append_exact(&r->style, e->value, &value);
    else if (!e->state)
        hg_csv_append_number(&r->style, e->value, &value);
    if (root && *e->result->attempt_in) {
        hg_buf_printf(&folder, "%s/", root);
        hg_result_folder(e->result, &folder);
    }
    set(object, "set", r->labels[e->set]);
    set(object, "id", e->result->id);
    set(object, "attempt", e->result->attempt);
    set(object, "status", e->state ? e->state : e->result->status);
    json_object_set_new(object, "counts", json_boolean(!e->state));
    set_buf(object, "value", &value);
    set_exact(object, e->state ? NAN : e->value);
    set_buf(object, "folder", &folder);
    json_object_set_new(object, "cell", view_cell(r, entry));
    return object;
}

static json_t *view_facts(const struct hg_report *r)
{
    struct hg_listing facts = { 0 };
    json_t *list = json_array();

    hg_provenance_fill(r, &facts);
    for (size_t row = 0; row < hg_listing_rows(&facts); row++)
        json_array_append_new(list, pair(hg_listing_datum(&facts, row, 0)->text,
                                         hg_listing_datum(&facts, row, 1)->text));
    hg_listing_done(&facts);
    return list;
}

json_t *hg_view(const struct hg_report *r, const struct hg_page *page)
{
    json_t *root = json_object(), *states = json_array(), *tables = json_array();
    json_t *results = json_array();

    for (size_t i = 0; i < r->states.n; i++)
        json_array_append_new(states, json_pack("{s:s, s:I}", "state", r->states.items[i].word, "n",
                                                (json_int_t)r->states.items[i].n));
    for (size_t i = 0; i < r->tables.n; i++)
        json_array_append_new(tables, view_table(r, i));
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown)
            json_array_append_new(results, view_result(r, page, i));
    set(root, "title", r->title);
    set(root, "metric", r->metric);
    json_object_set_new(root, "complete", json_boolean(hg_report_is_complete(r)));
    set_sentence(root, "completeness", r, hg_completeness_format);
    set_count(root, "cells", r->cells);
    set_count(root, "cells_complete", r->complete);
    set_sentence(root, "method", r, hg_method_format);
    set_sentence(root, "baseline", r, hg_baseline_format);
    set_sentence(root, "common", r, hg_common_format);
    set(root, "command", page ? page->command : NULL);
    json_object_set_new(root, "states", states);
    json_object_set_new(root, "facts", view_facts(r));
    json_object_set_new(root, "tables", tables);
    json_object_set_new(root, "listings", view_listings(r, &r->listings));
    json_object_set_new(root, "results", results);
    return root;
}

/* ---- Templates ---- */

static int read_template(const char *path, struct hg_buf *text, struct hg_err *err)
{
    char here[PATH_MAX] = "";
    bool missing;

    if (hg_fs_read(path, HG_MUSTACHE_FILE_MAX, text, err) == 0)
        return 0;
    missing = access(path, F_OK) != 0;
    hg_err_wrap(err, "--template");
    if (missing && path[0] != '/' && getcwd(here, sizeof here))
        return hg_err_hint(err, "searched only in %s: --template takes a path", here);
    return missing ? hg_err_hint(err, "--template takes the path of a file") : -1;
}

static const struct hg_renderer *find_form(const char *path, const char *format, struct hg_err *err)
{
    const struct hg_renderer *form = format ? hg_renderer_find(format) : hg_renderer_of_file(path);

    if (!form && format) {
        hg_renderer_unknown(format, err);
    } else if (!form) {
        hg_err_set(err, HG_E_USAGE, "--template: the ending of %s does not say its format", path);
        hg_err_hint(err, "--format says how values are written:" HG_RENDERER_NAMES);
    }
    return form;
}

int hg_view_render(const struct hg_report *r, const struct hg_page *page, const char *path,
                   const char *format, struct hg_buf *out, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_mustache *m = NULL;
    json_t *shape = hg_view_shape(), *view = NULL;
    const struct hg_renderer *form;
    int rc = -1;

    if (read_template(path, &text, &err) == 0 && (form = find_form(path, format, &err)))
        m = hg_mustache_parse(path, hg_buf_str(&text), text.len, shape, errs);
    if (m) {
        view = hg_view(r, page);
        rc = hg_mustache_render(m, view, form->escape, out, &err);
    }
    hg_errs_add(errs, &err);
    hg_mustache_free(m);
    hg_buf_done(&text);
    json_decref(view);
    json_decref(shape);
    return rc;
}
