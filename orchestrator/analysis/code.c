/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/code.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"

#define WORKER "hpcgrid-worker"
#define SHORT 10 /* digits of a revision or hash that people are shown */
#define SHOWN_OF_SET 3

static const char *text_of(const json_t *code, const char *member)
{
    return json_string_value(json_object_get(code, member));
}

static bool are_unlike(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

/* ---- Two results ---- */

/* The first program or script that both have and that differs; NULL: none. */
static const char *find_file(const json_t *a, const json_t *b)
{
    const json_t *theirs = json_object_get(b, "files");
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(a, "files"), name, value)
        if (are_unlike(json_string_value(value), text_of(theirs, name)))
            return name;
    return NULL;
}

static bool has_worker(const json_t *code)
{
    return text_of(json_object_get(code, "files"), WORKER);
}

static bool differs_in_tree(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "dirty"), *y = json_object_get(b, "dirty");

    if (text_of(a, "hash") && text_of(b, "hash"))
        return are_unlike(text_of(a, "hash"), text_of(b, "hash"));
    return are_unlike(text_of(a, "revision"), text_of(b, "revision")) ||
           (json_is_boolean(x) && json_is_boolean(y) && x != y);
}

/* "33ac97501f-dirty" */
static void name_tree(const json_t *code, struct hg_buf *out)
{
    const char *revision = text_of(code, "revision");

    hg_buf_printf(out, "%.*s%s", SHORT, revision ? revision : "no revision",
                  json_is_true(json_object_get(code, "dirty")) ? "-dirty" : "");
}

static void name_trees(const json_t *a, const json_t *b, struct hg_buf *mine, struct hg_buf *theirs)
{
    name_tree(a, mine);
    name_tree(b, theirs);
    if (strcmp(hg_buf_str(mine), hg_buf_str(theirs)) != 0)
        return;
    hg_buf_printf(mine, " (files %.*s)", SHORT, text_of(a, "hash"));
    hg_buf_printf(theirs, " (files %.*s)", SHORT, text_of(b, "hash"));
}

bool hg_code_differs(const json_t *a, const json_t *b, struct hg_buf *mine, struct hg_buf *theirs)
{
    bool worker = has_worker(a) && has_worker(b);
    const char *file;

    hg_buf_clear(mine);
    hg_buf_clear(theirs);
    if (!worker && differs_in_tree(a, b)) {
        name_trees(a, b, mine, theirs);
        return true;
    }
    file = find_file(a, b);
    if (!file)
        return false;
    hg_buf_printf(mine, "%s %.*s", file, SHORT, text_of(json_object_get(a, "files"), file));
    hg_buf_printf(theirs, "%s %.*s", file, SHORT, text_of(json_object_get(b, "files"), file));
    return true;
}

/* ---- All results ---- */

/* Trees, each once, by revision, dirty and hash. */
struct trees {
    struct hg_map index;
    struct {
        const json_t *code;
        size_t runs;
    } * items;
    size_t n, cap;
};

static void count_trees(const struct hg_report *r, size_t set, struct trees *trees)
{
    struct hg_buf name = HG_BUF_INIT;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];
        const json_t *code = e->result->code;
        const char *hash = text_of(code, "hash");
        size_t at;

        if (!e->shown || e->state || (set != HG_MAP_NONE && e->set != set) || has_worker(code) ||
            !text_of(code, "revision"))
            continue;
        hg_buf_clear(&name);
        name_tree(code, &name);
        hg_buf_printf(&name, " %s", hash ? hash : "");
        at = hg_map_put(&trees->index, name.data, name.len, trees->n);
        if (at == trees->n) {
            hg_vec_grow((void **)&trees->items, trees->n, &trees->cap, sizeof *trees->items);
            trees->items[trees->n].code = code;
            trees->items[trees->n++].runs = 0;
        }
        trees->items[at].runs++;
    }
    hg_buf_done(&name);
}

static void trees_done(struct trees *trees)
{
    hg_map_done(&trees->index);
    HG_VEC_DONE(trees);
}

void hg_code_of_set(const struct hg_report *r, size_t set, struct hg_buf *out)
{
    struct trees trees = { .index = HG_MAP_INIT };

    count_trees(r, set, &trees);
    for (size_t i = 0; i < trees.n && i < SHOWN_OF_SET; i++) {
        hg_buf_puts(out, i ? ", " : "");
        name_tree(trees.items[i].code, out);
    }
    if (trees.n > SHOWN_OF_SET)
        hg_buf_printf(out, " and %zu more", trees.n - SHOWN_OF_SET);
    trees_done(&trees);
}

static void list_start(struct hg_listing *l, const char *digits)
{
    char *start = digits ? hg_strndup(digits, SHORT) : NULL;

    hg_listing_text(l, start ? start : "not known");
    free(start);
}

static void list_tree(struct hg_listing *l, const json_t *code, size_t runs)
{
    const json_t *dirty = json_object_get(code, "dirty");

    list_start(l, text_of(code, "revision"));
    hg_listing_text(l, !json_is_boolean(dirty) ? "not known" : json_is_true(dirty) ? "yes" : "no");
    list_start(l, text_of(code, "hash"));
    hg_listing_number(l, (double)runs, 0);
}

void hg_code_list(struct hg_builder *b)
{
    struct trees trees = { .index = HG_MAP_INIT };
    struct hg_listing *l;

    count_trees(b->r, HG_MAP_NONE, &trees);
    if (trees.n > 1) {
        l = hg_listing_add(&b->r->listings, "code", "code under test");
        hg_listing_column(l, "revision", "revision", true);
        hg_listing_column(l, "dirty", "uncommitted changes", true);
        hg_listing_column(l, "hash", "tracked files", true);
        hg_listing_column(l, "runs", "runs", false);
        for (size_t i = 0; i < trees.n; i++)
            list_tree(l, trees.items[i].code, trees.items[i].runs);
    }
    trees_done(&trees);
}
