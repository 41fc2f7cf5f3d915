/* SPDX-License-Identifier: Apache-2.0 */
#include "render/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/labels.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/vec.h"
#include "typeset/escape.h"
#include "typeset/plain.h"
#include "typeset/sheet.h"

#define SIDES 2
#define NAMES_SHOWN 5

/* A result's profile. */
struct side {
    const struct hg_report_entry *entry;
    json_t *profile;
    double steps, self_s; /* of all operators */
};

struct op {
    const char *name; /* the profile's */
    struct {
        double calls, total_s, self_s;
    } of[SIDES]; /* of all steps; with two sides per step */
};

struct table {
    const struct hg_report *r;
    struct side sides[SIDES];
    size_t n_sides;
    struct op *items;
    size_t n, cap;
};

/* ---- Reading ---- */

static int too_many(const struct hg_report *r, const size_t *entries, size_t n, struct hg_err *err)
{
    struct hg_buf names = HG_BUF_INIT;

    for (size_t i = 0; i < n && i < NAMES_SHOWN; i++) {
        hg_buf_puts(&names, i ? "; " : "");
        hg_entry_name(r, &r->entries[entries[i]], &names);
    }
    hg_err_set(err, HG_E_INPUT, "%zu results have a profile", n);
    hg_err_hint(err, "choose one, or two to compare, with --where: %s%s", hg_buf_str(&names),
                n > NAMES_SHOWN ? "; ..." : "");
    hg_buf_done(&names);
    return -1;
}

static int find_sides(struct table *t, struct hg_err *err)
{
    struct {
        size_t *items, n, cap;
    } found = { 0 };
    int rc = 0;

    for (size_t i = 0; i < t->r->n_entries; i++) {
        const struct hg_report_entry *e = &t->r->entries[i];
        json_t *profile = e->shown && e->result->ok ? hg_result_get(e->result, "profile") : NULL;

        if (json_array_size(json_object_get(profile, "ops"))) {
            *HG_VEC_PUSH(&found) = i;
            if (found.n <= SIDES)
                t->sides[t->n_sides++] =
                    (struct side){ .entry = e, .profile = json_incref(profile) };
        }
        json_decref(profile);
    }
    if (!found.n) {
        hg_err_set(err, HG_E_INPUT, "no good result has a profile");
        rc = hg_err_hint(err, "hpcgrid-worker writes one for cells with \"trace\": true");
    } else if (found.n > SIDES) {
        rc = too_many(t->r, found.items, found.n, err);
    }
    HG_VEC_DONE(&found);
    return rc;
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static struct op *find_op(struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return &t->items[i];
    *HG_VEC_PUSH(t) = (struct op){ .name = name };
    return &t->items[t->n - 1];
}

static void read_side(struct table *t, size_t side)
{
    struct side *s = &t->sides[side];
    double per = 1;
    json_t *o;
    size_t i;

    s->steps = number(s->profile, "steps");
    if (t->n_sides == SIDES && s->steps > 0)
        per = s->steps;
    json_array_foreach(json_object_get(s->profile, "ops"), i, o) {
        const char *name = json_string_value(json_object_get(o, "name"));
        struct op *op = name ? find_op(t, name) : NULL;

        if (!op)
            continue;
        op->of[side].calls = number(o, "calls") / per;
        op->of[side].total_s = number(o, "total_s") / per;
        op->of[side].self_s = number(o, "self_s") / per;
        s->self_s += op->of[side].self_s;
    }
}

static double difference(const struct op *op)
{
    return op->of[1].self_s - op->of[0].self_s;
}

static int by_self(const void *pa, const void *pb)
{
    const struct op *a = pa, *b = pb;

    if (a->of[0].self_s != b->of[0].self_s)
        return a->of[0].self_s > b->of[0].self_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_difference(const void *pa, const void *pb)
{
    const struct op *a = pa, *b = pb;
    double da = fabs(difference(a)), db = fabs(difference(b));

    if (da != db)
        return da > db ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* ---- The table ---- */

static void put_time(const struct table *t, double s, bool exact, struct hg_sheet *sheet)
{
    struct hg_buf word = HG_BUF_INIT;
    double size = fabs(s);

    if (exact) {
        hg_csv_append_seconds(&t->r->style, round(s * 1e9) / 1e9, &word);
    } else {
        hg_number_append(&t->r->style, s * (size < 1e-3 ? 1e6 : size < 1 ? 1e3 : 1), 3, &word);
        hg_buf_puts(&word, size < 1e-3 ? " us" : size < 1 ? " ms" : " s");
    }
    hg_sheet_take(sheet, &word);
}

static void put_number(const struct table *t, double v, int decimals, const char *unit,
                       struct hg_sheet *sheet)
{
    struct hg_buf word = HG_BUF_INIT;

    hg_number_append(&t->r->style, v, decimals, &word);
    hg_buf_puts(&word, unit);
    hg_sheet_take(sheet, &word);
}

/* csv: a part of 1; else percent. */
static void put_share(const struct table *t, double part, double whole, bool exact,
                      struct hg_sheet *sheet)
{
    double share = whole > 0 ? part / whole : 0;

    put_number(t, exact ? share : 100 * share, exact ? 4 : 2, exact ? "" : " %", sheet);
}

static void put_op(const struct table *t, const struct op *op, bool exact, struct hg_sheet *s)
{
    hg_sheet_put(s, op->name);
    put_share(t, op->of[0].self_s, t->sides[0].self_s, exact, s);
    put_time(t, op->of[0].self_s, exact, s);
    put_share(t, op->of[0].total_s, t->sides[0].self_s, exact, s);
    put_time(t, op->of[0].total_s, exact, s);
    put_time(t, op->of[0].calls > 0 ? op->of[0].total_s / op->of[0].calls : 0, exact, s);
    put_number(t, op->of[0].calls, 0, "", s);
}

/* Whole numbers of calls per step have no decimals. */
static void put_calls(const struct table *t, double calls, struct hg_sheet *s)
{
    put_number(t, calls, calls == floor(calls) ? 0 : 2, "", s);
}

static void put_two(const struct table *t, const struct op *op, bool exact, struct hg_sheet *s)
{
    hg_sheet_put(s, op->name);
    for (size_t side = 0; side < SIDES; side++) {
        put_share(t, op->of[side].self_s, t->sides[side].self_s, exact, s);
        put_time(t, op->of[side].self_s, exact, s);
        put_time(t, op->of[side].total_s, exact, s);
        put_calls(t, op->of[side].calls, s);
    }
    put_time(t, difference(op), exact, s);
}

/* exact: csv, in seconds and parts of 1. */
static void fill(const struct table *t, bool exact, struct hg_sheet *s)
{
    static const char *const heads[2][2][11] = {
        { { "op", "self", "self time", "total", "total time", "per call", "calls" },
          { "op", "self_share", "self_s", "total_share", "total_s", "per_call_s", "calls" } },
        { { "op", "A self", "self time", "total time", "calls", "B self", "self time", "total time",
            "calls", "B - A self time" },
          { "op", "a_self_share", "a_self_s", "a_total_s", "a_calls", "b_self_share", "b_self_s",
            "b_total_s", "b_calls", "difference_s" } },
    };
    const char *const *head = heads[t->n_sides == SIDES][exact];

    for (s->n_columns = 0; head[s->n_columns]; s->n_columns++)
        ;
    for (size_t i = 0; i < s->n_columns; i++)
        hg_sheet_put(s, head[i]);
    for (size_t i = 0; i < t->n; i++)
        (t->n_sides == SIDES ? put_two : put_op)(t, &t->items[i], exact, s);
}

/* Whose profile it is, above the table. */
static void append_title(const struct table *t, size_t side, struct hg_buf *out)
{
    const struct side *s = &t->sides[side];
    struct hg_buf name = HG_BUF_INIT;

    if (t->n_sides == SIDES)
        hg_buf_puts(out, side ? "B: " : "A: ");
    hg_entry_name(t->r, s->entry, &name);
    hg_clean_append(hg_buf_str(&name), 0, out);
    hg_buf_printf(out, ", %.0f step%s recorded on rank 0, ", s->steps, s->steps == 1 ? "" : "s");
    hg_number_append(&t->r->style, s->self_s * 1e3, 3, out);
    hg_buf_printf(out, " ms in operators%s\n", t->n_sides == SIDES ? " per step" : "");
    hg_buf_done(&name);
}

/* ---- JSON ---- */

static json_t *times_json(const struct table *t, const struct op *op, size_t side)
{
    double all_s = t->sides[side].self_s;

    return json_pack("{s:f, s:f, s:f, s:f}", "calls", op->of[side].calls, "self_s",
                     op->of[side].self_s, "total_s", op->of[side].total_s, "self_share",
                     all_s > 0 ? op->of[side].self_s / all_s : 0);
}

static json_t *op_json(const struct table *t, const struct op *op)
{
    json_t *o = json_pack("{s:o}", "name", hg_json_text(op->name));

    if (t->n_sides == SIDES)
        json_object_update_new(o, json_pack("{s:o, s:o, s:f}", "a", times_json(t, op, 0), "b",
                                            times_json(t, op, 1), "difference_s", difference(op)));
    else
        json_object_update_new(o, times_json(t, op, 0));
    return o;
}

static void write_json(const struct table *t, struct hg_buf *out)
{
    json_t *cells = json_array(), *ops = json_array(), *root;

    for (size_t i = 0; i < t->n_sides; i++) {
        struct hg_buf name = HG_BUF_INIT;

        hg_entry_name(t->r, t->sides[i].entry, &name);
        json_array_append_new(cells,
                              json_pack("{s:s, s:o, s:f, s:f}", "id", t->sides[i].entry->result->id,
                                        "name", hg_json_text(hg_buf_str(&name)), "steps",
                                        t->sides[i].steps, "self_s", t->sides[i].self_s));
        hg_buf_done(&name);
    }
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(ops, op_json(t, &t->items[i]));
    root = json_pack("{s:s, s:b, s:o, s:o}", "schema", "hpcgrid-profile/1", "per_step",
                     t->n_sides == SIDES, "cells", cells, "ops", ops);
    hg_json_dump(root, HG_JSON_INDENT, out);
    hg_buf_puts(out, "\n");
    json_decref(root);
}

static void write_sheet(const struct table *t, const struct hg_renderer *form, struct hg_buf *out)
{
    struct hg_sheet s = { .left = 1, .style = &t->r->style };

    for (size_t i = 0; !form->tidy && i < t->n_sides; i++) {
        append_title(t, i, out);
        hg_buf_puts(out, i + 1 < t->n_sides && form->sheet == hg_sheet_text ? "" : "\n");
    }
    fill(t, form->tidy, &s);
    form->sheet(&s, out);
    hg_sheet_done(&s);
}

int hg_profile_render(const struct hg_report *r, const struct hg_renderer *form, struct hg_buf *out,
                      struct hg_err *err)
{
    struct table t = { .r = r };
    int rc = find_sides(&t, err);

    for (size_t i = 0; rc == 0 && i < t.n_sides; i++)
        read_side(&t, i);
    if (t.n)
        qsort(t.items, t.n, sizeof *t.items, t.n_sides == SIDES ? by_difference : by_self);
    if (rc == 0 && form->sheet)
        write_sheet(&t, form, out);
    else if (rc == 0)
        write_json(&t, out);
    for (size_t i = 0; i < t.n_sides; i++)
        json_decref(t.sides[i].profile);
    HG_VEC_DONE(&t);
    return rc;
}
