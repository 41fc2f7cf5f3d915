/* SPDX-License-Identifier: Apache-2.0 */
#include "render/many.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/vec.h"
#include "matrix/select.h"
#include "analysis/figures.h"
#include "analysis/metric.h"
#include "render/digest.h"
#include "render/sentences.h"
#include "typeset/plain.h"

#define LINES_IN_MEMORY ((size_t)8 << 20) /* bytes */
#define METRICS 5

/* What hg_metric_usual may choose when no metric is requested. */
static const char *const usual[METRICS] = { "train_s", "wall_s", "samples_per_s", "steps_per_s",
                                            "real_s" };

/* More places than this are a digest. */
#define PLACES_MAX 1000

/* What has to be known of a result until the last one is read. */
struct fact {
    struct hg_hash128 cell, id; /* of what makes them; id: only in sets that are read strictly */
    uint64_t attempt_hash;      /* there, too */
    long attempt[2];
    uint32_t status, shape; /* words, names of the cell's members */
    uint32_t first, best;   /* as in hg_result */
    bool ok, added, has_id, shown, used;
};

/* Texts that come again, as numbers. They may have NULs in them, and end with one. */
struct words {
    struct hg_map index;
    struct {
        char *text;
        size_t len;
    } * items;
    size_t n, cap;
};

struct hg_many {
    struct hg_results set; /* its head */
    const struct hg_report_options *options;
    struct hg_selector *selector;
    struct hg_lines *lines;   /* NULL: digest */
    struct hg_digest *digest; /* NULL: lines */
    const char *metrics[METRICS];
    size_t n_metrics;
    struct {
        struct fact *items;
        size_t n, cap;
    } facts;
    struct {
        double *items; /* n_metrics of each result */
        size_t n, cap;
    } values;
    struct words statuses, shapes;
    struct hg_buf text;   /* room */
    unsigned char *flags; /* of the lines */
    struct hg_report r;   /* what sentences are made of; it has no entries and no tables */
    double best;
};

void hg_many_free(struct hg_many *m)
{
    struct words *words[2];

    if (!m)
        return;
    words[0] = &m->statuses;
    words[1] = &m->shapes;
    for (int w = 0; w < 2; w++) {
        for (size_t i = 0; i < words[w]->n; i++)
            free(words[w]->items[i].text);
        HG_VEC_DONE(words[w]);
        hg_map_done(&words[w]->index);
    }
    hg_selector_free(m->selector);
    hg_lines_free(m->lines);
    hg_digest_free(m->digest);
    hg_listings_done(&m->r.listings);
    HG_VEC_DONE(&m->facts);
    HG_VEC_DONE(&m->values);
    hg_buf_done(&m->text);
    HG_VEC_DONE(&m->r.states);
    hg_frame_done(&m->r.frame);
    free(m->r.title);
    free(m->r.metric);
    free(m->flags);
    hg_results_done(&m->set);
    free(m);
}

static int settle_wishes(struct hg_many *m)
{
    const char *where = m->options->where ? m->options->where : m->set.where;
    const char *metric = m->options->metric ? m->options->metric : m->set.metric;
    struct hg_err ignored = HG_ERR_INIT;

    if (where && !(m->selector = hg_selector_parse(where, &ignored)))
        return -1;
    /* Of a run these two are not among what is read of a result. */
    if (metric && (strncmp(metric, "cell", 4) == 0 || strncmp(metric, "loss", 4) == 0))
        return -1;
    m->n_metrics = metric ? 1 : METRICS;
    for (size_t i = 0; i < m->n_metrics; i++)
        m->metrics[i] = metric ? metric : usual[i];
    return 0;
}

struct hg_many *hg_many_create(struct hg_json_doc *head, unsigned flags,
                               const struct hg_report_options *options, bool digest)
{
    static const struct hg_report_options none;
    struct hg_many *m = hg_alloc_zeroed(1, sizeof *m);
    struct hg_errs errs = HG_ERRS_INIT;
    int rc = -1;

    m->options = options ? options : &none;
    m->r.style = m->options->style;
    m->best = NAN;
    m->lines = digest ? NULL
                      : hg_lines_create(m->options->json_lines ? NULL : &m->options->style,
                                        LINES_IN_MEMORY);
    m->digest = digest ? hg_digest_create() : NULL;
    if (hg_results_begin(head, flags, &m->set, &errs) == 0)
        rc = settle_wishes(m);
    hg_errs_done(&errs);
    if (rc == 0)
        return m;
    hg_many_free(m);
    return NULL;
}

/* ---- One result ---- */

/* The number of a text. */
static uint32_t number_word(struct words *w, const char *text, size_t len)
{
    size_t at = hg_map_put(&w->index, text, len, w->n);

    if (at == w->n) {
        char *copy = hg_alloc(len + 1);

        memcpy(copy, text, len);
        copy[len] = '\0';
        hg_vec_grow((void **)&w->items, w->n, &w->cap, sizeof *w->items);
        w->items[w->n].text = copy;
        w->items[w->n++].len = len;
    }
    return (uint32_t)at;
}

/* Names of the members, each with its NUL. */
static uint32_t number_shape(struct hg_many *m, const json_t *cell)
{
    const char *name;
    json_t *value;

    hg_buf_clear(&m->text);
    json_object_foreach((json_t *)cell, name, value)
        hg_buf_append(&m->text, name, strlen(name) + 1);
    return number_word(&m->shapes, hg_buf_str(&m->text), m->text.len);
}

/* What makes a cell: all its members but notes and the way of asking, in any order. */
static struct hg_hash128 hash_cell(struct hg_many *m, const json_t *cell)
{
    struct hg_hash128 sum = { 0 };
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)cell, name, value) {
        struct hg_hash128 one;

        if (json_is_null(value) || hg_frame_key_flags(name) & (HG_KEY_NOTE | HG_KEY_LOOSE))
            continue;
        hg_buf_clear(&m->text);
        hg_buf_append(&m->text, name, strlen(name) + 1);
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &m->text);
        one = hg_hash128(m->text.data, m->text.len);
        sum.low += one.low;
        sum.high += one.high;
    }
    return sum;
}

/* A run's cells have ids, and these alone tell them apart. */
static int identify(struct hg_many *m, const struct hg_result *r, struct fact *f)
{
    f->has_id = *r->id != '\0';
    f->id = hg_hash128(r->id, strlen(r->id));
    f->attempt_hash = hg_hash64(r->attempt, strlen(r->attempt));
    hg_result_attempt(r->attempt, f->attempt);
    if (!(m->set.flags & HG_RESULTS_TOLERANT)) {
        f->cell = hash_cell(m, r->cell);
        return 0;
    }
    f->cell = f->id;
    return f->has_id ? 0 : -1;
}

static int add_fact(struct hg_many *m, const struct hg_result *r)
{
    struct hg_err ignored = HG_ERR_INIT;
    struct fact *f = m->facts.n < UINT32_MAX ? HG_VEC_PUSH(&m->facts) : NULL;
    int match;

    if (!f)
        return -1;
    *f = (struct fact){ .ok = r->ok, .added = r->added };
    match = hg_selector_match(m->selector, r->id, r->cell, &ignored);
    f->shown = match > 0;
    for (size_t i = 0; i < m->n_metrics; i++)
        *HG_VEC_PUSH(&m->values) = hg_result_number(r, m->metrics[i]);
    f->status = number_word(&m->statuses, r->status, strlen(r->status));
    f->shape = number_shape(m, r->cell);
    return match < 0 || identify(m, r, f) < 0 ? -1 : 0;
}

int hg_many_add(struct hg_many *m, const json_t *entry, struct hg_err *err)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_result r;
    int rc = hg_results_look(&m->set, entry, &r, &errs);

    if (rc == 0)
        rc = add_fact(m, &r);
    if (rc == 0 && m->digest)
        hg_digest_add(m->digest, r.cell);
    else if (rc == 0)
        rc = hg_lines_add(m->lines, &m->set, &r, entry, err);
    hg_errs_done(&errs);
    return rc;
}

/* ---- All of them ---- */

static bool is_same_hash(const struct hg_hash128 *a, const struct hg_hash128 *b)
{
    return a->high == b->high && a->low == b->low;
}

static bool is_same_cell(const struct fact *a, const struct fact *b)
{
    return is_same_hash(&a->cell, &b->cell);
}

static bool is_same_id(const struct fact *a, const struct fact *b)
{
    return is_same_hash(&a->id, &b->id);
}

static bool is_same_attempt(const struct fact *a, const struct fact *b)
{
    return a->first == b->first && a->attempt_hash == b->attempt_hash;
}

/* Facts by a hash, in a table that is at most half full; 0: nothing, else one more than which. */
struct table {
    uint32_t *slots;
    size_t n; /* a power of two */
};

static void table_clear(struct table *t)
{
    memset(t->slots, 0, t->n * sizeof *t->slots);
}

/* The first fact that is the same as this one, which is put into the table if there was none. */
static uint32_t find_first(struct table *t, const struct fact *facts, uint32_t i, uint64_t hash,
                           bool (*is_same)(const struct fact *a, const struct fact *b))
{
    size_t at = hash & (t->n - 1);

    while (t->slots[at] && !is_same(&facts[t->slots[at] - 1], &facts[i]))
        at = (at + 1) & (t->n - 1);
    if (!t->slots[at])
        t->slots[at] = i + 1;
    return t->slots[at] - 1;
}

static bool counts_more(const struct fact *a, const struct fact *b)
{
    if (a->ok != b->ok)
        return a->ok;
    return a->attempt[0] != b->attempt[0] ? a->attempt[0] > b->attempt[0]
                                          : a->attempt[1] >= b->attempt[1];
}

/* A cell has one id, an id names one cell, and an attempt stands once. */
static bool is_strict(const struct hg_many *m, struct table *t)
{
    const struct fact *facts = m->facts.items;
    bool good = true;

    table_clear(t);
    for (uint32_t i = 0; i < m->facts.n && good; i++)
        good = find_first(t, facts, i, facts[i].id.low, is_same_id) == facts[i].first ||
               !facts[i].has_id;
    table_clear(t);
    for (uint32_t i = 0; i < m->facts.n && good; i++)
        good =
            find_first(t, facts, i, facts[i].attempt_hash + facts[i].first, is_same_attempt) == i;
    return good;
}

/* First and best attempt of every cell. */
static int choose_attempts(struct hg_many *m)
{
    struct fact *facts = m->facts.items;
    struct table t = { .n = 2 };
    bool good;

    while (t.n < 2 * m->facts.n)
        t.n *= 2;
    t.slots = hg_alloc_zeroed(t.n, sizeof *t.slots);
    for (uint32_t i = 0; i < m->facts.n; i++) {
        uint32_t first = find_first(&t, facts, i, facts[i].cell.low, is_same_cell);

        facts[i].first = first;
        if (first == i || counts_more(&facts[i], &facts[facts[first].best]))
            facts[first].best = i;
    }
    for (size_t i = 0; i < m->facts.n; i++)
        facts[i].used = facts[facts[i].first].best == i;
    good = m->set.flags & HG_RESULTS_TOLERANT || is_strict(m, &t);
    free(t.slots);
    return good ? 0 : -1;
}

/* Keys as a frame of all used cells has them, added baselines first. */
static void gather_keys(struct hg_many *m)
{
    json_t *keys = json_object();
    bool *seen = hg_alloc_zeroed(m->shapes.n, sizeof *seen);
    const json_t *cell = keys;

    for (int added = 1; added >= 0; added--)
        for (size_t i = 0; i < m->facts.n; i++) {
            const struct fact *f = &m->facts.items[i];
            const char *name = m->shapes.items[f->shape].text;

            if (!f->used || f->added != (added == 1) || seen[f->shape])
                continue;
            seen[f->shape] = true;
            for (; name < m->shapes.items[f->shape].text + m->shapes.items[f->shape].len;
                 name += strlen(name) + 1)
                json_object_set_new_nocheck(keys, name, json_null());
        }
    hg_frame_build(&m->r.frame, &cell, 1, NULL);
    free(seen);
    json_decref(keys);
}

/* ---- Whether a report of the set would have something to complain of ---- */

static bool are_keys(const struct hg_many *m, char **names)
{
    for (; names && *names; names++)
        if (hg_frame_find_key(&m->r.frame, *names) == HG_MAP_NONE)
            return false;
    return true;
}

static bool is_baseline(const struct hg_many *m)
{
    const char *name;
    json_t *value;

    if (!m->set.baseline || *m->set.run)
        return true;
    json_object_foreach((json_t *)m->set.baseline, name, value)
        if (!json_is_null(value) && name[0] != '_' &&
            hg_frame_find_key(&m->r.frame, name) == HG_MAP_NONE)
            return false;
    return true;
}

/* No key of rows, columns and groups stands twice. */
static bool are_different(const struct hg_many *m)
{
    char **lists[] = { m->set.rows, m->set.columns, m->set.group };
    struct hg_map seen = HG_MAP_INIT;
    bool good = true;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (char **name = lists[i]; name && *name; name++) {
            size_t n = seen.n;

            good = good && hg_map_put(&seen, *name, strlen(*name), n) == n;
        }
    hg_map_done(&seen);
    return good;
}

/* Of an option's `where` every key has to be known, of a set's those of one that fits nothing. */
static bool is_selector(const struct hg_many *m)
{
    const char *key;

    for (size_t i = 0; m->options->where && (key = hg_selector_key(m->selector, i)); i++)
        if (strcmp(key, "id") != 0 && hg_frame_find_key(&m->r.frame, key) == HG_MAP_NONE)
            return false;
    for (size_t i = 0; i < m->facts.n; i++)
        if (m->facts.items[i].used && m->facts.items[i].shown)
            return true;
    return false;
}

static bool is_fine(const struct hg_many *m)
{
    return are_keys(m, m->set.rows) && are_keys(m, m->set.columns) && are_keys(m, m->set.group) &&
           are_keys(m, m->set.work) && are_different(m) && is_baseline(m) && is_selector(m);
}

/* ---- Metric ---- */

static double value_of(const struct hg_many *m, size_t i, const char *metric)
{
    for (size_t k = 0; k < m->n_metrics; k++)
        if (strcmp(m->metrics[k], metric) == 0)
            return m->values.items[i * m->n_metrics + k];
    return NAN;
}

static size_t count_metric(const void *context, const char *metric, size_t *ok)
{
    const struct hg_many *m = context;
    size_t have = 0;

    *ok = 0;
    for (size_t i = 0; i < m->facts.n; i++) {
        const struct fact *f = &m->facts.items[i];

        if (!f->used || !f->shown || !f->ok)
            continue;
        ++*ok;
        have += !isnan(value_of(m, i, metric));
    }
    return have;
}

static int settle_metric(struct hg_many *m)
{
    const char *metric = m->n_metrics == 1 ? m->metrics[0] : hg_metric_usual(count_metric, m);
    size_t ok, have = count_metric(m, metric, &ok);

    if (ok && !have)
        return -1;
    hg_metric_direct(&m->r, metric, m->set.better, false);
    m->r.metric = hg_strdup(metric);
    m->r.skipped = hg_results_count(&m->set, "skipped");
    m->r.removed = hg_results_count(&m->set, "removed");
    m->r.title = hg_str_printf("%s%s%s", m->set.name, *m->set.run ? "/" : "", m->set.run);
    return 0;
}

/* A better value than the best so far, where it is known which are good. */
static bool is_better(const struct hg_report *r, double value, double best)
{
    return r->has_direction && (isnan(best) || (r->higher_is_better ? value > best : value < best));
}

/* How many cells are complete, and which lines are shown. */
static int count_cells(struct hg_many *m)
{
    size_t best = SIZE_MAX;

    m->flags = hg_alloc_zeroed(m->facts.n, 1);
    for (size_t i = 0; i < m->facts.n; i++) {
        const struct fact *f = &m->facts.items[i],
                          *used = &m->facts.items[m->facts.items[f->first].best];
        const struct hg_result result = { .ok = f->ok,
                                          .status = m->statuses.items[f->status].text };
        double value = value_of(m, i, m->r.metric);
        const char *state = hg_metric_state(&m->r, &result, value);

        m->flags[i] = (used->shown ? HG_LINE_SHOWN : 0) | (f->used && f->ok ? HG_LINE_COUNTS : 0);
        if (!f->used || !f->shown)
            continue;
        hg_metric_count(&m->r, state);
        if (!state && is_better(&m->r, value, m->best)) {
            m->best = value;
            best = i;
        }
    }
    if (best != SIZE_MAX)
        m->flags[best] |= HG_LINE_MARKED;
    hg_metric_sort_states(&m->r);
    return 0;
}

int hg_many_end(struct hg_many *m, struct hg_err *err)
{
    (void)err;
    if (m->lines && hg_lines_again(m->lines)) {
        m->facts.n = m->values.n = 0;
        return 1;
    }
    if (m->facts.n == 0 || choose_attempts(m) < 0)
        return -1;
    gather_keys(m);
    return !is_fine(m) || settle_metric(m) < 0 || count_cells(m) < 0 ? -1 : 0;
}

/* ---- What comes of it ---- */

int hg_many_write(struct hg_many *m, hg_lines_put_fn put, void *context, struct hg_err *err)
{
    size_t n = m->r.frame.keys.n;
    const char **keys = hg_alloc(n * sizeof *keys);
    int rc;

    for (size_t k = 0; k < n; k++)
        keys[k] = m->r.frame.keys.items[k].name;
    rc = hg_lines_write(m->lines, keys, n, m->flags, put, context, err);
    free(keys);
    return rc;
}

bool hg_many_fits_tables(const struct hg_many *m)
{
    return hg_digest_places(m->digest) <= PLACES_MAX;
}

const struct hg_report *hg_many_report(struct hg_many *m)
{
    struct hg_digest_cell *cells = hg_alloc((m->facts.n + 1) * sizeof *cells);
    size_t n = 0;

    for (size_t i = 0; i < m->facts.n; i++) {
        const struct fact *f = &m->facts.items[i];
        const struct hg_result result = { .ok = f->ok,
                                          .status = m->statuses.items[f->status].text };
        double value = value_of(m, i, m->r.metric);

        if (f->used && f->shown)
            cells[n++] = (struct hg_digest_cell){ .row = i,
                                                  .value = value,
                                                  .state = hg_metric_state(&m->r, &result, value) };
    }
    hg_digest_list(m->digest, cells, n, &m->r);
    m->r.sets = &m->set;
    m->r.n_sets = 1;
    m->r.labels = &m->r.title;
    free(cells);
    return &m->r;
}

size_t hg_many_cells(const struct hg_many *m)
{
    return m->r.cells;
}

bool hg_many_is_complete(const struct hg_many *m)
{
    return hg_report_is_complete(&m->r);
}

static void summarize(const struct hg_report *r, double best, const char *id, struct hg_buf *out)
{
    hg_clean_append(r->title, 0, out);
    hg_buf_puts(out, " · ");
    hg_completeness_format(r, out);
    hg_buf_puts(out, "\n");
    if (isnan(best))
        return;
    hg_buf_puts(out, "best ");
    hg_clean_append(r->metric, 0, out);
    hg_buf_printf(out, " (%s): ", r->higher_is_better ? "highest" : "lowest");
    hg_digits_append(&r->style, best, 6, out);
    hg_buf_puts(out, *id ? " of " : "");
    hg_clean_append(id, 0, out);
    hg_buf_puts(out, "\n");
}

void hg_many_summarize(const struct hg_many *m, const char *run, struct hg_buf *out)
{
    summarize(&m->r, m->best, hg_lines_marked_id(m->lines), out);
    hg_buf_printf(out,
                  "too many cells for tables; a line of each: %s/tables/results.csv\n"
                  "tables anyway, with about %zu MB of memory: hpcgrid report %s%s\n",
                  run, m->r.cells / 1000 * 4, run,
                  m->r.cells > HG_TABLES_MAX ? " --rows KEYS" : "");
}

void hg_report_summarize(const struct hg_report *r, const char *run, struct hg_buf *out)
{
    const struct hg_report_entry *best = NULL;

    for (size_t i = 0; i < r->n_entries; i++) {
        const struct hg_report_entry *e = &r->entries[i];

        if (e->shown && !e->state && is_better(r, e->value, best ? best->value : NAN))
            best = e;
    }
    summarize(r, best ? best->value : NAN, best ? best->result->id : "", out);
    hg_buf_printf(out, "the tables are long: hpcgrid report %s, or report.html in %s/tables\n", run,
                  run);
}
