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
#include "analysis/copies.h"
#include "analysis/differences.h"
#include "analysis/spread.h"
#include "analysis/work.h"
#include "typeset/plain.h"

/* Error messages are quoted while a table has fewer notes than this; then states only. */
#define QUOTED_MAX 24
#define MESSAGE_MAX 160 /* columns */
/* Values that one note lists. */
#define VALUES_MAX 8

/* A note being made. Places with the same note about different values share one: the values are listed between head and tail. */
struct note {
    char *head, *tail;
    struct hg_buf values;
    size_t n_values;
};

struct notes {
    struct hg_builder *b;
    struct hg_map index; /* head + tail: number; head + tail + value: that the note has it */
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

static bool is_new(struct notes *notes, const char *key, const char *value)
{
    char *both = hg_str_printf("%s\n%s", key, value);
    size_t n = notes->index.n;

    hg_map_put(&notes->index, both, strlen(both), 0);
    free(both);
    return notes->index.n > n;
}

static void add_note(struct notes *notes, struct hg_point *p, const char *head, const char *value,
                     const char *tail)
{
    char *key = hg_str_printf("%s\n%s", head, tail);
    size_t number = hg_map_put(&notes->index, key, strlen(key), notes->list.n);
    struct note *note;

    if (number == notes->list.n)
        *HG_VEC_PUSH(&notes->list) =
            (struct note){ .head = hg_strdup(head), .tail = hg_strdup(tail) };
    note = &notes->list.items[number];
    if (*value && is_new(notes, key, value) && note->n_values++ < VALUES_MAX)
        hg_buf_printf(&note->values, "%s%s", note->values.len ? ", " : "", value);
    free(key);
    mark(p, number);
}

/* A note that says why a figure and the baseline's cannot be compared. */
static void add_reason(struct notes *notes, struct hg_point *p, const char *head, const char *value,
                       const char *tail)
{
    char *text = hg_str_printf("%s%s", notes->b->options->strict ? "refused (strict): " : "", head);

    add_note(notes, p, text, value, tail);
    p->differs = true;
    free(text);
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

    if (p->n == p->of && (p->of == notes->b->r->repeats || p->published))
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

/* What makes the times of a run no measure of its case. */
static const char *const flags[] = {
    "oversubscribed: more ranks than cores, so the times are not representative",
    "suspended by the scheduler: its times include the pause",
    "diverged: the loss became NaN or infinite",
};

static bool has_flag(const struct hg_side *side, size_t flag)
{
    for (size_t i = 0; i < side->n; i++) {
        const struct hg_result *r = side->runs[i];

        if (flag == 0 ? r->oversubscribed : flag == 1 ? r->suspended : r->diverged)
            return true;
    }
    return false;
}

/* Those of a place, or those that only its baseline has. */
static void note_flags(struct notes *notes, const struct hg_side *own, const struct hg_side *base,
                       const char *whom, struct hg_point *p)
{
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char *head = hg_str_printf("%s%s%s", whom, base ? ": " : "", flags[i]);

        if (has_flag(own, i) ? !base : base && has_flag(base, i)) {
            add_reason(notes, p, head, "", "");
            p->off_law =
                p->off_law || base || i > 0; /* oversubscribed places are left out anyway */
        }
        free(head);
    }
}

/* Below these, first steps and the clock are too large a part of a time or rate. */
#define STEPS_LEAST 50
#define NOISE_TIMES_LEAST 20

static void note_least(struct notes *notes, double found, double least, const char *what,
                       const char *unit, struct hg_point *p)
{
    struct hg_buf value = HG_BUF_INIT;

    if (found >= least)
        return;
    hg_buf_printf(&value, "%.3g%s", found, unit);
    add_note(notes, p, what, hg_buf_str(&value), "");
    hg_buf_done(&value);
}

/* Of the shortest run. A rehearsal measures nothing anyway. */
static void note_short(struct notes *notes, const struct hg_side *own, struct hg_point *p)
{
    double steps = INFINITY, times = INFINITY;

    if (notes->b->r->kind == HG_METRIC_OTHER)
        return;
    for (size_t i = 0; i < own->n; i++) {
        if (own->runs[i]->rehearsal)
            continue;
        steps = fmin(steps, own->runs[i]->steps); /* not NaN */
        times = fmin(times, own->runs[i]->noise_times);
    }
    note_least(notes, steps, STEPS_LEAST, "too short, fewer than 50 optimizer steps: ", "", p);
    note_least(notes, times, NOISE_TIMES_LEAST,
               "too short, less than 20 times what clock and barrier are off by: ", " times", p);
}

static void note_chosen(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);

        if (e->shown && !e->state && e->result->chosen)
            add_note(notes, p, "the newest of several good runs of the same cell", "", "");
    }
}

static void note_added(struct notes *notes, const struct hg_configuration *c, struct hg_point *p)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct hg_report_entry *e = hg_builder_entry(notes->b, c, i);

        if (e->shown && e->result->added)
            add_note(notes, p, "not in the matrix: added as a baseline", "", "");
    }
}

/* ---- Comparability ---- */

/* Two places that are compared. */
struct pair {
    struct notes *notes;
    struct hg_point *p;
    const char *whom; /* "A" */
    bool same_hardware, amounts;
    struct hg_buf silent[2]; /* what only the other side says of itself; what only this side says */
};

/* What changes the speed, and is often what a table is about: no lie where the baseline names it. */
static bool is_studied(const struct hg_report *r, const char *key)
{
    static const char *const keys[] = { "batch_size", "compile", "optimizer",
                                        "gradient_accumulation_steps" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return json_object_get(r->baseline, key);
    return false;
}

static bool is_on_purpose(const struct pair *pair, const char *key)
{
    const struct hg_builder *b = pair->notes->b;

    return (pair->p->weak && (hg_work_is_key(b->r, key) || strcmp(key, "global_batch") == 0)) ||
           (b->options->against_first && strcmp(key, "revision") == 0) || is_studied(b->r, key);
}

static void list_silent(struct pair *pair, const struct hg_difference *d)
{
    struct hg_buf *list = &pair->silent[d->mine != NULL];

    if (!lists_value(hg_buf_str(list), d->key))
        hg_buf_printf(list, "%s%s", list->len ? ", " : "", d->key);
}

static void note_input(struct pair *pair, const struct hg_difference *d, const char *mine,
                       const char *tail)
{
    char *head = hg_str_printf("differs from %s: %s ", pair->whom, d->key);

    pair->amounts = pair->amounts || hg_work_is_key(pair->notes->b->r, d->key);
    if (d->mine && d->theirs)
        add_reason(pair->notes, pair->p, head, mine, tail);
    else
        list_silent(pair, d);
    pair->p->unlike = pair->p->unlike || strcmp(d->key, "global_batch") != 0;
    free(head);
}

static void note_difference(void *context, const struct hg_difference *d)
{
    struct pair *pair = context;
    struct hg_buf mine = HG_BUF_INIT, theirs = HG_BUF_INIT;
    char *head = NULL, *tail;

    hg_differences_value(d->mine, &mine);
    hg_differences_value(d->theirs, &theirs);
    tail = hg_str_printf(" (%s %s)", strcmp(pair->whom, "A") == 0 ? "A" : "baseline",
                         hg_buf_str(&theirs));
    if (d->kind == HG_DIFFERENCE_INPUT && !is_on_purpose(pair, d->key))
        note_input(pair, d, hg_buf_str(&mine), tail);
    else if (d->kind == HG_DIFFERENCE_ENV && pair->same_hardware)
        pair->p->off_law = true,
        head = hg_str_printf("ran on other nodes or software: %s ", d->key);
    else if (d->kind == HG_DIFFERENCE_END && !d->mine)
        list_silent(pair, d);
    else if (d->kind == HG_DIFFERENCE_END && !pair->p->weak)
        head = hg_str_printf("%s is far from that of %s: ", d->key, pair->whom);
    if (head)
        add_reason(pair->notes, pair->p, head, hg_buf_str(&mine), tail);
    free(head);
    free(tail);
    hg_buf_done(&mine);
    hg_buf_done(&theirs);
}

/* Runs that say nothing of what others say are not comparable. */
static void note_silent(struct pair *pair)
{
    const char *whom = pair->whom;
    char *heads[2] = { hg_str_printf("does not say, as %s does: ", whom),
                       hg_str_printf("%s does not say: ", whom) };

    for (size_t i = 0; i < 2; i++) {
        char *head = hg_str_printf("%s%s", heads[i], hg_buf_str(&pair->silent[i]));

        if (pair->silent[i].len)
            add_reason(pair->notes, pair->p, head, "", "");
        free(head);
        free(heads[i]);
        hg_buf_done(&pair->silent[i]);
    }
}

static void note_samples(struct pair *pair, const struct hg_side *own, const struct hg_side *base)
{
    const struct hg_report *r = pair->notes->b->r;
    double excess = hg_differences_samples(r, own, base), p = pair->p->p;
    bool all = p > 1 && fabs(log(excess / p)) < log(1.1);
    char *head;
    struct hg_buf times = HG_BUF_INIT;

    if (isnan(excess) || (pair->amounts && !pair->p->weak))
        return;
    hg_number_append(&r->style, excess, 2, &times);
    head = hg_str_printf("counts other samples than %s for the same work: ", pair->whom);
    add_reason(pair->notes, pair->p, head, hg_buf_str(&times),
               all ? " times; did every rank train everything?" : " times");
    free(head);
    hg_buf_done(&times);
}

/* Number of the value of "hardware"; 0 where the cells do not say. */
static uint32_t hardware_of(const struct hg_builder *b, const struct hg_configuration *c)
{
    size_t key = hg_frame_find_key(&b->r->frame, "hardware");

    return key == HG_MAP_NONE ? 0 : hg_frame_row(&b->r->frame, c->entry)[key];
}

/* The results of a configuration that count; free its runs. */
static struct hg_side side_of(const struct hg_builder *b, const struct hg_configuration *c)
{
    struct hg_side side = { hg_alloc((c->n_entries + 1) * sizeof *side.runs), 0 };

    for (size_t i = 0; i < c->n_entries; i++)
        if (!hg_builder_entry(b, c, i)->state)
            side.runs[side.n++] = hg_builder_entry(b, c, i)->result;
    return side;
}

static void note_other_env(void *context, const struct hg_difference *d)
{
    const struct pair *pair = context;
    struct hg_buf mine = HG_BUF_INIT, theirs = HG_BUF_INIT;
    char *head = hg_str_printf("ran on other nodes or software: %s ", d->key), *tail;

    hg_differences_value(d->mine, &mine);
    hg_differences_value(d->theirs, &theirs);
    tail = hg_str_printf(" (first place %s)", hg_buf_str(&theirs));
    if (d->kind == HG_DIFFERENCE_ENV && d->mine && d->theirs)
        add_note(pair->notes, pair->p, head, hg_buf_str(&mine), tail);
    free(head);
    free(tail);
    hg_buf_done(&mine);
    hg_buf_done(&theirs);
}

/* Without baselines: compare with the first place on the same hardware. */
static void note_others(struct notes *notes, const struct hg_table *t,
                        const struct hg_configuration *c, const struct hg_side *own,
                        struct hg_point *p)
{
    const struct hg_builder *b = notes->b;

    if (b->wants_speedup || !own->n)
        return;
    for (const struct hg_point *q = t->points; q < p; q++) {
        const struct hg_configuration *other = q->n ? &b->configurations.items[q->config] : NULL;
        struct hg_side base;

        if (!other || hardware_of(b, other) != hardware_of(b, c))
            continue;
        base = side_of(b, other);
        hg_differences_each(b->r, own, &base, note_other_env,
                            &(struct pair){ .notes = notes, .p = p });
        free(base.runs);
        return;
    }
}

/* ---- The runs of a place ---- */

static void note_mixed(void *context, const struct hg_difference *d)
{
    const struct pair *pair = context;

    add_reason(pair->notes, pair->p, "its runs differ in ", d->key, "");
    pair->p->unlike = pair->p->unlike || d->kind == HG_DIFFERENCE_INPUT;
    pair->p->off_law = true;
}

static void note_base_mixed(void *context, const struct hg_difference *d)
{
    const struct pair *pair = context;

    add_reason(pair->notes, pair->p, "the runs of its baseline differ in ", d->key, "");
    pair->p->off_law = true;
}

/* What results say against their own figures. */
static void note_doubts(struct notes *notes, const struct hg_side *side, const char *whom,
                        struct hg_point *p)
{
    const char *what;
    json_t *value;

    for (size_t i = 0; i < side->n; i++)
        json_object_foreach((json_t *)side->runs[i]->doubts, what, value) {
            char *head = hg_str_printf("%s%s%s", whom, *whom ? ": " : "", what);

            add_reason(notes, p, head, json_string_value(value), "");
            p->off_law = true;
            free(head);
        }
}

/* ---- Speedup and efficiency ---- */

/* A thousand times slower (or a million) than by an efficiency of up to 1.25, and not with so many devices that it might be. */
static const char *wrong_unit(const struct hg_report *r, const struct hg_point *p)
{
    static const struct {
        double times;
        const char *note;
    } units[] = { { 1e3, "a thousand times as long as expected: milliseconds?" },
                  { 1e6, "a million times as long as expected: microseconds?" },
                  { 1e9, "a billion times as long as expected: nanoseconds?" } };

    for (size_t i = 0; i < sizeof units / sizeof *units && r->kind == HG_METRIC_TIME; i++) {
        double speedup = units[i].times * p->speedup.value;

        if (speedup >= 0.5 && speedup <= (p->p >= 1 ? fmin(1.25 * p->p, 50) : 1.25))
            return units[i].note;
    }
    return NULL;
}

static void note_hardware(struct notes *notes, const struct hg_configuration *c,
                          const struct hg_configuration *base, struct hg_point *p)
{
    const struct hg_frame *f = &notes->b->r->frame;
    size_t key = hg_frame_find_key(f, "hardware");
    const char *unit = wrong_unit(notes->b->r, p);
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
    if (own->on_cores == other->on_cores && unit)
        add_note(notes, p, unit, "", "");
}

/* A difference in work that no other note explains yet. True: the work is in proportion. */
static bool note_work(struct notes *notes, struct hg_point *p)
{
    struct hg_buf text = HG_BUF_INIT;
    bool neither = false;

    if (p->weak) {
        add_note(
            notes, p,
            notes->b->r->kind == HG_METRIC_TIME
                ? "weak scaling: the work grows with the devices, the speedup is work x T_base/T"
                : "weak scaling: the work grows with the devices",
            "", "");
    } else if (!p->unlike && hg_scaling_kind_of(p->work, p->p) == HG_SCALING_NEITHER) {
        hg_number_append(&notes->b->r->style, p->work, 2, &text);
        add_reason(notes, p, "work differs from that of its baseline: ", hg_buf_str(&text),
                   " times");
        p->unlike = neither = true;
    }
    hg_buf_done(&text);
    return !neither;
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

/* other hardware: a difference in what they ran on is expected. */
static void note_comparison(struct notes *notes, const struct hg_side *own,
                            const struct hg_side *base, bool same_hardware, struct hg_point *p)
{
    struct pair pair = { notes, p, notes->b->options->against_first ? "A" : "its baseline",
                         .same_hardware = same_hardware, .silent = { HG_BUF_INIT, HG_BUF_INIT } };

    hg_differences_each(notes->b->r, own, base, note_difference, &pair);
    note_silent(&pair);
    if (note_work(notes, p))
        note_samples(&pair, own, base);
    hg_differences_within(notes->b->r, base, note_base_mixed, &pair);
    note_doubts(notes, base, pair.whom, p);
    note_flags(notes, own, base, pair.whom, p);
}

static void note_speedup(struct notes *notes, const struct hg_table *t,
                         const struct hg_configuration *c, const struct hg_side *own,
                         struct hg_point *p)
{
    struct hg_builder *b = notes->b;
    const struct hg_configuration *base =
        c->base == HG_MAP_NONE ? NULL : &b->configurations.items[c->base];
    struct hg_side other;

    if (!b->wants_speedup || b->r->kind == HG_METRIC_OTHER || p->n == 0)
        return;
    if (!base ||
        !hg_builder_first(b, base)) { /* once for the whole table if it concerns all of it */
        if (t->has_speedup)
            add_note(notes, p,
                     base ? "no speedup: its baseline has no complete result"
                          : "no speedup: its baseline is not among the results",
                     "", "");
        return;
    }
    if (base == c)
        return;
    other = side_of(b, base);
    note_hardware(notes, c, base, p);
    note_comparison(notes, own, &other, hardware_of(b, c) == hardware_of(b, base), p);
    if (hg_copies_between(b, c, base))
        add_reason(notes, p, "agrees with its baseline to the last digit: copied?", "", "");
    note_efficiency(notes, p);
    free(other.runs);
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
        text = p->n == 1 ? hg_str_printf("mean of %zu runs, as published", p->published)
                         : hg_str_printf("%zu results of %zu runs, means as published", p->n,
                                         p->published);
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

/* Times or rates without any spread. A loss may be the same in all runs. */
static bool is_rounded(const struct hg_report *r, const struct hg_estimate *value)
{
    return r->kind != HG_METRIC_OTHER && value->has_interval &&
           value->high - value->low <= 1e-9 * value->value;
}

static void note_spread(struct notes *notes, const struct hg_configuration *c, struct hg_point *p,
                        struct hg_spread *spread)
{
    struct place place = { notes, p };
    const struct hg_estimate *s = &p->speedup;

    hg_spread_place(notes->b, c, spread, take_sentence, &place);
    if (is_rounded(notes->b->r, &p->value))
        add_note(notes, p, "its runs are equal: rounded? ± does not show by how much", "", "");
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

        if (note->n_values > VALUES_MAX)
            hg_buf_printf(&note->values, " and %zu more", note->n_values - VALUES_MAX);
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

static void note_place(struct notes *notes, const struct hg_table *t,
                       const struct hg_configuration *c, bool copied, struct hg_spread *spread,
                       struct hg_point *p)
{
    struct hg_side own = side_of(notes->b, c);

    note_completeness(notes, c, p);
    note_adaptive(notes, c, p);
    note_added(notes, c, p);
    note_chosen(notes, c, p);
    note_flags(notes, &own, NULL, "", p);
    note_short(notes, &own, p);
    hg_differences_within(notes->b->r, &own, note_mixed, &(struct pair){ .notes = notes, .p = p });
    if (hg_copies_within(notes->b, c))
        add_reason(notes, p, "two of its runs agree to the last digit: copied?", "", "");
    if (copied)
        add_reason(notes, p, "agrees with another place to the last digit: copied?", "", "");
    note_doubts(notes, &own, "", p);
    note_set(notes, c, p);
    note_spread(notes, c, p, spread);
    note_speedup(notes, t, c, &own, p);
    note_others(notes, t, c, &own, p);
    note_code(notes, t, c, p);
    note_removed(notes, c, p);
    notes->b->configurations.items[p->config].off_law = p->off_law || p->unlike;
    if (notes->b->options->strict && p->differs)
        refuse(p);
    free(own.runs);
}

void hg_notes_write(struct hg_builder *b, struct hg_table *t)
{
    struct notes notes = { .b = b };
    struct hg_spread spread = { .values = 0 };
    bool *copied = hg_copies_of_places(b, t);

    t->no_speedup = why_no_speedup(b, t);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        struct hg_point *p = &t->points[i];
        const struct hg_configuration *c = hg_builder_configuration(b, p);

        if (!c)
            continue;
        note_place(&notes, t, c, copied[i], &spread, p);
    }
    free(copied);
    hg_spread_remark(b->r, &spread, t);
    count_refused(b->r, t);
    write_notes(&notes, t);
}
