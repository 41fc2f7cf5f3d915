/* SPDX-License-Identifier: Apache-2.0 */
#include "render/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "typeset/escape.h"
#include "typeset/sheet.h"

/* Members of a rank that are shown if any rank has them. */
static const char *const members[] = { "rank", "host", "device", "real_s", "user_s", "sys_s" };
enum { MEMBERS = sizeof members / sizeof *members };

/* A new reference; NULL: it lists none. */
static json_t *ranks_of(const struct hg_report_entry *e)
{
    json_t *ranks = e->shown && e->result->ok ? hg_result_get(e->result, "ranks") : NULL;

    if (json_array_size(ranks))
        return ranks;
    json_decref(ranks);
    return NULL;
}

static bool has_ranks(const struct hg_report_entry *e)
{
    json_t *ranks = ranks_of(e);

    json_decref(ranks);
    return ranks != NULL;
}

static bool any_has(const struct hg_report *r, const char *member)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        json_t *ranks = ranks_of(&r->entries[i]);
        bool has = json_object_get(json_array_get(ranks, 0), member) != NULL;

        json_decref(ranks);
        if (has)
            return true;
    }
    return false;
}

/* A key is shown if it takes more than one value among the cells with ranks: of rows, columns and
 * tables, then repeat. */
static bool varies(const struct hg_report *r, size_t key)
{
    const struct hg_report_entry *first = NULL;

    for (size_t i = 0; i < r->n_entries; i++) {
        if (!has_ranks(&r->entries[i]))
            continue;
        if (first && hg_frame_row(&r->frame, i)[key] !=
                         hg_frame_row(&r->frame, (size_t)(first - r->entries))[key])
            return true;
        first = first ? first : &r->entries[i];
    }
    return false;
}

struct layout {
    size_t *keys, n_keys;
    bool shown[MEMBERS];
    unsigned long left; /* columns of words */
    size_t n_columns;
};

static void add_keys(const struct hg_report *r, const size_t *keys, size_t n, struct layout *l)
{
    for (size_t i = 0; i < n; i++)
        if (varies(r, keys[i]))
            l->keys[l->n_keys++] = keys[i];
}

static void lay_out(const struct hg_report *r, struct layout *l)
{
    size_t repeat = hg_frame_find_key(&r->frame, "repeat");

    l->keys = hg_alloc_zeroed(r->frame.keys.n + 1, sizeof *l->keys);
    add_keys(r, r->split_keys, r->n_split_keys, l);
    add_keys(r, r->column_keys, r->n_column_keys, l);
    add_keys(r, r->row_keys, r->n_row_keys, l);
    if (repeat != HG_MAP_NONE)
        add_keys(r, &repeat, 1, l);
    l->n_columns = l->n_keys;
    for (size_t i = 0; i < MEMBERS; i++) {
        l->shown[i] = any_has(r, members[i]);
        if (l->shown[i] && (i == 1 || i == 2) && l->n_columns < 64)
            l->left |= 1ul << l->n_columns;
        l->n_columns += l->shown[i];
    }
}

static void put_header(const struct hg_report *r, const struct layout *l, struct hg_sheet *s)
{
    for (size_t k = 0; k < l->n_keys; k++)
        hg_sheet_put(s, r->frame.keys.items[l->keys[k]].name);
    for (size_t i = 0; i < MEMBERS; i++)
        if (l->shown[i])
            hg_sheet_put(s, members[i]);
}

/* Times with three decimals, as `time` prints them; csv keeps every digit. */
static void put_member(const struct hg_style *style, const json_t *value, bool exact, bool time,
                       struct hg_sheet *s)
{
    struct hg_buf word = HG_BUF_INIT;

    if (json_is_number(value) && time && exact)
        hg_csv_append_seconds(style, json_number_value(value), &word);
    else if (json_is_number(value) && time)
        hg_seconds_append(style, json_number_value(value), 3, &word);
    else if (json_is_string(value))
        hg_buf_puts(&word, json_string_value(value));
    else if (value && !json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT, &word);
    hg_sheet_take(s, &word);
}

static void put_ranks(const struct hg_report *r, const struct layout *l, size_t entry, bool exact,
                      struct hg_sheet *s)
{
    json_t *ranks = ranks_of(&r->entries[entry]);
    size_t i;
    json_t *rank;

    json_array_foreach(ranks, i, rank) {
        for (size_t k = 0; k < l->n_keys; k++)
            hg_sheet_put(s, hg_report_text(r, hg_frame_row(&r->frame, entry)[l->keys[k]]));
        for (size_t m = 0; m < MEMBERS; m++)
            if (l->shown[m])
                put_member(&r->style, json_object_get(rank, members[m]), exact,
                           hg_metric_is_time(members[m]), s);
    }
    json_decref(ranks);
}

int hg_ranks_render(const struct hg_report *r, const struct hg_renderer *form, struct hg_buf *out,
                    struct hg_err *err)
{
    struct layout l = { 0 };
    struct hg_sheet s;
    size_t n_listed = 0;

    lay_out(r, &l);
    s = (struct hg_sheet){ .n_columns = l.n_columns, .left = l.left, .style = &r->style };
    put_header(r, &l, &s);
    for (size_t i = 0; i < r->n_entries; i++) {
        if (!has_ranks(&r->entries[i]))
            continue;
        put_ranks(r, &l, i, form->tidy, &s);
        n_listed++;
    }
    if (n_listed == 0 || l.n_columns == l.n_keys)
        hg_err_set(err, HG_E_INPUT, "no result lists its ranks");
    else
        form->sheet(&s, out);
    hg_sheet_done(&s);
    free(l.keys);
    return err->code == HG_E_NONE ? 0 : -1;
}
