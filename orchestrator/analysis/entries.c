/* SPDX-License-Identifier: Apache-2.0 */
/* First step of a report: which results there are, which of them are shown, what they measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/select.h"
#include "analysis/build.h"

/* ---- Names ---- */

static void set_label(const struct hg_results *set, struct hg_buf *out)
{
    const char *slash = set->doc.file ? strrchr(set->doc.file, '/') : NULL;

    hg_buf_puts(out, *set->name      ? set->name
                     : slash         ? slash + 1
                     : set->doc.file ? set->doc.file
                                     : "results");
    if (*set->run)
        hg_buf_printf(out, "/%s", set->run);
}

static bool is_shared(const struct hg_report *r, size_t set)
{
    for (size_t i = 0; i < r->n_sets; i++)
        if (i != set && r->labels[i] && strcmp(r->labels[i], r->labels[set]) == 0)
            return true;
    return false;
}

/* Give every set a label by `make`; those whose label is shared already if `again`. */
static int relabel(struct hg_report *r, bool again,
                   void (*make)(const struct hg_report *r, size_t set, struct hg_buf *out))
{
    bool *wanted = calloc(r->n_sets, sizeof *wanted);
    int rc = wanted ? 0 : -1;

    for (size_t i = 0; i < r->n_sets && rc == 0; i++)
        wanted[i] = !again || is_shared(r, i);
    for (size_t i = 0; i < r->n_sets && rc == 0; i++) {
        struct hg_buf label = HG_BUF_INIT;

        if (!wanted[i])
            continue;
        make(r, i, &label);
        free(r->labels[i]);
        r->labels[i] = hg_buf_detach(&label);
        rc = r->labels[i] ? 0 : -1;
    }
    free(wanted);
    return rc;
}

static void label_by_name(const struct hg_report *r, size_t set, struct hg_buf *out)
{
    set_label(&r->sets[set], out);
}

static void label_by_file(const struct hg_report *r, size_t set, struct hg_buf *out)
{
    hg_buf_puts(out, r->sets[set].doc.file ? r->sets[set].doc.file : r->labels[set]);
}

static void label_by_number(const struct hg_report *r, size_t set, struct hg_buf *out)
{
    hg_buf_printf(out, "%s #%zu", r->labels[set], set + 1);
}

/* Sets that are called the same are told apart by their files, and these by numbers: two sets are
 * never one. */
static int label_sets(struct hg_report *r)
{
    r->labels = calloc(r->n_sets, sizeof *r->labels);
    return r->labels && relabel(r, false, label_by_name) == 0 &&
                   relabel(r, true, label_by_file) == 0 && relabel(r, true, label_by_number) == 0
               ? 0
               : -1;
}

static int make_title(struct hg_report *r)
{
    struct hg_buf title = HG_BUF_INIT;

    for (size_t i = 0; i < r->n_sets; i++)
        hg_buf_printf(&title, "%s%s", i ? ", " : "", r->labels[i]);
    r->title = hg_buf_detach(&title);
    return r->title ? 0 : -1;
}

/* ---- Entries ---- */

/* The used result of every cell; added baselines first, so that they head the tables. */
static int list_entries(struct hg_report *r)
{
    size_t n = 0;

    for (size_t s = 0; s < r->n_sets; s++)
        n += r->sets[s].n;
    r->entries = calloc(n + 1, sizeof *r->entries);
    if (!r->entries)
        return -1;
    for (int added = 1; added >= 0; added--)
        for (size_t s = 0; s < r->n_sets; s++)
            for (size_t i = 0; i < r->sets[s].n; i++) {
                const struct hg_result *result = &r->sets[s].items[i];

                if (result->used && result->added == (added == 1))
                    r->entries[r->n_entries++] =
                        (struct hg_report_entry){ .result = result, .set = s };
            }
    return 0;
}

/* A name for the key that tells sets apart, one that no cell has. */
static const char *source_key(const struct hg_report *r)
{
    static const char *const names[] = { "source", "set", "input" };
    size_t i = 0;

    if (r->n_sets < 2)
        return NULL;
    for (size_t e = 0; e < r->n_entries && i < 2; e++)
        if (json_object_get(r->entries[e].result->cell, names[i])) {
            i++;
            e = 0;
        }
    return names[i];
}

static int build_frame(struct hg_report *r)
{
    const json_t **cells = malloc((r->n_entries + 1) * sizeof *cells);
    const char *extra = r->source_key = source_key(r);
    int rc = -1;

    for (size_t i = 0; cells && i < r->n_entries; i++)
        cells[i] = r->entries[i].result->cell;
    if (!cells || hg_frame_build(&r->frame, cells, r->n_entries, extra) < 0)
        goto out;
    for (size_t s = 0; extra && s < r->n_sets; s++) {
        json_t *source = hg_json_text(r->labels[s]);
        size_t key = hg_frame_find_key(&r->frame, extra),
               value = source ? hg_frame_value(&r->frame, source) : HG_MAP_NONE;

        json_decref(source);
        if (value == HG_MAP_NONE)
            goto out;
        for (size_t i = 0; i < r->n_entries; i++)
            if (r->entries[i].set == s)
                hg_frame_row(&r->frame, i)[key] = (uint32_t)value;
    }
    rc = 0;
out:
    free(cells);
    return rc;
}

/* A run that failed does not say on what it computed: it belongs to the others on its hardware. */
static int settle_rehearsals(struct hg_report *r)
{
    size_t hardware = hg_frame_find_key(&r->frame, "hardware");
    bool *seen = calloc(r->n_sets * r->frame.values.n + 1, sizeof *seen);

    if (!seen)
        return -1;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->n_entries; i++) {
            struct hg_report_entry *e = &r->entries[i];
            size_t kind = hardware == HG_MAP_NONE ? 0 : hg_frame_row(&r->frame, i)[hardware];
            bool *slot = &seen[e->set * r->frame.values.n + kind];

            if (pass == 0)
                *slot = *slot || e->result->rehearsal;
            else
                e->rehearsal = e->result->has_rehearsal ? e->result->rehearsal
                               : e->result->ok          ? false
                                                        : *slot;
        }
    free(seen);
    return 0;
}

/* ---- Where ---- */

/* Does some cell have each key that the selector names? */
static int check_keys(struct hg_build *b, const struct hg_selector *selector)
{
    const char *key;

    for (size_t i = 0; (key = hg_selector_key(selector, i)); i++)
        if (strcmp(key, "id") != 0 && hg_build_key(b, "where", key, NULL, NULL) == HG_MAP_NONE)
            return -1;
    return 0;
}

/* Mark the entries that fit; how many in `shown`. */
static int mark_fitting(struct hg_build *b, const struct hg_selector *selector, size_t *shown)
{
    struct hg_err err = HG_ERR_INIT;

    *shown = 0;
    for (size_t i = 0; i < b->r->n_entries; i++) {
        struct hg_report_entry *e = &b->r->entries[i];
        int match = hg_selector_match(selector, e->result->id, e->result->cell, &err);

        if (match < 0)
            break;
        e->shown = match == 1;
        *shown += e->shown;
    }
    return hg_errs_add(b->errs, &err);
}

/* The keys of a set's own `where` were looked at when its matrix was read: a run may have no cell
 * with one of them yet. They are blamed only where nothing fits. */
static int mark_shown(struct hg_build *b)
{
    const char *where = b->options->where;
    struct hg_selector *selector = NULL;
    struct hg_err err = HG_ERR_INIT;
    size_t shown;
    int rc = -1;

    for (size_t s = 0; s < b->r->n_sets && !where; s++)
        where = b->r->sets[s].where;
    if (where && !(selector = hg_selector_parse(where, &err))) {
        hg_err_wrap(&err, "where");
        return hg_errs_add(b->errs, &err);
    }
    if (b->options->where && check_keys(b, selector) < 0)
        goto out;
    if (mark_fitting(b, selector, &shown) < 0 || (shown == 0 && check_keys(b, selector) < 0))
        goto out;
    if (shown == 0)
        hg_err_set(hg_errs_next(b->errs), HG_E_INPUT, "where: no cell matches \"%s\"",
                   where ? where : "");
    rc = shown ? 0 : -1;
out:
    hg_selector_free(selector);
    return rc;
}

/* ---- Metric ---- */

static size_t count_metric(const void *context, const char *metric, size_t *ok)
{
    const struct hg_report *r = context;
    size_t have = 0;

    *ok = 0;
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        if (!e->shown || !e->result->ok)
            continue;
        ++*ok;
        have += !isnan(hg_result_number(e->result, metric));
    }
    return have;
}

const char *hg_build_usual_metric(size_t (*count)(const void *context, const char *metric,
                                                  size_t *ok),
                                  const void *context)
{
    static const char *const others[] = { "samples_per_s", "steps_per_s", "real_s" };
    size_t ok, train = count(context, "train_s", &ok), wall = count(context, "wall_s", &ok);

    if (train == ok || wall < train)
        return "train_s";
    if (wall > 0)
        return "wall_s";
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (count(context, others[i], &ok))
            return others[i];
    return "train_s";
}

/* chosen: nobody asked for it, it is only what is usual. */
static int unknown_metric(struct hg_build *b, const char *metric, bool chosen)
{
    const char *names[64];
    size_t n = 0;
    struct hg_err *err = hg_errs_next(b->errs);
    json_t *entry = NULL, *value;
    const char *name;

    for (size_t i = 0; i < b->r->n_entries && n == 0; i++) {
        if (!b->r->entries[i].result->ok)
            continue;
        json_decref(entry);
        entry = hg_result_entry(b->r->entries[i].result);
        json_object_foreach(entry, name, value) {
            if (n < sizeof names / sizeof *names && json_is_number(value))
                names[n++] = name;
        }
    }
    if (chosen)
        hg_err_set(err, HG_E_INPUT,
                   "no result has \"train_s\" or \"wall_s\": say with --metric "
                   "what to tabulate");
    else
        hg_err_set(err, HG_E_INPUT, "metric: no result has \"%s\"", metric);
    if (n)
        hg_text_suggest(err, metric, names, n);
    json_decref(entry);
    return -1;
}

void hg_build_direct(struct hg_report *r, const char *metric, const char *better,
                     bool against_first)
{
    int direction;

    if (better)
        r->kind = strcmp(better, "higher") == 0 ? HG_METRIC_RATE : HG_METRIC_TIME;
    else
        r->kind = hg_metric_is_rate(metric)   ? HG_METRIC_RATE
                  : hg_metric_is_time(metric) ? HG_METRIC_TIME
                                              : HG_METRIC_OTHER;
    direction = r->kind == HG_METRIC_RATE   ? 1
                : r->kind == HG_METRIC_TIME ? -1
                                            : hg_metric_direction(metric);
    r->has_direction = direction != 0;
    if (against_first && direction) /* its ratio to another run's is wanted */
        r->kind = direction > 0 ? HG_METRIC_RATE : HG_METRIC_TIME;
    r->higher_is_better = direction > 0;
}

static int settle_metric(struct hg_build *b)
{
    struct hg_report *r = b->r;
    const char *metric = b->options->metric, *better = b->options->better;
    size_t have, ok;
    bool chosen;

    for (size_t s = 0; s < r->n_sets; s++) {
        metric = metric ? metric : r->sets[s].metric;
        better = better ? better : r->sets[s].better;
    }
    if ((chosen = !metric))
        metric = hg_build_usual_metric(count_metric, r);
    have = count_metric(r, metric, &ok);
    if (ok && !have)
        return unknown_metric(b, metric, chosen);
    hg_build_direct(r, metric, better, b->options->against_first);
    r->metric = strdup(metric);
    return r->metric ? 0 : hg_err_oom(hg_errs_next(b->errs));
}

/* ---- What counts ---- */

const char *hg_build_state(const struct hg_report *r, const struct hg_result *result, double value)
{
    if (!result->ok)
        return strcmp(result->status, "ok") == 0 ? "invalid" : result->status;
    if (isnan(value))
        return "not measured";
    if (r->kind != HG_METRIC_OTHER && !(value > 0))
        return value < 0 ? "below zero" : "zero";
    return NULL;
}

static int compare_states(const void *pa, const void *pb)
{
    const struct hg_report_state *a = pa, *b = pb;

    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->word, b->word);
}

static int count_state(struct hg_report *r, const char *word)
{
    struct hg_report_state *s = NULL;

    for (size_t i = 0; i < r->states.n && !s; i++)
        if (strcmp(r->states.items[i].word, word) == 0)
            s = &r->states.items[i];
    if (!s) {
        s = HG_VEC_PUSH(&r->states);
        if (!s)
            return -1;
        *s = (struct hg_report_state){ .word = word };
    }
    s->n++;
    return 0;
}

int hg_build_count(struct hg_report *r, const char *state)
{
    r->cells++;
    r->complete += !state;
    return state ? count_state(r, state) : 0;
}

void hg_build_sort_states(struct hg_report *r)
{
    if (r->states.n)
        qsort(r->states.items, r->states.n, sizeof *r->states.items, compare_states);
}

static int measure_entries(struct hg_report *r)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        struct hg_report_entry *e = &r->entries[i];

        e->value = hg_result_number(e->result, r->metric);
        e->state = hg_build_state(r, e->result, e->value);
        if (e->shown && hg_build_count(r, e->state) < 0)
            return -1;
    }
    hg_build_sort_states(r);
    return 0;
}

/* One currency, if all sets with prices have the same. */
static void settle_currency(struct hg_report *r)
{
    for (size_t s = 0; s < r->n_sets; s++) {
        const struct hg_results *set = &r->sets[s];

        if (!set->prices)
            continue;
        if (r->currency && strcmp(r->currency, set->currency) != 0) {
            r->currency = NULL;
            return;
        }
        r->currency = set->currency;
    }
}

int hg_build_entries(struct hg_build *b)
{
    struct hg_report *r = b->r;

    settle_currency(r);

    if (label_sets(r) < 0 || make_title(r) < 0 || list_entries(r) < 0 || build_frame(r) < 0 ||
        settle_rehearsals(r) < 0)
        return hg_err_oom(hg_errs_next(b->errs));
    if (mark_shown(b) < 0 || settle_metric(b) < 0)
        return -1;
    if (hg_build_work_keys(b) < 0)
        return -1;
    return measure_entries(r) < 0 ? hg_err_oom(hg_errs_next(b->errs)) : 0;
}
