/* SPDX-License-Identifier: Apache-2.0 */
/* Footnotes of a table: everything that keeps a number from meaning what it seems to mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/build.h"
#include "analysis/figures.h"

/* Error messages are quoted while a table has fewer notes than this; then states only. */
#define QUOTED_MAX 24
#define MESSAGE_MAX 160 /* columns */

/* A note being made. Places that say the same about different values share one: their values are
 * listed between head and tail. */
struct note {
    char *head, *tail;
    struct hg_buf values;
};

struct notes {
    struct hg_build *b;
    struct hg_map index; /* head + tail: number */
    struct {
        struct note *items;
        size_t n, cap;
    } list;
    bool failed;
};

static bool lists_value(const char *list, const char *value)
{
    size_t n = strlen(value);

    for (const char *p = list; (p = strstr(p, value)); p++)
        if ((p == list || p[-1] == ' ') && (p[n] == '\0' || p[n] == ','))
            return true;
    return false;
}

static void mark(struct hg_point *p, size_t number)
{
    size_t at = p->n_notes;

    for (size_t i = 0; i < p->n_notes; i++)
        if (p->notes[i] == number)
            return;
    if (at == HG_POINT_NOTES_MAX)
        return;
    for (; at > 0 && p->notes[at - 1] > number; at--)
        p->notes[at] = p->notes[at - 1];
    p->notes[at] = number;
    p->n_notes++;
}

static void add_note(struct notes *notes, struct hg_point *p, const char *head, const char *value,
                     const char *tail)
{
    char *key = hg_str_printf("%s\n%s", head, tail);
    size_t number = key ? hg_map_put(&notes->index, key, strlen(key), notes->list.n) : HG_MAP_NONE;

    free(key);
    if (number == notes->list.n) {
        struct note *fresh = HG_VEC_PUSH(&notes->list);

        if (fresh)
            *fresh = (struct note){ .head = strdup(head), .tail = strdup(tail) };
        if (!fresh || !fresh->head || !fresh->tail)
            notes->failed = true;
    }
    if (number == HG_MAP_NONE || notes->failed) {
        notes->failed = true;
        return;
    }
    if (*value && !lists_value(hg_buf_str(&notes->list.items[number].values), value))
        hg_buf_printf(&notes->list.items[number].values, "%s%s",
                      notes->list.items[number].values.len ? ", " : "", value);
    mark(p, number);
}

/* ---- Completeness ---- */

static void append_states(const struct hg_build *b, const struct hg_config *c, struct hg_buf *out)
{
    bool first = true;

    for (size_t i = 0; i < c->n_entries; i++) {
        const char *state = b->r->entries[b->config_entries[c->begin + i]].state;
        size_t n = 0;
        bool seen = false;

        for (size_t j = 0; j < c->n_entries && state; j++) {
            const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + j]];

            if (!e->shown || !e->state || strcmp(e->state, state) != 0)
                continue;
            seen = seen || j < i;
            n++;
        }
        if (!state || seen || n == 0)
            continue;
        hg_buf_printf(out, "%s%zu %s", first ? "" : ", ", n, state);
        first = false;
    }
}

/* A message about a file of the run, from the run's folder on. */
static const char *inside(const char *message, const char *dir)
{
    size_t n = dir ? strlen(dir) : 0;

    return n && strncmp(message, dir, n) == 0 && message[n] == '/' ? message + n + 1 : message;
}

static const char *first_problem(const struct hg_build *b, const struct hg_config *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = &b->r->entries[b->config_entries[c->begin + i]];

        if (e->shown && e->state && e->result->problem && *e->result->problem)
            return inside(e->result->problem, b->r->sets[e->set].doc.file);
    }
    return NULL;
}

static void note_completeness(struct notes *notes, const struct hg_config *c, struct hg_point *p)
{
    const char *problem = notes->list.n < QUOTED_MAX ? first_problem(notes->b, c) : NULL;
    struct hg_buf text = HG_BUF_INIT;

    if (p->n == p->of && p->of == notes->b->r->repeats)
        return;
    if (p->of == 1 && p->n == 0) {
        if (!problem && strlen(p->state) <= 9) /* the word stands in the table */
            return;
        hg_buf_puts(&text, p->state);
    } else {
        hg_buf_printf(&text, "%zu of %zu run%s", p->n, p->of, hg_text_s(p->of));
        if (p->n < p->of) {
            hg_buf_puts(&text, p->n ? " count: " : ": ");
            append_states(notes->b, c, &text);
        }
    }
    if (problem && p->n < p->of) {
        hg_buf_puts(&text, " (");
        hg_clean_append(problem, MESSAGE_MAX, &text);
        hg_buf_puts(&text, ")");
    }
    add_note(notes, p, hg_buf_str(&text), "", "");
    hg_buf_done(&text);
}

/* ---- What the results say of themselves ---- */

static const struct hg_report_entry *config_entry(const struct hg_build *b,
                                                  const struct hg_config *c, size_t i)
{
    return &b->r->entries[b->config_entries[c->begin + i]];
}

static bool any_oversubscribed(const struct hg_build *b, const struct hg_config *c)
{
    for (size_t i = 0; i < c->n_entries; i++)
        if (!config_entry(b, c, i)->state && config_entry(b, c, i)->result->oversubscribed)
            return true;
    return false;
}

static void note_flags(struct notes *notes, const struct hg_config *c, struct hg_point *p)
{
    bool added = false, diverged = false, suspended = false;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = config_entry(notes->b, c, i);

        added = added || (e->shown && e->result->added);
        diverged = diverged || (e->shown && !e->state && e->result->diverged);
        suspended = suspended || (e->shown && !e->state && e->result->suspended);
    }
    if (added)
        add_note(notes, p, "not in the matrix: added as a baseline", "", "");
    if (any_oversubscribed(notes->b, c))
        add_note(notes, p, "oversubscribed: more ranks than cores, so the time says little", "",
                 "");
    if (suspended)
        add_note(notes, p, "was suspended by the scheduler: its times contain the pause", "", "");
    if (diverged)
        add_note(notes, p, "diverged: the loss was no number", "", "");
}

/* ---- Comparability ---- */

/* Members of a cell that stand in for a result's `comparable`, where it has none. */
static const char *const comparable_keys[] = { "precision", "tf32",    "global_batch",
                                               "seq_len",   "padding", "gelu",
                                               "epochs",    "dataset", "revision" };

const json_t *hg_build_comparable(const struct hg_result *result, const char *key)
{
    const json_t *value = json_object_get(result->comparable, key);

    if (!value)
        value = json_object_get(result->cell, key);
    return json_is_null(value) ? NULL : value;
}

/* Both say the same, or nothing. */
static bool is_same(const struct hg_result *own, const struct hg_result *other, const char *key)
{
    const json_t *a = hg_build_comparable(own, key), *b = hg_build_comparable(other, key);

    return a == b || (a && b && hg_json_equal(a, b));
}

static const char *value_text(const json_t *value, struct hg_buf *out)
{
    hg_buf_clear(out);
    if (!value)
        hg_buf_puts(out, "not said");
    else if (json_is_string(value))
        hg_buf_puts(out, json_string_value(value));
    else
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, out);
    return hg_buf_str(out);
}

static void compare_member(struct notes *notes, struct hg_point *p, const char *key,
                           const struct hg_result *own, const struct hg_result *base)
{
    const json_t *a = hg_build_comparable(own, key), *b = hg_build_comparable(base, key);
    const struct hg_report_options *o = notes->b->options;
    struct hg_buf text = HG_BUF_INIT, head = HG_BUF_INIT, tail = HG_BUF_INIT;
    bool on_purpose =
        (p->weak && (hg_report_is_work(notes->b->r, key) || strcmp(key, "global_batch") == 0)) ||
        (o->against_first && strcmp(key, "revision") == 0);

    if (!on_purpose && !is_same(own, base, key)) {
        hg_buf_printf(&head, "%snot like %s: %s ", o->strict ? "refused (strict): " : "",
                      o->against_first ? "A" : "its baseline", key);
        hg_buf_printf(&tail, " (%s %s)", o->against_first ? "A" : "baseline", value_text(b, &text));
        add_note(notes, p, hg_buf_str(&head), value_text(a, &text), hg_buf_str(&tail));
        p->differs = true;
        p->unlike = p->unlike || strcmp(key, "global_batch") != 0;
    }
    hg_buf_done(&text);
    hg_buf_done(&head);
    hg_buf_done(&tail);
}

static bool is_comparable_key(const char *key)
{
    for (size_t i = 0; i < sizeof comparable_keys / sizeof *comparable_keys; i++)
        if (strcmp(comparable_keys[i], key) == 0)
            return true;
    return false;
}

bool hg_build_is_like(const struct hg_result *a, const struct hg_result *b,
                      bool (*ignored)(const void *context, const char *key), const void *context)
{
    const struct hg_result *sides[2] = { a, b };
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof comparable_keys / sizeof *comparable_keys; i++) {
        key = comparable_keys[i];
        if (strcmp(key, "global_batch") != 0 && !ignored(context, key) && !is_same(a, b, key))
            return false;
    }
    for (size_t i = 0; i < 2; i++) {
        json_object_foreach((json_t *)sides[i]->comparable, key, value) {
            if (strcmp(key, "global_batch") != 0 && !ignored(context, key) && !is_same(a, b, key))
                return false;
        }
    }
    return true;
}

static void compare_results(struct notes *notes, struct hg_point *p, const struct hg_result *own,
                            const struct hg_result *base)
{
    const struct hg_result *sides[2] = { own, base };
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof comparable_keys / sizeof *comparable_keys; i++)
        compare_member(notes, p, comparable_keys[i], own, base);
    for (size_t i = 0; i < 2; i++) {
        json_object_foreach((json_t *)sides[i]->comparable, key, value) {
            if (!is_comparable_key(key))
                compare_member(notes, p, key, own, base);
        }
    }
}

/* ---- What they ran on ---- */

/* Members of a result's `env` that say on what it ran. */
static const char *const env_keys[] = { "gpu",   "cpu",    "driver", "cuda",   "nccl",
                                        "cudnn", "cublas", "mpi",    "kernel", "modules" };

/* Numbers of `env` that drift by themselves: said when they differ by more than this part. */
#define CLOCK_TOLERANCE 0.02

static bool is_clock(const char *key)
{
    return strstr(key, "clock") || strstr(key, "mhz") || strstr(key, "power_limit");
}

static bool is_env_key(const char *key)
{
    for (size_t i = 0; i < sizeof env_keys / sizeof *env_keys; i++)
        if (strcmp(env_keys[i], key) == 0)
            return true;
    return is_clock(key);
}

static const json_t *env_value(const struct hg_result *result, const char *key)
{
    return json_object_get(result->env, key);
}

/* Only what both say can differ. */
static bool env_differs(const struct hg_result *own, const struct hg_result *other, const char *key)
{
    const json_t *a = env_value(own, key), *b = env_value(other, key);
    double x = json_number_value(a), y = json_number_value(b);

    if (!a || !b || json_is_null(a) || json_is_null(b))
        return false;
    if (is_clock(key) && json_is_number(a) && json_is_number(b))
        return fabs(x - y) > CLOCK_TOLERANCE * fmax(fabs(x), fabs(y));
    return !hg_json_equal(a, b);
}

/* Call note for every member of env, and for the device, that differs between two results. */
static void for_env(const struct hg_result *own, const struct hg_result *other, struct notes *notes,
                    struct hg_point *p,
                    void (*note)(struct notes *notes, struct hg_point *p, const char *key,
                                 const char *mine, const char *theirs))
{
    struct hg_buf mine = HG_BUF_INIT, theirs = HG_BUF_INIT;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)own->env, key, value) {
        if (is_env_key(key) && env_differs(own, other, key))
            note(notes, p, key, value_text(value, &mine),
                 value_text(env_value(other, key), &theirs));
    }
    if (own->device && other->device && strcmp(own->device, other->device) != 0)
        note(notes, p, "device", own->device, other->device);
    hg_buf_done(&mine);
    hg_buf_done(&theirs);
}

static void note_env(struct notes *notes, struct hg_point *p, const char *key, const char *mine,
                     const char *theirs)
{
    const char *name = notes->b->options->against_first ? "A"
                       : notes->b->wants_speedup        ? "baseline"
                                                        : "first place";
    char *head = hg_str_printf("ran on other nodes or software: %s ", key);
    char *tail = hg_str_printf(" (%s %s)", name, theirs);

    if (head && tail)
        add_note(notes, p, head, mine, tail);
    notes->failed = notes->failed || !head || !tail;
    free(head);
    free(tail);
}

/* Number of the value of "hardware"; 0 where the cells do not say. */
static uint32_t hardware_of(const struct hg_build *b, const struct hg_config *c)
{
    size_t key = hg_frame_find_key(&b->r->frame, "hardware");

    return key == HG_MAP_NONE ? 0 : hg_frame_row(&b->r->frame, c->entry)[key];
}

/* Without a baseline: is it what the first place on the same hardware ran on? */
static void note_others(struct notes *notes, const struct hg_table *t, const struct hg_config *c,
                        struct hg_point *p)
{
    const struct hg_build *b = notes->b;
    const struct hg_result *own = hg_config_first(b, c);

    if (b->wants_speedup || !own)
        return;
    for (const struct hg_point *q = t->points; q < p; q++) {
        const struct hg_config *other = q->n ? &b->configs.items[q->config] : NULL;

        if (!other || hardware_of(b, other) != hardware_of(b, c))
            continue;
        for_env(own, hg_config_first(b, other), notes, p, note_env);
        return;
    }
}

static void note_mixed_env(struct notes *notes, struct hg_point *p, const char *key,
                           const char *mine, const char *theirs)
{
    (void)mine, (void)theirs;
    add_note(notes, p, "runs differ among themselves in ", key, "");
}

static void note_mixed(struct notes *notes, const struct hg_config *c, struct hg_point *p)
{
    const struct hg_result *first = hg_config_first(notes->b, c);
    const char *key;
    json_t *value;

    for (size_t i = 0; i < c->n_entries && first; i++) {
        const struct hg_result *other = config_entry(notes->b, c, i)->result;

        if (config_entry(notes->b, c, i)->state)
            continue;
        json_object_foreach((json_t *)first->comparable, key, value) {
            const json_t *theirs = hg_build_comparable(other, key);

            if (!theirs || !hg_json_equal(value, theirs))
                add_note(notes, p, "runs differ among themselves in ", key, "");
        }
        for_env(first, other, notes, p, note_mixed_env);
    }
}

/* ---- Speedup and efficiency ---- */

static void note_hardware(struct notes *notes, const struct hg_config *c,
                          const struct hg_config *base, struct hg_point *p)
{
    const struct hg_frame *f = &notes->b->r->frame;
    size_t key = hg_frame_find_key(f, "hardware");
    const struct hg_result *own = notes->b->r->entries[c->entry].result,
                           *other = notes->b->r->entries[base->entry].result;

    if (own->on_cores != other->on_cores)
        add_note(notes, p, "no efficiency: ", own->on_cores ? "cores" : "GPUs",
                 own->on_cores ? " here, GPUs in its baseline" : " here, cores in its baseline");
    else if (isnan(p->p))
        add_note(notes, p,
                 "no efficiency: the cell or its baseline does not say on how many devices", "",
                 "");
    else if (key != HG_MAP_NONE &&
             hg_frame_row(f, c->entry)[key] != hg_frame_row(f, base->entry)[key])
        add_note(notes, p, "efficiency against one device of other hardware: ",
                 hg_report_text(notes->b->r, hg_frame_row(f, base->entry)[key]), "");
}

/* What the results say of their work, where no member of them has been blamed for it. */
static void note_work(struct notes *notes, struct hg_point *p)
{
    struct hg_buf text = HG_BUF_INIT;

    if (p->weak) {
        add_note(
            notes, p,
            notes->b->r->kind == HG_METRIC_TIME
                ? "weak scaling: the work grows with the devices, the speedup is work x T_base/T"
                : "weak scaling: the work grows with the devices",
            "", "");
    } else if (!p->unlike && hg_scaling_kind_of(p->work, p->p) == HG_SCALING_NEITHER) {
        hg_number_append(&notes->b->r->style, p->work, 2, &text);
        add_note(notes, p, "not as much work as its baseline did: ", hg_buf_str(&text), " times");
        p->differs = p->unlike = true;
    }
    hg_buf_done(&text);
}

static void note_efficiency(struct notes *notes, struct hg_point *p)
{
    const struct hg_estimate *s = &p->speedup;

    if (!(p->efficiency > 1 + 1e-9) || p->p == 1)
        return;
    if (s->has_interval && s->low <= p->p)
        add_note(notes, p,
                 "efficiency above 1, but the interval reaches 1: no more than chance explains", "",
                 "");
    else
        add_note(
            notes, p,
            "efficiency above 1: more per device than the baseline; did both do the same work?", "",
            "");
}

/* The value stays: it was measured. What it would be compared with is another thing. */
static void refuse(struct hg_point *p)
{
    p->refused = true;
    p->speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
    p->efficiency = p->karp_flatt = NAN;
}

static void note_speedup(struct notes *notes, const struct hg_table *t, const struct hg_config *c,
                         struct hg_point *p)
{
    struct hg_build *b = notes->b;
    const struct hg_config *base = c->base == HG_MAP_NONE ? NULL : &b->configs.items[c->base];
    const struct hg_result *own = hg_config_first(b, c),
                           *other = base ? hg_config_first(b, base) : NULL;

    if (!b->wants_speedup || b->r->kind == HG_METRIC_OTHER || p->n == 0)
        return;
    if (!base || !other) { /* said once where it concerns the whole table */
        if (t->has_speedup)
            add_note(notes, p,
                     base ? "no speedup: its baseline has no complete result"
                          : "no speedup: its baseline is not among the results",
                     "", "");
        return;
    }
    if (base == c)
        return;
    note_hardware(notes, c, base, p);
    compare_results(notes, p, own, other);
    note_work(notes, p);
    if (hardware_of(b, c) == hardware_of(b, base)) /* else nobody expects the same */
        for_env(own, other, notes, p, note_env);
    if (any_oversubscribed(b, base) && !any_oversubscribed(b, c))
        add_note(notes, p, "its baseline is oversubscribed", "", "");
    note_efficiency(notes, p);
    if (b->options->strict && p->differs)
        refuse(p);
}

/* ---- All of them ---- */

static int write_notes(struct notes *notes, struct hg_table *t)
{
    for (size_t i = 0; i < notes->list.n; i++) {
        const struct note *note = &notes->list.items[i];
        char **text = HG_VEC_PUSH(&t->notes);

        if (!text)
            return -1;
        *text = hg_str_printf("%s%s%s", note->head, hg_buf_str(&note->values), note->tail);
        if (!*text)
            return -1;
    }
    return 0;
}

static const char *why_no_speedup(const struct hg_build *b, const struct hg_table *t)
{
    bool found = false, value = false;

    if (!b->wants_speedup || t->has_speedup)
        return NULL;
    if (b->r->kind == HG_METRIC_OTHER)
        return "no speedup: the metric is neither a time (..._s) nor a rate (..._per_s)";
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        if (t->points[i].config == HG_MAP_NONE)
            continue;
        value = value || t->points[i].n > 0;
        found = found || b->configs.items[t->points[i].config].base != HG_MAP_NONE;
    }
    if (!value)
        return NULL;
    return found ? "no speedup: the baseline has no complete result"
                 : "no speedup: the baseline is not among the results";
}

/* Sections that hold nothing any more are not shown. */
static void count_refused(struct hg_report *r, struct hg_table *t)
{
    bool speedup = false, efficiency = false;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_point *p = &t->points[i];

        r->refused += p->refused;
        speedup = speedup || !isnan(p->speedup.value);
        efficiency = efficiency || (!isnan(p->efficiency) && p->p != 1);
    }
    t->has_speedup = speedup;
    t->has_efficiency = efficiency;
}

int hg_build_notes(struct hg_build *b, struct hg_table *t)
{
    struct notes notes = { .b = b };
    size_t n = t->n_rows * t->n_columns;
    int rc;

    t->no_speedup = why_no_speedup(b, t);
    for (size_t i = 0; i < n; i++) {
        struct hg_point *p = &t->points[i];
        const struct hg_config *c;

        if (t->points[i].config == HG_MAP_NONE)
            continue;
        c = &b->configs.items[t->points[i].config];
        note_completeness(&notes, c, p);
        note_flags(&notes, c, p);
        note_mixed(&notes, c, p);
        note_speedup(&notes, t, c, p);
        note_others(&notes, t, c, p);
    }
    count_refused(b->r, t);
    rc = notes.failed || write_notes(&notes, t) < 0 ? -1 : 0;
    for (size_t i = 0; i < notes.list.n; i++) {
        free(notes.list.items[i].head);
        free(notes.list.items[i].tail);
        hg_buf_done(&notes.list.items[i].values);
    }
    HG_VEC_DONE(&notes.list);
    hg_map_done(&notes.index);
    return rc;
}
