/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/absent.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/labels.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

#define SHOWN 5         /* cells of a listing */
#define KEYS_SHOWN 3    /* differences of a cell */
#define LOOKED_AT 20000 /* cells among which the nearest is searched */

/* ---- Marks ---- */

/* A cell as numbers, as far as its members make it another one; and its set. */
static void make_key(const struct hg_report *r, size_t entry, uint32_t *key)
{
    const struct hg_frame *f = &r->frame;

    for (size_t k = 0; k < f->keys.n; k++)
        key[k] =
            f->keys.items[k].flags & (HG_KEY_NOTE | HG_KEY_LOOSE) ? 0 : hg_frame_row(f, entry)[k];
    key[f->keys.n] = (uint32_t)r->entries[entry].set;
}

static void mark_replaced(struct hg_report *r)
{
    size_t size = (r->frame.keys.n + 1) * sizeof(uint32_t);
    struct hg_map standing = HG_MAP_INIT;
    uint32_t *key = hg_alloc(size);

    for (size_t i = 0; i < r->n_entries; i++) {
        make_key(r, i, key);
        if (!r->entries[i].result->removed)
            hg_map_put(&standing, key, size, i);
    }
    for (size_t i = 0; i < r->n_entries; i++) {
        make_key(r, i, key);
        r->entries[i].replaced =
            r->entries[i].result->removed && hg_map_find(&standing, key, size) != HG_MAP_NONE;
    }
    hg_map_done(&standing);
    free(key);
}

void hg_absent_mark(struct hg_report *r)
{
    for (size_t s = 0; s < r->n_sets; s++) {
        r->skipped += hg_results_count(&r->sets[s], "skipped");
        r->removed += hg_results_count(&r->sets[s], "removed");
    }
    if (r->removed)
        mark_replaced(r);
}

/* ---- What tells a cell from another ---- */

static bool is_identity(const char *key)
{
    return !(hg_frame_key_flags(key) & (HG_KEY_NOTE | HG_KEY_LOOSE | HG_KEY_REPEAT));
}

static void append_value(const json_t *value, struct hg_buf *out)
{
    if (json_is_string(value))
        hg_buf_puts(out, json_string_value(value));
    else if (!value || json_is_null(value))
        hg_buf_puts(out, "none");
    else
        hg_json_dump(value, HG_JSON_COMPACT, out);
}

/* One member of both or of either; "nodes 4 (2)" goes to out, if it is not NULL, for the first of them. Returns whether it differs. */
static bool add_difference(const char *key, const json_t *mine, const json_t *theirs, size_t n,
                           struct hg_buf *out)
{
    if (!is_identity(key) || mine == theirs || (mine && theirs && hg_json_equal(mine, theirs)))
        return false;
    if (!out || n >= KEYS_SHOWN)
        return true;
    hg_buf_printf(out, "%s%s ", n ? ", " : "", key);
    append_value(mine, out);
    hg_buf_puts(out, " (");
    append_value(theirs, out);
    hg_buf_puts(out, ")");
    return true;
}

/* How many members differ. */
static size_t list_differences(const json_t *a, const json_t *b, struct hg_buf *out)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)a, key, value)
        n += add_difference(key, value, json_object_get(b, key), n, out);
    json_object_foreach((json_t *)b, key, value)
        n += !json_object_get(a, key) && add_difference(key, NULL, value, n, out);
    if (out && n > KEYS_SHOWN)
        hg_buf_printf(out, " and %zu more", n - KEYS_SHOWN);
    return n;
}

/* Against the cell of the matrix with the fewest differences; nothing if there is no cell. */
static void describe(const struct hg_report *r, size_t set, const json_t *cell, struct hg_buf *out)
{
    const json_t *nearest = NULL;
    size_t least = SIZE_MAX, looked_at = 0;

    hg_buf_clear(out);
    for (size_t i = 0; i < r->n_entries && least && looked_at < LOOKED_AT; i++) {
        const struct hg_report_entry *e = &r->entries[i];
        size_t n;

        if (e->set != set || e->result->removed)
            continue;
        looked_at++;
        n = list_differences(cell, e->result->cell, NULL);
        if (n < least) {
            least = n;
            nearest = e->result->cell;
        }
    }
    if (nearest && list_differences(cell, nearest, out) == 0)
        hg_buf_puts(out, "command, launch, env or files");
}

/* ---- Listings ---- */

static void end(struct hg_listing *l, size_t all)
{
    size_t shown = hg_listing_rows(l);
    char *text = hg_str_printf("and %zu more", all - shown);

    if (all > shown)
        hg_listing_note(l, text);
    free(text);
}

static void list_skipped(struct hg_report *r)
{
    struct hg_listing *l = hg_listing_add(&r->listings, "skipped", "skipped: cannot run");
    json_t *item;
    size_t i;

    hg_listing_column(l, "cell", "cell", true);
    hg_listing_column(l, "reason", "reason", true);
    for (size_t s = 0; s < r->n_sets; s++) {
        const json_t *skipped = json_object_get(r->sets[s].doc.root, "skipped");

        json_array_foreach(json_object_get(skipped, "cells"), i, item) {
            const char *id = json_string_value(json_object_get(item, "id")),
                       *name = json_string_value(json_object_get(item, "name")),
                       *why = json_string_value(json_object_get(item, "why"));

            if (hg_listing_rows(l) == SHOWN)
                break;
            id = id ? id : "";
            hg_listing_cell(l, id, name ? name : id); /* none: a run of an earlier version */
            hg_listing_text(l, why ? why : "");
        }
    }
    end(l, r->skipped);
}

static bool has_removed(const struct hg_report *r)
{
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].result->removed)
            return true;
    return false;
}

/* Those that have a result. The values in brackets are those of the nearest cell of the matrix. */
static void list_removed(struct hg_report *r)
{
    struct hg_listing *l = hg_listing_add(&r->listings, "removed", "no longer in the matrix");
    struct hg_buf text = HG_BUF_INIT, name = HG_BUF_INIT;
    size_t n = 0;

    hg_listing_column(l, "cell", "cell", true);
    hg_listing_column(l, "result", "result", true);
    hg_listing_column(l, "differs", "differs", true);
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        n += e->result->removed;
        if (!e->result->removed || n > SHOWN)
            continue;
        describe(r, e->set, e->result->cell, &text);
        hg_buf_clear(&name);
        hg_entry_name(r, e, &name);
        hg_listing_cell(l, e->result->id, hg_buf_str(&name));
        hg_listing_text(l, e->state ? e->state : "ok");
        hg_listing_text(l, hg_buf_str(&text));
    }
    end(l, n);
    hg_buf_done(&text);
    hg_buf_done(&name);
}

void hg_absent_list(struct hg_report *r)
{
    if (r->skipped)
        list_skipped(r);
    if (has_removed(r))
        list_removed(r);
}
