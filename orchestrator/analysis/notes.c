/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/notes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/adaptive.h"
#include "analysis/code.h"
#include "analysis/comparable.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "typeset/plain.h"

/* Error messages are quoted while a table has fewer notes than this; then states only. */
#define QUOTED_MAX 24
#define MESSAGE_MAX 160 /* columns */

/* A note being made. Places with the same note about different values share one: the values are listed between head and tail. */
struct note {
    char *head, *tail;
    struct hg_buf values;
};

struct notes {
    struct hg_builder *b;
    struct hg_map index; /* head + tail: number */
    struct {
        struct note *items;
        size_t n, cap;
    } list;
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
    size_t number = hg_map_put(&notes->index, key, strlen(key), notes->list.n);
    struct hg_buf *values;

    free(key);
    if (number == notes->list.n)
        *HG_VEC_PUSH(&notes->list) =
            (struct note){ .head = hg_strdup(head), .tail = hg_strdup(tail) };
    values = &notes->list.items[number].values;
    if (*value && !lists_value(hg_buf_str(values), value))
        hg_buf_printf(values, "%s%s", values->len ? ", " : "", value);
    mark(p, number);
}

/* ---- Completeness ---- */

static void append_states(const struct hg_builder *b, const struct hg_configuration *c,
                          struct hg_buf *out)
{
    bool first = true;

    for (size_t i = 0; i < c->n_entries; i++) {
        const char *state = hg_builder_entry(b, c, i)->state;
        size_t n = 0;
        bool seen = false;

        for (size_t j = 0; j < c->n_entries && state; j++) {
            const struct hg_report_entry *e = hg_builder_entry(b, c, j);

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

/* A message about a file of the run, without the path of the run's folder. */
static const char *inside(const char *message, const char *dir)
{
    size_t n = dir ? strlen(dir) : 0;

    return n && strncmp(message, dir, n) == 0 && message[n] == '/' ? message + n + 1 : message;
}

static const char *first_problem(const struct hg_builder *b, const struct hg_configuration *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (e->shown && e->state && e->result->problem && *e->result->problem)
            return inside(e->result->problem, b->r->sets[e->set].doc.file);
    }
    return NULL;
}

static void note_completeness(struct notes *notes, const struct hg_configuration *c,
                              struct hg_point *p)
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

static void note_adaptive(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    struct hg_buf head = HG_BUF_INIT, value = HG_BUF_INIT;

    if (hg_adaptive_note(notes->b, c, p, &head, &value))
        add_note(notes, p, hg_buf_str(&head), hg_buf_str(&value), "");
    hg_buf_done(&head);
    hg_buf_done(&value);
}

/* ---- Flags of the results ---- */

static bool any_oversubscribed(const struct hg_builder *b, const struct hg_configuration *c)
{
    for (size_t i = 0; i < c->n_entries; i++)
        if (!hg_builder_entry(b, c, i)->state && hg_builder_entry(b, c, i)->result->oversubscribed)
            return true;
    return false;
}

static void note_flags(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    bool added = false, diverged = false, suspended = false;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);

        added = added || (e->shown && e->result->added);
        diverged = diverged || (e->shown && !e->state && e->result->diverged);
        suspended = suspended || (e->shown && !e->state && e->result->suspended);
    }
    if (added)
        add_note(notes, p, "not in the matrix: added as a baseline", "", "");
    if (any_oversubscribed(notes->b, c))
        add_note(notes, p,
                 "oversubscribed: more ranks than cores, so the times are not representative", "",
                 "");
    p->off_law = p->off_law || suspended || diverged;
    if (suspended)
        add_note(notes, p, "suspended by the scheduler: its times include the pause", "", "");
    if (diverged)
        add_note(notes, p, "diverged: the loss became NaN or infinite", "", "");
}

/* ---- Comparability ---- */

static const char *value_text(const json_t *value, struct hg_buf *out)
{
    hg_buf_clear(out);
    if (!value)
        hg_buf_puts(out, "unknown");
    else if (json_is_string(value))
        hg_buf_puts(out, json_string_value(value));
    else
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, out);
    return hg_buf_str(out);
}

/* Two results that are compared, for the notes of a place. */
struct pair {
    struct notes *notes;
    struct hg_point *p;
    const struct hg_result *own, *other;
};

static void compare_member(void *context, const char *key)
{
    const struct pair *pair = context;
    const struct hg_report_options *o = pair->notes->b->options;
    struct hg_point *p = pair->p;
    struct hg_buf text = HG_BUF_INIT, head = HG_BUF_INIT, tail = HG_BUF_INIT;
    bool on_purpose =
        (p->weak && (hg_work_is_key(pair->notes->b->r, key) || strcmp(key, "global_batch") == 0)) ||
        (o->against_first && strcmp(key, "revision") == 0);

    if (on_purpose || hg_comparable_is_same(pair->own, pair->other, key))
        return;
    hg_buf_printf(&head, "%sdiffers from %s: %s ", o->strict ? "refused (strict): " : "",
                  o->against_first ? "A" : "its baseline", key);
    hg_buf_printf(&tail, " (%s %s)", o->against_first ? "A" : "baseline",
                  value_text(hg_comparable_get(pair->other, key), &text));
    add_note(pair->notes, p, hg_buf_str(&head),
             value_text(hg_comparable_get(pair->own, key), &text), hg_buf_str(&tail));
    p->differs = true;
    p->unlike = p->unlike || strcmp(key, "global_batch") != 0;
    hg_buf_done(&text);
    hg_buf_done(&head);
    hg_buf_done(&tail);
}

/* ---- What they ran on ---- */

static void note_env(void *context, const char *key, const json_t *mine, const json_t *theirs)
{
    const struct pair *pair = context;
    const struct hg_builder *b = pair->notes->b;
    struct hg_buf text = HG_BUF_INIT;
    char *head = hg_str_printf("ran on other nodes or software: %s ", key);
    char *tail = hg_str_printf(" (%s %s)",
                               b->options->against_first ? "A"
                               : b->wants_speedup        ? "baseline"
                                                         : "first place",
                               value_text(theirs, &text));

    add_note(pair->notes, pair->p, head, value_text(mine, &text), tail);
    pair->p->off_law = true;
    free(head);
    free(tail);
    hg_buf_done(&text);
}

/* Number of the value of "hardware"; 0 where the cells do not say. */
static uint32_t hardware_of(const struct hg_builder *b, const struct hg_configuration *c)
{
    size_t key = hg_frame_find_key(&b->r->frame, "hardware");

    return key == HG_MAP_NONE ? 0 : hg_frame_row(&b->r->frame, c->entry)[key];
}

/* Without baselines: compare with the first place on the same hardware. */
static void note_others(struct notes *notes, const struct hg_table *t,
                        const struct hg_configuration *c, struct hg_point *p)
{
    const struct hg_builder *b = notes->b;
    const struct hg_result *own = hg_builder_first(b, c);

    if (b->wants_speedup || !own)
        return;
    for (const struct hg_point *q = t->points; q < p; q++) {
        const struct hg_configuration *other = q->n ? &b->configurations.items[q->config] : NULL;

        if (!other || hardware_of(b, other) != hardware_of(b, c))
            continue;
        hg_comparable_each_env(own, hg_builder_first(b, other), note_env,
                               &(struct pair){ notes, p, own, NULL });
        return;
    }
}

static void note_mixed_env(void *context, const char *key, const json_t *mine, const json_t *theirs)
{
    const struct pair *pair = context;

    (void)mine, (void)theirs;
    add_note(pair->notes, pair->p, "its runs differ in ", key, "");
    pair->p->off_law = true;
}

static void note_mixed(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    const struct hg_result *first = hg_builder_first(notes->b, c);
    const char *key;
    json_t *value;

    for (size_t i = 0; i < c->n_entries && first; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);
        struct pair pair = { notes, p, first, e->result };

        if (e->state)
            continue;
        json_object_foreach((json_t *)first->comparable, key, value) {
            const json_t *theirs = hg_comparable_get(e->result, key);

            if (!theirs || !hg_json_equal(value, theirs))
                note_mixed_env(&pair, key, NULL, NULL);
        }
        hg_comparable_each_env(first, e->result, note_mixed_env, &pair);
    }
}

/* ---- Speedup and efficiency ---- */

static void note_hardware(struct notes *notes, const struct hg_configuration *c,
                          const struct hg_configuration *base, struct hg_point *p)
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
                 "no efficiency: the device count of the cell or of its baseline is unknown", "",
                 "");
    else if (key != HG_MAP_NONE &&
             hg_frame_row(f, c->entry)[key] != hg_frame_row(f, base->entry)[key]) {
        add_note(notes, p, "efficiency against one device of other hardware: ",
                 hg_report_text(notes->b->r, hg_frame_row(f, base->entry)[key]), "");
        p->off_law = true;
    }
}

/* A difference in work that no other note explains yet. */
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
        add_note(notes, p, "work differs from that of its baseline: ", hg_buf_str(&text), " times");
        p->differs = p->unlike = true;
    }
    hg_buf_done(&text);
}

static void note_efficiency(struct notes *notes, struct hg_point *p)
{
    const struct hg_estimate *s = &p->speedup;

    if (!(p->efficiency > 1 + 1e-9) || p->p == 1)
        return;
    p->superlinear = !s->has_interval || s->low > p->p;
    add_note(
        notes, p,
        p->superlinear
            ? "efficiency above 1: more per device than the baseline; did both do the same work?"
            : "efficiency above 1, but its interval includes 1: this may be chance",
        "", "");
}

/* The value stays, because it was measured; only the comparison is withheld. */
static void refuse(struct hg_point *p)
{
    p->refused = true;
    p->speedup = (struct hg_estimate)HG_ESTIMATE_NONE;
    p->efficiency = p->karp_flatt = NAN;
}

static void note_speedup(struct notes *notes, const struct hg_table *t,
                         const struct hg_configuration *c, struct hg_point *p)
{
    struct hg_builder *b = notes->b;
    const struct hg_configuration *base =
        c->base == HG_MAP_NONE ? NULL : &b->configurations.items[c->base];
    const struct hg_result *own = hg_builder_first(b, c),
                           *other = base ? hg_builder_first(b, base) : NULL;
    struct pair pair = { notes, p, own, other };

    if (!b->wants_speedup || b->r->kind == HG_METRIC_OTHER || p->n == 0)
        return;
    if (!base || !other) { /* once for the whole table if it concerns all of it */
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
    hg_comparable_each(own, other, compare_member, &pair);
    note_work(notes, p);
    if (hardware_of(b, c) == hardware_of(b, base)) /* otherwise a difference is expected */
        hg_comparable_each_env(own, other, note_env, &pair);
    if (any_oversubscribed(b, base) && !any_oversubscribed(b, c)) {
        add_note(notes, p, "its baseline is oversubscribed", "", "");
        p->off_law = true;
    }
    note_efficiency(notes, p);
    if (b->options->strict && p->differs)
        refuse(p);
}

/* ---- What the set says of its rows ---- */

/* Why a configuration is not comparable with others; NULL: it is. */
static const char *why_alone(const struct hg_builder *b, const struct hg_configuration *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(b, c, i);

        if (!e->state && e->result->not_comparable)
            return e->result->not_comparable;
    }
    return NULL;
}

/* A place that is not comparable, or whose baseline is not, has no speedup, with or without --strict. Two sets may agree in it. */
static void note_alone(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    const struct hg_builder *b = notes->b;
    const struct hg_configuration *base =
        c->base == HG_MAP_NONE ? NULL : &b->configurations.items[c->base];
    const char *mine = why_alone(b, c), *theirs = base ? why_alone(b, base) : NULL;

    if (!mine && (!theirs || base == c))
        return;
    if (b->options->against_first && mine && theirs && strcmp(mine, theirs) == 0)
        return;
    if (mine)
        add_note(notes, p, "not comparable with the others: ", mine, "");
    else
        add_note(notes, p, "its baseline is not comparable: ", theirs, "");
    if (!base || base == c)
        return;
    p->differs = p->unlike = true;
    refuse(p);
    p->refused = b->options->strict;
}

static void note_set(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    char *text;

    if (p->published) {
        text = hg_str_printf("mean of %zu runs, as published", p->published);
        add_note(notes, p, text, "", "");
        free(text);
    }
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);
        const struct hg_result *result = e->result;

        if (e->shown && result->footnote)
            add_note(notes, p, result->footnote, "", "");
        if (e->shown && result->note)
            add_note(notes, p, result->note, "", "");
        if (e->shown && result->source && notes->list.n < QUOTED_MAX) {
            text = hg_str_printf("source: %s", result->source);
            add_note(notes, p, text, "", "");
            free(text);
        }
    }
    note_alone(notes, c, p);
}

/* ---- The runs of a place ---- */

/* Where a sentence about a place goes. */
struct place {
    struct notes *notes;
    struct hg_point *p;
};

static void take_sentence(void *context, const char *text)
{
    const struct place *place = context;

    add_note(place->notes, place->p, text, "", "");
}

static void note_spread(struct notes *notes, const struct hg_configuration *c, struct hg_point *p,
                        struct hg_spread *spread)
{
    struct place place = { notes, p };
    const struct hg_estimate *s = &p->speedup;

    hg_spread_place(notes->b, c, spread, take_sentence, &place);
    if (s->has_interval && s->low < 1 && s->high > 1 && p->p != 1 &&
        !notes->b->options->against_first)
        add_note(notes, p, "the difference from its baseline is within the interval of the speedup",
                 "", "");
}

/* ---- The code under test, and cells that were removed from the matrix ---- */

static void note_code(struct notes *notes, const struct hg_table *t,
                      const struct hg_configuration *c, struct hg_point *p)
{
    struct place place = { notes, p };

    if (hg_code_place(notes->b, t, c, p, take_sentence, &place)) {
        p->differs = p->unlike = true;
        if (notes->b->options->strict)
            refuse(p);
    }
}

static void note_removed(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    bool strict = notes->b->options->strict, removed = false;

    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);

        removed = removed || (e->shown && e->result->removed);
    }
    if (!removed)
        return;
    add_note(notes, p,
             strict ? "refused (strict): no longer in the matrix" : "no longer in the matrix", "",
             "");
    if (strict)
        refuse(p);
}

/* ---- All of them ---- */

static void write_notes(struct notes *notes, struct hg_table *t)
{
    for (size_t i = 0; i < notes->list.n; i++) {
        struct note *note = &notes->list.items[i];

        *HG_VEC_PUSH(&t->notes) =
            hg_str_printf("%s%s%s", note->head, hg_buf_str(&note->values), note->tail);
        free(note->head);
        free(note->tail);
        hg_buf_done(&note->values);
    }
    HG_VEC_DONE(&notes->list);
    hg_map_done(&notes->index);
}

static const char *why_no_speedup(const struct hg_builder *b, const struct hg_table *t)
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
        found = found || b->configurations.items[t->points[i].config].base != HG_MAP_NONE;
    }
    if (!value)
        return NULL;
    return found ? "no speedup: the baseline has no complete result"
                 : "no speedup: the baseline is not among the results";
}

/* Sections that became empty are not shown. */
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

void hg_notes_write(struct hg_builder *b, struct hg_table *t)
{
    struct notes notes = { .b = b };
    struct hg_spread spread = { .values = 0 };

    t->no_speedup = why_no_speedup(b, t);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        struct hg_point *p = &t->points[i];
        const struct hg_configuration *c = hg_builder_configuration(b, p);

        if (!c)
            continue;
        note_completeness(&notes, c, p);
        note_adaptive(&notes, c, p);
        note_flags(&notes, c, p);
        note_mixed(&notes, c, p);
        note_set(&notes, c, p);
        note_spread(&notes, c, p, &spread);
        note_speedup(&notes, t, c, p);
        note_others(&notes, t, c, p);
        note_code(&notes, t, c, p);
        note_removed(&notes, c, p);
        b->configurations.items[p->config].off_law = p->off_law || p->unlike;
    }
    hg_spread_remark(b->r, &spread, t);
    count_refused(b->r, t);
    write_notes(&notes, t);
}
