/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/configurations.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/vec.h"

/* ---- Which members make a configuration ---- */

/* A whole number that `repeat` alone decides (a seed made from it) goes with repeat. */
static bool goes_with_repeat(const struct hg_report *r, size_t key, size_t repeat)
{
    uint32_t *of_repeat = hg_alloc_zeroed(r->frame.values.n, sizeof *of_repeat), first = 0;
    bool goes = true, varies = false;

    for (size_t i = 0; i < r->n_entries && goes; i++) {
        const uint32_t *row = hg_frame_row(&r->frame, i);
        const struct hg_frame_value *v = &r->frame.values.items[row[key]];
        uint32_t *slot = &of_repeat[row[repeat]];

        goes = row[repeat] && json_is_integer(v->json) && (*slot == 0 || *slot == row[key]);
        *slot = row[key];
        varies = varies || (first && first != row[key]);
        first = row[key];
    }
    free(of_repeat);
    return goes && varies;
}

static bool is_listed(char **names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* A key of rows, columns or groups is part of a configuration, even `repeat`. */
static bool is_requested(const struct hg_builder *b, const char *name)
{
    const struct hg_report_options *o = b->options;
    bool asked =
        is_listed(o->rows, name) || is_listed(o->columns, name) || is_listed(o->group, name);

    for (size_t s = 0; s < b->r->n_sets && !o->against_first && !asked; s++) {
        const struct hg_results *set = &b->r->sets[s];

        asked = (!o->group && is_listed(set->group, name)) ||
                (!o->rows && !o->columns &&
                 (is_listed(set->rows, name) || is_listed(set->columns, name)));
    }
    return asked;
}

static void mask_keys(struct hg_builder *b)
{
    const struct hg_frame *f = &b->r->frame;
    size_t repeat = hg_frame_find_key(f, "repeat");

    b->masked = hg_alloc_zeroed(f->keys.n + 1, sizeof *b->masked);
    for (size_t k = 0; k < f->keys.n; k++) {
        unsigned flags = f->keys.items[k].flags;
        bool goes = flags ? flags & (HG_KEY_NOTE | HG_KEY_LOOSE | HG_KEY_REPEAT)
                          : repeat != HG_MAP_NONE && goes_with_repeat(b->r, k, repeat);

        b->masked[k] = goes && !is_requested(b, f->keys.items[k].name);
    }
}

/* ---- Configurations ---- */

/* A configuration as numbers: the cell's members that count, and whether it is a rehearsal. */
static void make_key(const struct hg_builder *b, size_t entry, uint32_t *key)
{
    const struct hg_frame *f = &b->r->frame;

    for (size_t k = 0; k < f->keys.n; k++)
        key[k] = b->masked[k] ? 0 : hg_frame_row(f, entry)[k];
    key[f->keys.n] = b->r->entries[entry].rehearsal;
}

static size_t key_size(const struct hg_builder *b)
{
    return (b->r->frame.keys.n + 1) * sizeof(uint32_t);
}

static void group_entries(struct hg_builder *b, struct hg_map *exact, uint32_t *key)
{
    for (size_t i = 0; i < b->r->n_entries; i++) {
        size_t at;

        make_key(b, i, key);
        at = hg_map_put(exact, key, key_size(b), b->configurations.n);
        if (at == b->configurations.n)
            *HG_VEC_PUSH(&b->configurations) =
                (struct hg_configuration){ .entry = i, .base = HG_MAP_NONE };
        b->configurations.items[at].n_entries++;
        b->r->entries[i].config = at;
    }
}

static void list_members(struct hg_builder *b)
{
    size_t begin = 0, largest = 1;

    b->members = hg_alloc_zeroed(b->r->n_entries + 1, sizeof *b->members);
    for (size_t c = 0; c < b->configurations.n; c++) {
        b->configurations.items[c].begin = begin;
        begin += b->configurations.items[c].n_entries;
        if (b->configurations.items[c].n_entries > largest)
            largest = b->configurations.items[c].n_entries;
        b->configurations.items[c].n_entries = 0;
    }
    for (size_t i = 0; i < b->r->n_entries; i++) {
        struct hg_configuration *c = &b->configurations.items[b->r->entries[i].config];

        b->members[c->begin + c->n_entries++] = i;
    }
    b->room = hg_alloc(largest * sizeof *b->room);
    b->room_base = hg_alloc(largest * sizeof *b->room_base);
}

/* ---- Baselines by lookup: overrides of a cell ---- */

static uint32_t number_of(const struct hg_frame *f, const uint32_t *key, const char *name,
                          double absent)
{
    size_t k = hg_frame_find_key(f, name);
    const struct hg_frame_value *v = k == HG_MAP_NONE ? NULL : &f->values.items[key[k]];

    return (uint32_t)(v && v->is_number ? v->number : absent);
}

static void strip(const struct hg_frame *f, uint32_t *key, const char *name)
{
    size_t k = hg_frame_find_key(f, name);

    if (k != HG_MAP_NONE)
        key[k] = 0;
}

/* Remove what only repeats a default: one node; one GPU or none, which is the same request on hardware without GPUs; one task for
 * each GPU. */
static void strip_defaults(const struct hg_frame *f, uint32_t *key)
{
    uint32_t gpus = number_of(f, key, "gpus_per_node", 1);

    if (number_of(f, key, "tasks_per_node", 1) == (gpus ? gpus : 1))
        strip(f, key, "tasks_per_node");
    if (gpus <= 1)
        strip(f, key, "gpus_per_node");
    if (number_of(f, key, "nodes", 1) == 1)
        strip(f, key, "nodes");
}

static void put_over(struct hg_builder *b, const json_t *members, uint32_t *key)
{
    struct hg_frame *f = &b->r->frame;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)members, name, value) {
        size_t k = hg_frame_find_key(f, name), v = hg_frame_value(f, value);

        if (k != HG_MAP_NONE && !b->masked[k])
            key[k] = (uint32_t)v;
    }
}

struct lookup {
    struct hg_map exact, stripped, ids;
    uint32_t *key;
};

static void look_up(struct hg_builder *b, struct lookup *l, const json_t *members,
                    struct hg_configuration *c)
{
    make_key(b, c->entry, l->key);
    put_over(b, members, l->key);
    c->base = hg_map_find(&l->exact, l->key, key_size(b));
    if (c->base != HG_MAP_NONE)
        return;
    make_key(b, c->entry, l->key);
    strip_defaults(&b->r->frame, l->key);
    put_over(b, members, l->key);
    strip_defaults(&b->r->frame, l->key);
    c->base = hg_map_find(&l->stripped, l->key, key_size(b));
}

/* ---- Baselines by id, as a run names them ---- */

static size_t find_in_set(struct lookup *l, size_t set, const char *id)
{
    struct hg_buf name = HG_BUF_INIT;
    size_t entry;

    hg_buf_printf(&name, "%zu %s", set, id);
    entry = hg_map_find(&l->ids, name.data, name.len);
    hg_buf_done(&name);
    return entry;
}

static bool at_other_sites(const struct hg_report_entry *a, const struct hg_report_entry *b)
{
    const char *sa = json_string_value(json_object_get(a->result->cell, "site"));
    const char *sb = json_string_value(json_object_get(b->result->cell, "site"));

    return sa && sb && strcmp(sa, sb) != 0;
}

/* A matrix with several sites has one run at each: a cell's baseline may be in that of another site. */
static size_t find_id(const struct hg_builder *b, struct lookup *l, const struct hg_report_entry *e)
{
    size_t entry = find_in_set(l, e->set, e->result->baseline_id);

    for (size_t s = 0; s < b->r->n_sets && entry == HG_MAP_NONE; s++) {
        entry = find_in_set(l, s, e->result->baseline_id);
        if (entry != HG_MAP_NONE && !at_other_sites(e, &b->r->entries[entry]))
            entry = HG_MAP_NONE;
    }
    return entry == HG_MAP_NONE ? HG_MAP_NONE : b->r->entries[entry].config;
}

static void index_ids(struct hg_builder *b, struct lookup *l)
{
    struct hg_buf name = HG_BUF_INIT;

    for (size_t i = 0; i < b->r->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[i];

        if (!*e->result->id)
            continue;
        hg_buf_clear(&name);
        hg_buf_printf(&name, "%zu %s", e->set, e->result->id);
        hg_map_put(&l->ids, name.data, name.len, i);
    }
    hg_buf_done(&name);
}

static void index_stripped(struct hg_builder *b, struct lookup *l)
{
    for (size_t c = 0; c < b->configurations.n; c++) {
        make_key(b, b->configurations.items[c].entry, l->key);
        strip_defaults(&b->r->frame, l->key);
        hg_map_put(&l->stripped, l->key, key_size(b), c);
    }
}

static void find_base(struct hg_builder *b, struct lookup *l, struct hg_configuration *c)
{
    const json_t *members = b->r->baseline;

    if (!b->options->baseline && !b->options->against_first)
        members = NULL;
    for (size_t i = 0; i < c->n_entries && !members && c->base == HG_MAP_NONE; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (*e->result->baseline_id)
            c->base = find_id(b, l, e);
    }
    if (!members) { /* a run names its baselines by id, so a cell without id has none */
        const struct hg_report_entry *e = &b->r->entries[c->entry];

        members = *b->r->sets[e->set].run ? NULL : b->r->sets[e->set].baseline;
    }
    if (c->base == HG_MAP_NONE && members)
        look_up(b, l, members, c);
}

/* ---- All of it ---- */

/* Every member of a baseline must be a key of some cell, unless it removes one. set: whose baseline it is; NULL: an option's. */
static int check_members(struct hg_builder *b, const struct hg_results *set, const json_t *members)
{
    struct hg_buf pointer = HG_BUF_INIT;
    const char *name;
    json_t *value;
    int rc = 0;

    json_object_foreach((json_t *)members, name, value) {
        if (json_is_null(value) || name[0] == '_')
            continue;
        hg_buf_clear(&pointer);
        hg_buf_puts(&pointer, "/baseline");
        hg_json_pointer_push(&pointer, name);
        if (hg_builder_key(b, "--baseline", name, set, hg_buf_str(&pointer)) == HG_MAP_NONE)
            rc = -1;
    }
    hg_buf_done(&pointer);
    return rc;
}

/* { "source": the first set }: as overrides of a cell, this gives the same cell there. */
static json_t *first_set(const struct hg_report *r)
{
    size_t key = hg_frame_find_key(&r->frame, r->source_key);

    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].set == 0)
            return json_pack("{s:O}", r->source_key,
                             r->frame.values.items[hg_frame_row(&r->frame, i)[key]].json);
    return NULL;
}

static int check_baselines(struct hg_builder *b)
{
    struct hg_report *r = b->r;
    const json_t *shown = b->options->baseline;
    int rc = shown ? check_members(b, NULL, shown) : 0;

    b->wants_speedup = shown != NULL;
    if (b->options->against_first) {
        r->baseline = first_set(r);
        b->wants_speedup = true;
        return 0;
    }
    for (size_t s = 0; s < r->n_sets && !b->options->baseline; s++) {
        const struct hg_results *set = &r->sets[s];

        if (set->baseline && !*set->run && check_members(b, set, set->baseline) < 0)
            rc = -1;
        b->wants_speedup = b->wants_speedup || set->baseline;
        shown = shown ? shown : set->baseline;
    }
    for (size_t i = 0; i < r->n_entries && !b->wants_speedup; i++)
        b->wants_speedup = *r->entries[i].result->baseline_id != '\0';
    r->baseline = json_incref((json_t *)shown);
    return rc;
}

int hg_configurations_find(struct hg_builder *b)
{
    struct lookup l = { .exact = HG_MAP_INIT };

    if (check_baselines(b) < 0)
        return -1;
    l.key = hg_alloc(key_size(b));
    mask_keys(b);
    group_entries(b, &l.exact, l.key);
    list_members(b);
    if (b->r->kind != HG_METRIC_OTHER && b->wants_speedup) {
        index_ids(b, &l);
        index_stripped(b, &l);
        for (size_t c = 0; c < b->configurations.n; c++)
            find_base(b, &l, &b->configurations.items[c]);
    }
    free(l.key);
    hg_map_done(&l.exact);
    hg_map_done(&l.stripped);
    hg_map_done(&l.ids);
    return 0;
}
