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
#define CODES_MAX 16 /* of one place that are told apart */

static const char *text_of(const json_t *code, const char *member)
{
    return json_string_value(json_object_get(code, member));
}

static bool are_unlike(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

/* ---- Two results ---- */

/* The hash of a program or script; NULL: it is not known. */
static const char *hash_of(const json_t *code, const char *name)
{
    size_t i;
    json_t *file;

    json_array_foreach(json_object_get(code, "files"), i, file)
        if (text_of(file, "name") && strcmp(text_of(file, "name"), name) == 0)
            return text_of(file, "hash");
    return NULL;
}

/* The first program or script that both have and that differs; NULL: none. */
static const char *find_file(const json_t *a, const json_t *b)
{
    size_t i;
    json_t *file;

    json_array_foreach(json_object_get(a, "files"), i, file) {
        const char *name = text_of(file, "name");

        if (name && are_unlike(hash_of(a, name), hash_of(b, name)))
            return name;
    }
    return NULL;
}

static bool has_worker(const json_t *code)
{
    return hash_of(code, WORKER);
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
    hg_buf_printf(mine, "%s %.*s", file, SHORT, hash_of(a, file));
    hg_buf_printf(theirs, "%s %.*s", file, SHORT, hash_of(b, file));
    return true;
}

/* ---- A place ---- */

/* The place that c is compared with: its baseline, else the first place of the table from the same set; NULL: none. */
static const struct hg_configuration *reference_of(const struct hg_builder *b,
                                                   const struct hg_table *t,
                                                   const struct hg_configuration *c,
                                                   const struct hg_point *p, const char **called)
{
    if (b->options->against_first) /* there it is on purpose */
        return NULL;
    *called = "its baseline";
    if (b->wants_speedup && b->r->kind != HG_METRIC_OTHER && c->base != HG_MAP_NONE)
        return &b->configurations.items[c->base];
    *called = "the first place";
    for (const struct hg_point *q = t->points; q < p; q++) {
        const struct hg_configuration *other = q->n ? hg_builder_configuration(b, q) : NULL;

        if (other && b->r->entries[other->entry].set == b->r->entries[c->entry].set)
            return other;
    }
    return NULL;
}

/* The code of the runs of c that count, each once: equal ones of a set are one value. */
static size_t list_codes(const struct hg_builder *b, const struct hg_configuration *c,
                         const json_t *codes[static CODES_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries && n < CODES_MAX; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);
        size_t k = 0;

        while (k < n && codes[k] != e->result->code)
            k++;
        if (!e->state && e->result->code && k == n)
            codes[n++] = e->result->code;
    }
    return n;
}

/* What is being said of a place. */
struct saying {
    const char *refused; /* "" or how a sentence begins */
    void (*say)(void *context, const char *text);
    void *context;
    struct hg_buf mine, theirs, text;
};

/* Names each that differs from some other. */
static bool say_mixed(struct saying *s, const json_t *const *codes, size_t n)
{
    bool mixed = false;

    hg_buf_clear(&s->text);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            if (!hg_code_differs(codes[i], codes[k], &s->mine, &s->theirs))
                continue;
            hg_buf_printf(&s->text, "%s%s%s", mixed ? ", " : s->refused,
                          mixed ? "" : "its runs ran different code: ", hg_buf_str(&s->mine));
            mixed = true;
            break;
        }
    if (mixed)
        s->say(s->context, hg_buf_str(&s->text));
    return mixed;
}

/* Each of the one against each of the other. */
static bool say_other(struct saying *s, const json_t *const *own, size_t n,
                      const json_t *const *others, size_t m, const char *called)
{
    bool found = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++) {
            if (!hg_code_differs(own[i], others[k], &s->mine, &s->theirs))
                continue;
            hg_buf_clear(&s->text);
            hg_buf_printf(&s->text, "%sran other code than %s: %s (%s %s)", s->refused, called,
                          hg_buf_str(&s->mine), called + strcspn(called, " ") + 1,
                          hg_buf_str(&s->theirs));
            s->say(s->context, hg_buf_str(&s->text));
            found = true;
        }
    return found;
}

bool hg_code_place(const struct hg_builder *b, const struct hg_table *t,
                   const struct hg_configuration *c, const struct hg_point *p,
                   void (*say)(void *context, const char *text), void *context)
{
    struct saying s = { .refused = b->options->strict ? "refused (strict): " : "",
                        .say = say,
                        .context = context };
    const json_t *own[CODES_MAX], *others[CODES_MAX];
    size_t n = list_codes(b, c, own);
    const char *called = "";
    const struct hg_configuration *other = reference_of(b, t, c, p, &called);
    bool differs = say_mixed(&s, own, n);

    if (other && other != c)
        differs |= say_other(&s, own, n, others, list_codes(b, other, others), called);
    hg_buf_done(&s.mine);
    hg_buf_done(&s.theirs);
    hg_buf_done(&s.text);
    return differs;
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
