/* SPDX-License-Identifier: Apache-2.0 */
/* Second step of a report: runs of one case belong together, and each case has its baseline. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/build.h"

/* ---- Which members make a case ---- */

/* A whole number that `repeat` alone decides (a seed made from it) goes with repeat. */
static int goes_with_repeat(const struct hg_report *r, size_t key, size_t repeat, bool *goes)
{
    uint32_t *of_repeat = calloc(r->frame.values.n, sizeof *of_repeat), first = 0;
    bool varies = false;

    if (!of_repeat)
        return -1;
    *goes = true;
    for (size_t i = 0; i < r->n_entries && *goes; i++) {
        const uint32_t *row = hg_frame_row(&r->frame, i);
        const struct hg_frame_value *v = &r->frame.values.items[row[key]];
        uint32_t *slot = &of_repeat[row[repeat]];

        *goes = row[repeat] && json_is_integer(v->json) && (*slot == 0 || *slot == row[key]);
        *slot = row[key];
        varies = varies || (first && first != row[key]);
        first = row[key];
    }
    *goes = *goes && varies;
    free(of_repeat);
    return 0;
}

static bool is_listed(char **names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* A key that places are told apart by is part of a case, even `repeat`. */
static bool is_asked_for(const struct hg_build *b, const char *name)
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

static int mask_keys(struct hg_build *b)
{
    const struct hg_frame *f = &b->r->frame;
    size_t repeat = hg_frame_find_key(f, "repeat");

    b->masked = calloc(f->keys.n + 1, sizeof *b->masked);
    if (!b->masked)
        return -1;
    for (size_t k = 0; k < f->keys.n; k++) {
        bool goes = false;

        if (!f->keys.items[k].flags && repeat != HG_MAP_NONE &&
            goes_with_repeat(b->r, k, repeat, &goes) < 0)
            return -1;
        goes = goes || f->keys.items[k].flags & (HG_KEY_NOTE | HG_KEY_LOOSE | HG_KEY_REPEAT);
        b->masked[k] = goes && !is_asked_for(b, f->keys.items[k].name);
    }
    return 0;
}

/* ---- Configs ---- */

/* A case as numbers: the cell's members that count, and whether it is a rehearsal. */
static void config_key(const struct hg_build *b, size_t entry, uint32_t *key)
{
    const struct hg_frame *f = &b->r->frame;

    for (size_t k = 0; k < f->keys.n; k++)
        key[k] = b->masked[k] ? 0 : hg_frame_row(f, entry)[k];
    key[f->keys.n] = b->r->entries[entry].rehearsal;
}

static size_t key_size(const struct hg_build *b)
{
    return (b->r->frame.keys.n + 1) * sizeof(uint32_t);
}

static int group_entries(struct hg_build *b, struct hg_map *exact, uint32_t *key)
{
    for (size_t i = 0; i < b->r->n_entries; i++) {
        size_t at;

        config_key(b, i, key);
        at = hg_map_put(exact, key, key_size(b), b->configs.n);
        if (at == HG_MAP_NONE)
            return -1;
        if (at == b->configs.n) {
            struct hg_config *c = HG_VEC_PUSH(&b->configs);

            if (!c)
                return -1;
            *c = (struct hg_config){ .entry = i, .base = HG_MAP_NONE };
        }
        b->configs.items[at].n_entries++;
        b->r->entries[i].config = at;
    }
    return 0;
}

static int list_config_entries(struct hg_build *b)
{
    size_t begin = 0;

    b->config_entries = calloc(b->r->n_entries + 1, sizeof *b->config_entries);
    if (!b->config_entries)
        return -1;
    for (size_t c = 0; c < b->configs.n; c++) {
        b->configs.items[c].begin = begin;
        begin += b->configs.items[c].n_entries;
        b->configs.items[c].n_entries = 0;
    }
    for (size_t i = 0; i < b->r->n_entries; i++) {
        struct hg_config *c = &b->configs.items[b->r->entries[i].config];

        b->config_entries[c->begin + c->n_entries++] = i;
    }
    return 0;
}

size_t hg_config_values(const struct hg_build *b, const struct hg_config *c, double *v)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (!e->state)
            v[n++] = e->value;
    }
    return n;
}

const struct hg_result *hg_config_first(const struct hg_build *b, const struct hg_config *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (!e->state)
            return e->result;
    }
    return NULL;
}

/* ---- Baselines by lookup: members put over a cell ---- */

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

/* Take out what only repeats a default: one node; one GPU or none, which is the same wish on
 * hardware without; one task for each GPU. */
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

static int put_over(struct hg_build *b, const json_t *members, uint32_t *key)
{
    struct hg_frame *f = &b->r->frame;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)members, name, value) {
        size_t k = hg_frame_find_key(f, name), v = hg_frame_value(f, value);

        if (v == HG_MAP_NONE)
            return -1;
        if (k != HG_MAP_NONE && !b->masked[k])
            key[k] = (uint32_t)v;
    }
    return 0;
}

struct lookup {
    struct hg_map exact, stripped, ids;
    uint32_t *key;
};

static int look_up(struct hg_build *b, struct lookup *l, const json_t *members, struct hg_config *c)
{
    config_key(b, c->entry, l->key);
    if (put_over(b, members, l->key) < 0)
        return -1;
    c->base = hg_map_find(&l->exact, l->key, key_size(b));
    if (c->base != HG_MAP_NONE)
        return 0;
    config_key(b, c->entry, l->key);
    strip_defaults(&b->r->frame, l->key);
    if (put_over(b, members, l->key) < 0)
        return -1;
    strip_defaults(&b->r->frame, l->key);
    c->base = hg_map_find(&l->stripped, l->key, key_size(b));
    return 0;
}

/* ---- Baselines by id, as a run names them ---- */

static size_t find_id(const struct hg_build *b, struct lookup *l, const struct hg_report_entry *e)
{
    struct hg_buf name = HG_BUF_INIT;
    size_t entry;

    hg_buf_printf(&name, "%zu %s", e->set, e->result->baseline_id);
    entry = name.failed ? HG_MAP_NONE : hg_map_find(&l->ids, name.data, name.len);
    hg_buf_done(&name);
    return entry == HG_MAP_NONE ? HG_MAP_NONE : b->r->entries[entry].config;
}

static int index_ids(struct hg_build *b, struct lookup *l)
{
    struct hg_buf name = HG_BUF_INIT;
    int rc = 0;

    for (size_t i = 0; i < b->r->n_entries && rc == 0; i++) {
        const struct hg_report_entry *e = &b->r->entries[i];

        if (!*e->result->id)
            continue;
        hg_buf_clear(&name);
        hg_buf_printf(&name, "%zu %s", e->set, e->result->id);
        if (name.failed || hg_map_put(&l->ids, name.data, name.len, i) == HG_MAP_NONE)
            rc = -1;
    }
    hg_buf_done(&name);
    return rc;
}

static int index_stripped(struct hg_build *b, struct lookup *l)
{
    for (size_t c = 0; c < b->configs.n; c++) {
        config_key(b, b->configs.items[c].entry, l->key);
        strip_defaults(&b->r->frame, l->key);
        if (hg_map_put(&l->stripped, l->key, key_size(b), c) == HG_MAP_NONE)
            return -1;
    }
    return 0;
}

static int find_base(struct hg_build *b, struct lookup *l, struct hg_config *c)
{
    const json_t *members = b->r->baseline;

    if (!b->options->baseline && !b->options->against_first)
        members = NULL;
    for (size_t i = 0; i < c->n_entries && !members && c->base == HG_MAP_NONE; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (*e->result->baseline_id)
            c->base = find_id(b, l, e);
    }
    if (!members) { /* a run says itself that a cell has none */
        const struct hg_report_entry *e = &b->r->entries[c->entry];

        members = *b->r->sets[e->set].run ? NULL : b->r->sets[e->set].baseline;
    }
    return c->base == HG_MAP_NONE && members ? look_up(b, l, members, c) : 0;
}

/* ---- All of it ---- */

/* Every member of a baseline must be a key of some cell, unless it takes one away. set: whose
 * baseline it is; NULL: an option's. */
static int check_members(struct hg_build *b, const struct hg_results *set, const json_t *members)
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
        if (hg_build_key(b, "--baseline", name, set, hg_buf_str(&pointer)) == HG_MAP_NONE)
            rc = -1;
    }
    hg_buf_done(&pointer);
    return rc;
}

/* { "source": the first set }: put over a cell, this is the same cell there. */
static json_t *first_set(const struct hg_report *r)
{
    size_t key = hg_frame_find_key(&r->frame, r->source_key);

    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].set == 0)
            return json_pack("{s:O}", r->source_key,
                             r->frame.values.items[hg_frame_row(&r->frame, i)[key]].json);
    return NULL;
}

static int check_baselines(struct hg_build *b)
{
    struct hg_report *r = b->r;
    const json_t *shown = b->options->baseline;
    int rc = shown ? check_members(b, NULL, shown) : 0;

    b->wants_speedup = shown != NULL;
    if (b->options->against_first) {
        r->baseline = first_set(r);
        b->wants_speedup = true;
        return r->baseline ? 0 : hg_err_oom(hg_errs_next(b->errs));
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

int hg_build_configs(struct hg_build *b)
{
    struct lookup l = { .exact = HG_MAP_INIT };
    int rc = -1;

    if (check_baselines(b) < 0)
        return -1;
    l.key = malloc(key_size(b));
    if (!l.key || mask_keys(b) < 0 || group_entries(b, &l.exact, l.key) < 0 ||
        list_config_entries(b) < 0)
        goto out;
    rc = 0;
    if (b->r->kind == HG_METRIC_OTHER || !b->wants_speedup)
        goto out;
    rc = index_ids(b, &l) < 0 || index_stripped(b, &l) < 0 ? -1 : 0;
    for (size_t c = 0; c < b->configs.n && rc == 0; c++)
        rc = find_base(b, &l, &b->configs.items[c]);
out:
    if (rc < 0)
        hg_err_oom(hg_errs_next(b->errs));
    free(l.key);
    hg_map_done(&l.exact);
    hg_map_done(&l.stripped);
    hg_map_done(&l.ids);
    return rc;
}
