/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/entries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "matrix/names.h"
#include "matrix/select.h"
#include "analysis/absent.h"
#include "analysis/metric.h"
#include "base/alloc.h"

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
static void relabel(struct hg_report *r, bool again,
                    void (*make)(const struct hg_report *r, size_t set, struct hg_buf *out))
{
    bool *wanted = hg_alloc_zeroed(r->n_sets, sizeof *wanted);

    for (size_t i = 0; i < r->n_sets; i++)
        wanted[i] = !again || is_shared(r, i);
    for (size_t i = 0; i < r->n_sets; i++) {
        struct hg_buf label = HG_BUF_INIT;

        if (!wanted[i])
            continue;
        make(r, i, &label);
        free(r->labels[i]);
        r->labels[i] = hg_buf_detach(&label);
    }
    free(wanted);
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

/* Sets with the same name are labelled by their files, and equal files by numbers: no two sets share a label. */
static void label_sets(struct hg_report *r)
{
    r->labels = hg_alloc_zeroed(r->n_sets, sizeof *r->labels);
    relabel(r, false, label_by_name);
    relabel(r, true, label_by_file);
    relabel(r, true, label_by_number);
}

static void make_title(struct hg_report *r)
{
    struct hg_buf title = HG_BUF_INIT;

    for (size_t i = 0; i < r->n_sets; i++)
        hg_buf_printf(&title, "%s%s", i ? ", " : "", r->labels[i]);
    r->title = hg_buf_detach(&title);
}

/* ---- Entries ---- */

/* The used result of every cell; added baselines first, so that they head the tables. */
static void list_entries(struct hg_report *r)
{
    size_t n = 0;

    for (size_t s = 0; s < r->n_sets; s++)
        n += r->sets[s].n;
    r->entries = hg_alloc_zeroed(n + 1, sizeof *r->entries);
    for (int added = 1; added >= 0; added--)
        for (size_t s = 0; s < r->n_sets; s++)
            for (size_t i = 0; i < r->sets[s].n; i++) {
                const struct hg_result *result = &r->sets[s].items[i];

                if (result->used && result->added == (added == 1))
                    r->entries[r->n_entries++] =
                        (struct hg_report_entry){ .result = result, .set = s };
            }
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

static void build_frame(struct hg_report *r)
{
    const json_t **cells = hg_alloc((r->n_entries + 1) * sizeof *cells);
    const char *extra = r->source_key = source_key(r);

    for (size_t i = 0; i < r->n_entries; i++)
        cells[i] = r->entries[i].result->cell;
    hg_frame_build(&r->frame, cells, r->n_entries, extra);
    r->names = hg_names_of_frame(&r->frame, extra);
    for (size_t s = 0; extra && s < r->n_sets; s++) {
        json_t *source = hg_json_text(r->labels[s]);
        size_t key = hg_frame_find_key(&r->frame, extra), value = hg_frame_value(&r->frame, source);

        json_decref(source);
        for (size_t i = 0; i < r->n_entries; i++)
            if (r->entries[i].set == s)
                hg_frame_row(&r->frame, i)[key] = (uint32_t)value;
    }
    free(cells);
}

/* A failed run does not name its device: it belongs to the others on its hardware. */
static void settle_rehearsals(struct hg_report *r)
{
    size_t hardware = hg_frame_find_key(&r->frame, "hardware");
    bool *seen = hg_alloc_zeroed(r->n_sets * r->frame.values.n + 1, sizeof *seen);

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
}

/* ---- Where ---- */

/* Does some cell have each key that the selector names? */
static int check_keys(struct hg_builder *b, const struct hg_selector *selector)
{
    const char *key;

    for (size_t i = 0; (key = hg_selector_key(selector, i)); i++)
        if (strcmp(key, "id") != 0 && hg_builder_key(b, "where", key, NULL, NULL) == HG_MAP_NONE)
            return -1;
    return 0;
}

/* Mark the entries that fit; how many in `shown`. */
static int mark_fitting(struct hg_builder *b, const struct hg_selector *selector, size_t *shown)
{
    struct hg_err err = HG_ERR_INIT;

    *shown = 0;
    for (size_t i = 0; i < b->r->n_entries; i++) {
        struct hg_report_entry *e = &b->r->entries[i];
        int match = hg_selector_match(selector, e->result->id, e->result->cell, &err);

        if (match < 0)
            break;
        e->shown = match == 1 && !e->replaced;
        *shown += e->shown;
    }
    return hg_errs_add(b->errs, &err);
}

/* No cell matches: perhaps because none has a value that is asked for. */
static void refuse(struct hg_builder *b, const struct hg_selector *selector, const char *where)
{
    struct hg_err *err = hg_errs_next(b->errs), why = HG_ERR_INIT;

    for (size_t i = 0; i < b->r->n_entries; i++)
        hg_selector_see(selector, b->r->entries[i].result->cell);
    hg_selector_check_seen(selector, &why);
    hg_err_set(err, HG_E_INPUT, "where: no cell matches \"%s\"%s%s", where, why.code ? ": " : "",
               why.text);
    if (*why.hint)
        hg_err_hint(err, "%s", why.hint);
}

/* The keys of a set's own `where` were checked when its matrix was read: a run may have no cell with one of them yet. They are
 * only reported if no cell matches. */
static int mark_shown(struct hg_builder *b)
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
        refuse(b, selector, where ? where : "");
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

/* chosen: it was not requested, it is the usual metric. */
static int unknown_metric(struct hg_builder *b, const char *metric, bool chosen)
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
                   "no result has \"train_s\" or \"wall_s\": name a metric with --metric");
    else
        hg_err_set(err, HG_E_INPUT, "metric: no result has \"%s\"", metric);
    if (n)
        hg_text_suggest(err, metric, names, n);
    json_decref(entry);
    return -1;
}

static int settle_metric(struct hg_builder *b)
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
        metric = hg_metric_usual(count_metric, r);
    have = count_metric(r, metric, &ok);
    if (ok && !have)
        return unknown_metric(b, metric, chosen);
    hg_metric_direct(r, metric, better, b->options->against_first);
    r->metric = hg_strdup(metric);
    return 0;
}

/* ---- What counts ---- */

static void measure_entries(struct hg_report *r)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        struct hg_report_entry *e = &r->entries[i];

        e->value = hg_result_number(e->result, r->metric);
        e->state = e->replaced ? "replaced" : hg_metric_state(r, e->result, e->value);
        if (e->shown)
            hg_metric_count(r, e->state);
    }
    hg_metric_sort_states(r);
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

int hg_entries_list(struct hg_builder *b)
{
    struct hg_report *r = b->r;

    settle_currency(r);
    label_sets(r);
    make_title(r);
    list_entries(r);
    build_frame(r);
    settle_rehearsals(r);
    hg_absent_mark(r);
    if (mark_shown(b) < 0 || settle_metric(b) < 0)
        return -1;
    measure_entries(r);
    return 0;
}

/* The standard deviation of the metric that was published with a mean; NaN: none. A number is of the set's own metric. */
static double deviation(const struct hg_report *r, const struct hg_report_entry *e)
{
    const char *own = r->sets[e->set].metric;
    json_t *sd = hg_result_get(e->result, "sd");
    const json_t *value = json_is_object(sd) ? json_object_get(sd, r->metric)
                          : strcmp(own ? own : "train_s", r->metric) == 0 ? sd
                                                                          : NULL;
    double v = json_is_number(value) ? json_number_value(value) : NAN;

    json_decref(sd);
    return v;
}

struct hg_moments hg_entry_moments(const struct hg_report *r, const struct hg_report_entry *e)
{
    return hg_moments_of_mean(e->value, deviation(r, e), e->result->runs);
}
