/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/cell.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bar.h"
#include "base/alloc.h"
#include "base/text.h"
#include "matrix/finish.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/pointer.h"
#include "matrix/row.h"
#include "matrix/seen.h"
#include "matrix/workload.h"
#include "results/result_keys.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

/* Which of the n cells of a round comes at place i. A permutation of 0..n-1 that needs no table: a four-round Feistel network
 * over the next even number of bits, walked until it falls below n. */
static uint64_t shuffled(uint64_t i, uint64_t n, uint64_t seed, uint64_t round)
{
    uint64_t key = mix(seed * 1000003 + round);
    unsigned half = 1;
    uint64_t low;

    while (UINT64_C(1) << 2 * half < n)
        half++;
    low = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & low;

        for (unsigned r = 0; r < 4; r++) {
            uint64_t next = left ^ (mix(right ^ (key + r * UINT64_C(0x9e3779b97f4a7c15))) & low);

            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* One cell on its way: what the axes and repeats gave, what became of it, its fingerprint. */
struct made {
    hg_value *start; /* as it left the repeats */
    hg_value *values;
    struct hg_finished outcome;
    uint64_t fingerprint;
    size_t source;
};

/* A cell that was made before, and by which row. */
struct repetition {
    uint64_t fingerprint;
    struct hg_row row, first;
    bool found; /* first is known */
    struct hg_buf values;
};

#define REASONS_MAX 3
#define REPETITIONS_MAX 3

struct walk {
    const struct hg_matrix *m;
    const struct hg_grid *g;
    unsigned flags;
    char reasons[REASONS_MAX][160]; /* why cells cannot run: the first few different ones */
    size_t n_reasons;
    int (*visit)(const struct hg_cell *cell, void *context);
    void *context;
    struct hg_cells_count *count;
    struct hg_errs *errs;
    struct hg_finisher *finisher;
    struct hg_cursor cursor;
    hg_value *placed;                               /* the cursor's */
    uint64_t rank;                                  /* and its place in its source */
    struct repetition repetitions[REPETITIONS_MAX]; /* the first of each source that has some */
    size_t n_repetitions, n_found;
    struct made cell, base;
    bool base_known; /* base belongs to the present base.start */
    struct hg_ids *names;
    /* Adaptive repeats: fingerprints of cells without their repeat; else NULL. */
    struct hg_ids *configurations;
    bool *of_repeat;          /* per column: `repeat`, or made from it */
    char *base_why;           /* why the first lost baseline is lost */
    struct hg_seen ids;       /* of the matrix's own cells */
    struct hg_seen bases;     /* of baselines that can run */
    bool *lacks;              /* per column: an own cell is without it */
    bool *busy;               /* per exclude rule: it removed a baseline */
    bool *kept;               /* per column: an added baseline keeps it from its cell */
    hg_value here;            /* the site whose cells are visited; ABSENT: all */
    bool collect, emit, name; /* what this pass does; name: it finds the first of repetitions */
};

/* ---- Cells for visitors ---- */

static void write_id(const struct walk *w, const struct made *made, char id[HG_CELL_ID_MAX])
{
    hg_ids_write(w->names, made->values, made->fingerprint, id);
}

static json_t *make_members(const struct walk *w, const hg_value *values)
{
    json_t *members = json_object();

    for (size_t i = 0; i < w->g->columns.n; i++)
        if (!hg_value_is_absent(values[i]))
            json_object_set_new(members, w->g->columns.items[i].name,
                                hg_pool_json(w->g->pool, values[i]));
    return members;
}

static bool is_overlaid(const struct walk *w, size_t column)
{
    for (size_t i = 0; i < w->g->baseline.n; i++)
        if ((size_t)w->g->baseline.items[i].column == column)
            return true;
    return false;
}

static bool axis_sets(const struct hg_product *product, size_t column)
{
    for (size_t i = 0; i < product->n; i++)
        for (size_t k = 0; k < product->items[i].n_columns; k++)
            if ((size_t)product->items[i].columns[k] == column)
                return true;
    return false;
}

static const char *origin_of(const struct walk *w, const struct made *made, size_t column,
                             bool added)
{
    const struct hg_column *c = &w->g->columns.items[column];
    const struct hg_source *source = &w->g->sources.items[made->source];

    if (hg_finish_derived(w->finisher, (int)column))
        return w->g->derives.items[c->derive].pointer;
    if (hg_value_is_absent(made->start[column]))
        return "default";
    if (added && is_overlaid(w, column))
        return "/baseline";
    if (axis_sets(&source->product, column) && made->start[column] != c->start)
        return source->pointer;
    if (column == HG_COLUMN_REPEAT && hg_value_is_absent(c->start))
        return json_object_get(w->m->doc.root, "repeats") ? "/repeats" : "default";
    return "/workload";
}

static json_t *make_origins(struct walk *w, const struct made *made, bool added)
{
    struct hg_finished outcome;
    hg_value *again = w->placed + w->g->columns.n; /* scratch */
    json_t *origins = json_object();

    /* the formulas of the last cell finished may have been its baseline's */
    memcpy(again, made->start, w->g->columns.n * sizeof *again);
    hg_finish(w->finisher, again, &outcome, w->errs); /* as well as it went before */
    for (size_t i = 0; i < w->g->columns.n; i++)
        if (!hg_value_is_absent(made->values[i]))
            json_object_set_new(origins, w->g->columns.items[i].name,
                                json_string(origin_of(w, made, i, added)));
    return origins;
}

static bool is_wanted(const struct walk *w, enum hg_cell_fate fate)
{
    switch (fate) {
    case HG_CELL_RUNS:
        return true;
    case HG_CELL_SKIPPED:
        return w->flags & (HG_CELLS_SKIPPED | HG_CELLS_ALL);
    default:
        return w->flags & HG_CELLS_ALL;
    }
}

/* Adaptive repeats belong together if all but `repeat`, and what is derived from it, is equal. */
static uint64_t configuration_of(struct walk *w, const struct made *made)
{
    hg_value *values = w->placed + w->g->columns.n; /* scratch */

    if (!w->configurations)
        return 0;
    for (size_t i = 0; i < w->g->columns.n; i++)
        values[i] = w->of_repeat[i] && (i == HG_COLUMN_REPEAT || hg_value_is_absent(made->start[i]))
                        ? HG_VALUE_ABSENT
                        : made->values[i];
    return hg_ids_fingerprint(w->configurations, values);
}

static bool is_here(const struct walk *w, const struct made *made)
{
    return hg_value_is_absent(w->here) || made->values[HG_COLUMN_SITE] == w->here;
}

static int hand_out(struct walk *w, const struct made *made, enum hg_cell_fate fate, bool added,
                    const char *baseline)
{
    struct hg_cell cell = {
        .added = added,
        .configuration = configuration_of(w, made),
        .skip = made->outcome.why,
        .fate = fate,
        .source = w->g->sources.items[made->source].pointer,
        .rule = made->outcome.rule,
    };
    int rc;

    if (!w->visit || !is_wanted(w, fate) || !is_here(w, made))
        return 0;
    write_id(w, made, cell.id);
    snprintf(cell.baseline, sizeof cell.baseline, "%s", baseline);
    if (w->flags & HG_CELLS_MEMBERS)
        cell.members = make_members(w, made->values);
    if (w->flags & HG_CELLS_ORIGINS)
        cell.origins = make_origins(w, made, added);
    rc = w->visit(&cell, w->context);
    json_decref(cell.members);
    json_decref(cell.origins);
    return rc;
}

/* ---- Warnings ---- */

static void warn(struct walk *w, const char *pointer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "file:line:col: warning: /pointer: text" */
static void warn(struct walk *w, const char *pointer, const char *fmt, ...)
{
    char *place = hg_pointer_place(&w->m->doc, pointer, "warning");
    struct hg_buf text = HG_BUF_INIT;
    va_list ap;

    hg_buf_printf(&text, "%s%s", place, *pointer ? ": " : "");
    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    hg_cells_count_warn(w->count, hg_buf_detach(&text));
    free(place);
}

static void warn_repetition(struct walk *w, const struct repetition *r)
{
    struct hg_words again = HG_WORDS_INIT, first = HG_WORDS_INIT;
    struct hg_buf text = HG_BUF_INIT;

    hg_row_name(w->m, &r->row, &r->first, &again);
    hg_row_name(w->m, &r->first, &r->row, &first);
    for (size_t i = 1; i < again.n; i++)
        hg_buf_printf(&text, "%s %s", i == 1 ? "with" : " and", again.items[i]);
    hg_buf_puts(&text, text.len ? ": " : "");
    for (size_t i = 0; i < first.n; i++)
        hg_buf_printf(&text, "%s%s", i ? " and " : "", first.items[i]);
    if (again.n && first.n)
        warn(w, again.items[0], "%s already make%s the same cell%s", hg_buf_str(&text),
             first.n == 1 ? "s" : "", hg_buf_str(&r->values));
    hg_words_done(&again);
    hg_words_done(&first);
    hg_buf_done(&text);
}

static void warn_repetitions(struct walk *w)
{
    if (w->count->merged)
        warn(w, "", "%llu cell%s equal to an earlier one; the first is kept",
             (unsigned long long)w->count->merged, w->count->merged == 1 ? " is" : "s are");
    for (size_t i = 0; i < w->n_repetitions; i++)
        if (w->repetitions[i].found)
            warn_repetition(w, &w->repetitions[i]);
}

static void warn_idle_rules(struct walk *w)
{
    const uint64_t *uses = hg_finish_uses(w->finisher);

    for (size_t i = 0; i < w->g->rules.n; i++)
        if (!w->count->by_rule[i] && !w->busy[i])
            warn(w, w->g->rules.items[i].pointer, "this rule removes no cell");
    for (size_t i = 0; i < w->g->derives.n; i++)
        if (!uses[i])
            warn(w, w->g->derives.items[i].pointer,
                 "this formula is never used: every cell has \"%s\", or it gives null",
                 w->g->columns.items[w->g->derives.items[i].column].name);
}

/* A member that no cell has is null in a formula; nearly always a typing mistake. */
static void warn_unknown_names(struct walk *w)
{
    for (size_t i = 0; i < w->g->derives.n; i++) {
        const struct hg_derive *d = &w->g->derives.items[i];
        const struct hg_expr_uses *u = hg_exprs_uses(w->g->exprs, d->expr);

        for (size_t k = 0; k < u->n; k++)
            if (u->certain[k] && !hg_grid_has_key(w->g, u->names[k]))
                warn(w, d->pointer, "no cell has \"%s\", so it is null here", u->names[k]);
    }
}

/* An axis "env" does not vary workload.env, which is easily thought. */
static void warn_words(struct walk *w)
{
    for (const struct hg_field *f = hg_workload_fields; f->kind != HG_J_END; f++)
        if (hg_grid_has_key(w->g, f->name))
            warn(w, "", "\"%s\" is a parameter of these cells; /workload/%s is the same for all",
                 f->name, f->name);
}

/* Results may have any key, so whether a metric exists is certain only after the sweep. */
static void warn_metric(struct walk *w)
{
    const char *metric = json_string_value(json_object_get(w->m->report, "metric"));
    const char *near = metric ? hg_result_key_nearest(metric, w->m->workload.results) : NULL;

    if (near)
        warn(w, "/report/metric", "results may have no \"%s\"; did you mean \"%s\"?", metric, near);
}

static void warn_baselines(struct walk *w)
{
    if (w->g->has_baseline && w->g->baseline.n == 0)
        warn(w, "/baseline", "an empty baseline: every cell is compared with itself");
    if (w->count->unbased)
        warn(w, "/baseline", "%llu cell%s will have no speedup: the baseline %s",
             (unsigned long long)w->count->unbased, hg_text_s(w->count->unbased),
             w->base_why ? w->base_why : "cannot run");
    for (size_t i = 0; i < w->g->columns.n; i++)
        if (w->kept[i] && w->lacks[i])
            warn(w, "/baseline",
                 "added baselines keep \"%s\", which other cells lack; write \"%s\": null to take "
                 "it away",
                 w->g->columns.items[i].name, w->g->columns.items[i].name);
}

/* ---- Baselines ---- */

static void overlay(const struct walk *w, const hg_value *start, hg_value *out)
{
    memcpy(out, start, w->g->columns.n * sizeof *out);
    for (size_t i = 0; i < w->g->baseline.n; i++)
        out[w->g->baseline.items[i].column] = w->g->baseline.items[i].value;
}

/* Work out the baseline of a cell; neighbours mostly share it. */
static int find_base(struct walk *w, const struct made *cell)
{
    size_t size = w->g->columns.n * sizeof *cell->start;
    hg_value *fresh = w->placed + w->g->columns.n; /* scratch after the cursor's values */

    overlay(w, cell->start, fresh);
    if (w->base_known && memcmp(fresh, w->base.start, size) == 0)
        return 0;
    memcpy(w->base.start, fresh, size);
    memcpy(w->base.values, fresh, size);
    w->base.source = cell->source;
    w->base_known = true;
    if (hg_finish(w->finisher, w->base.values, &w->base.outcome, w->errs) < 0)
        return -1;
    w->base.fingerprint = hg_ids_fingerprint(w->names, w->base.values);
    return 0;
}

static void keep_reason(struct walk *w)
{
    if (w->base.outcome.fate == HG_CELL_EXCLUDED)
        w->busy[w->base.outcome.rule] = true;
    if (w->base_why)
        return;
    if (w->base.outcome.fate == HG_CELL_EXCLUDED)
        w->base_why =
            hg_str_printf("is excluded by %s", w->g->rules.items[w->base.outcome.rule].pointer);
    else
        w->base_why = hg_str_printf("cannot run (%s)", w->base.outcome.why);
}

static void note_kept(struct walk *w)
{
    for (size_t i = 0; i < w->g->columns.n; i++)
        if (w->g->columns.items[i].identity && !hg_value_is_absent(w->base.start[i]) &&
            !is_overlaid(w, i))
            w->kept[i] = true;
}

static int add_id(struct walk *w, struct hg_seen *set, const struct made *made, bool *is_new)
{
    char id[HG_CELL_ID_MAX];

    *is_new = false;
    switch (hg_seen_add(set, made->fingerprint)) {
    case HG_SEEN_NEW:
        *is_new = true;
        return 0;
    case HG_SEEN_AGAIN:
        return 0;
    default:
        write_id(w, made, id);
        hg_err_hint(hg_json_error(&w->m->doc, "", w->errs,
                                  "two different cells have the id %s by chance", id),
                    "any change that both cells share gives other ids: a new parameter, another "
                    "workload text");
        return -1;
    }
}

static void price_base(struct walk *w)
{
    json_t *members = make_members(w, w->base.values);
    double time_s = hg_cell_time_s(members);

    w->count->added_device_s += time_s * (double)hg_cell_devices(members);
    w->count->added_unpriced += time_s <= 0;
    json_decref(members);
}

static void note_site(struct walk *w, const struct made *made)
{
    const char *name = hg_pool_string(w->g->pool, made->values[HG_COLUMN_SITE]);
    const struct hg_several_site *site =
        w->count->by_site && name ? hg_several_find(&w->m->several, name) : NULL;

    if (site)
        w->count->by_site[site - w->m->several.items]++;
}

/* First pass: remember the baseline; second pass: hand it out if the matrix lacks it. Writes its id
 * into id, "" if the cell has none. */
static int treat_base(struct walk *w, const struct made *cell, char id[HG_CELL_ID_MAX])
{
    bool is_new;

    id[0] = '\0';
    if (!w->g->has_baseline)
        return 0;
    if (find_base(w, cell) < 0)
        return -1;
    if (w->base.outcome.fate != HG_CELL_RUNS) {
        if (!is_here(w, cell))
            return 0;
        w->count->unbased += w->collect;
        keep_reason(w);
        return 0;
    }
    if (w->collect)
        return add_id(w, &w->bases, &w->base, &is_new);
    write_id(w, &w->base, id);
    if (hg_seen_has(&w->ids, w->base.fingerprint) || !hg_seen_mark(&w->bases, w->base.fingerprint))
        return 0;
    note_site(w, &w->base);
    if (!is_here(w, &w->base))
        return 0;
    note_kept(w);
    price_base(w);
    w->count->added++;
    return hand_out(w, &w->base, w->base.outcome.fate, true, id);
}

/* ---- One cell ---- */

static void note_lacks(struct walk *w, const hg_value *values)
{
    for (size_t i = 0; i < w->g->columns.n; i++)
        w->lacks[i] = w->lacks[i] || hg_value_is_absent(values[i]);
}

/* What the axes of its source give to a cell: ": nodes=2, lr=0.1". */
static void describe_row(const struct walk *w, const struct made *cell, struct hg_buf *out)
{
    const struct hg_product *product = &w->g->sources.items[cell->source].product;

    for (size_t i = 0; i < w->g->columns.n; i++) {
        char scratch[32];
        const char *text;
        size_t len;

        if (!w->g->columns.items[i].identity || !axis_sets(product, i) ||
            hg_value_is_absent(cell->values[i]))
            continue;
        text = hg_pool_text(w->g->pool, cell->values[i], scratch, &len);
        hg_buf_printf(out, "%s%s=%.*s", out->len ? ", " : " with ", w->g->columns.items[i].name,
                      (int)(len > 40 ? 40 : len), text);
    }
}

static void note_repetition(struct walk *w, const struct made *cell)
{
    struct repetition *r = &w->repetitions[w->n_repetitions];

    w->count->merged++;
    for (size_t i = 0; i < w->n_repetitions; i++)
        if (w->repetitions[i].row.source == cell->source)
            return;
    if (w->n_repetitions == REPETITIONS_MAX)
        return;
    *r = (struct repetition){ .fingerprint = cell->fingerprint, .row = { cell->source, w->rank } };
    describe_row(w, cell, &r->values);
    w->n_repetitions++;
}

/* Returns 1, which ends the walk, when the first of each is known. */
static int find_first(struct walk *w, const struct made *cell)
{
    for (size_t i = 0; i < w->n_repetitions; i++) {
        struct repetition *r = &w->repetitions[i];

        if (r->found || r->fingerprint != cell->fingerprint)
            continue;
        r->first = (struct hg_row){ cell->source, w->rank };
        r->found = true;
        w->n_found++;
    }
    return w->n_found == w->n_repetitions;
}

/* A cell that runs, perhaps not for the first time. */
static int treat_standing(struct walk *w, struct made *cell)
{
    char base[HG_CELL_ID_MAX] = "";
    bool first = true;
    int rc;

    if (w->name)
        return find_first(w, cell);
    if (w->collect && add_id(w, &w->ids, cell, &first) < 0)
        return -1;
    if (w->collect) {
        if (!first)
            note_repetition(w, cell);
        if (w->g->has_baseline && first)
            note_lacks(w, cell->values);
        if (first)
            note_site(w, cell);
        w->count->elsewhere += first && !is_here(w, cell);
    }
    if (w->emit && !w->collect)
        first = hg_seen_mark(&w->ids, cell->fingerprint);
    if (!first)
        return w->emit ? hand_out(w, cell, HG_CELL_MERGED, false, "") : 0;
    rc = treat_base(w, cell, base);
    if (rc != 0)
        return rc;
    return w->emit ? hand_out(w, cell, HG_CELL_RUNS, false, base) : 0;
}

/* A cell cannot run. */
static void note_reason(struct walk *w, const char *why)
{
    w->count->skipped++;
    for (size_t i = 0; i < w->n_reasons; i++)
        if (strncmp(w->reasons[i], why, sizeof w->reasons[i] - 1) == 0)
            return;
    if (w->n_reasons < REASONS_MAX)
        snprintf(w->reasons[w->n_reasons++], sizeof w->reasons[0], "%s", why);
}

static int treat_cell(struct walk *w, size_t source, unsigned long long round)
{
    size_t size = w->g->columns.n * sizeof *w->placed;
    struct made *cell = &w->cell;

    memcpy(cell->start, w->placed, size);
    if (hg_value_is_absent(cell->start[HG_COLUMN_REPEAT]))
        cell->start[HG_COLUMN_REPEAT] = hg_value_of_number((double)round);
    else if (round > 1)
        return 0; /* a cell that sets it is made once */
    memcpy(cell->values, cell->start, size);
    cell->source = source;
    if (hg_finish(w->finisher, cell->values, &cell->outcome, w->errs) < 0)
        return -1;
    if (w->collect) {
        w->count->made++;
        w->count->by_source[source]++;
        if (cell->outcome.fate == HG_CELL_SKIPPED && is_here(w, cell))
            note_reason(w, cell->outcome.why);
        else if (cell->outcome.fate == HG_CELL_SKIPPED)
            w->count->elsewhere++;
        if (cell->outcome.fate == HG_CELL_EXCLUDED) {
            w->count->excluded++;
            w->count->by_rule[cell->outcome.rule]++;
        }
    }
    if (cell->outcome.fate == HG_CELL_EXCLUDED && !(w->flags & HG_CELLS_ALL))
        return 0;
    cell->fingerprint = hg_ids_fingerprint(w->names, cell->values);
    if (cell->outcome.fate == HG_CELL_EXCLUDED || cell->outcome.fate == HG_CELL_SKIPPED)
        return w->emit ? hand_out(w, cell, cell->outcome.fate, false, "") : 0;
    return treat_standing(w, cell);
}

/* ---- Order ---- */

/* The source that makes the cell of this rank; neighbours mostly share it. */
static size_t find_source(const struct hg_grid *g, uint64_t rank, size_t guess)
{
    size_t low = 0, high = g->sources.n;

    if (rank >= g->sources.items[guess].first &&
        (guess + 1 == high || rank < g->sources.items[guess + 1].first))
        return guess;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (g->sources.items[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int walk_round(struct walk *w, unsigned long long round)
{
    uint64_t n = (uint64_t)w->g->size;
    uint64_t seed = (uint64_t)w->m->shuffle;
    size_t source = 0;

    for (uint64_t i = 0; i < n; i++) {
        uint64_t rank = w->m->has_shuffle ? shuffled(i, n, seed, round) : i;
        int rc;

        source = find_source(w->g, rank, source);
        w->rank = rank - w->g->sources.items[source].first;
        hg_bar_step();
        hg_grid_place(w->g, &w->cursor, source, w->rank, w->placed);
        rc = treat_cell(w, source, round);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int walk_rounds(struct walk *w)
{
    for (unsigned long long round = 1; round <= (unsigned long long)w->m->repeats.max; round++) {
        int rc = walk_round(w, round);

        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- The walk ---- */

/* Which columns follow from `repeat`: formulas may read those before them. */
static void find_repeats(struct walk *w)
{
    w->of_repeat = hg_alloc_zeroed(w->g->columns.n, sizeof *w->of_repeat);
    w->of_repeat[HG_COLUMN_REPEAT] = true;
    for (size_t d = 0; d < w->g->derives.n; d++) {
        const struct hg_derive *derive = &w->g->derives.items[d];
        const struct hg_expr_uses *uses = hg_exprs_uses(w->g->exprs, derive->expr);
        bool reads = uses->all;

        for (size_t i = 0; i < uses->n && !reads; i++) {
            int column = hg_grid_column(w->g, uses->names[i]);

            reads = column >= 0 && w->of_repeat[column];
        }
        w->of_repeat[derive->column] = reads;
    }
}

static void prepare(struct walk *w)
{
    size_t n = w->g->columns.n;
    double cells = w->g->size * (double)w->m->repeats.max;

    w->finisher = hg_finisher_create(w->m);
    w->names = hg_ids_create(w->m);
    find_repeats(w);
    if (hg_repeats_are_adaptive(&w->m->repeats))
        w->configurations = hg_ids_create(w->m);
    w->placed = hg_alloc_zeroed(2 * n, sizeof *w->placed);
    w->cell.start = hg_alloc_zeroed(n, sizeof *w->cell.start);
    w->cell.values = hg_alloc_zeroed(n, sizeof *w->cell.values);
    w->base.start = hg_alloc_zeroed(n, sizeof *w->base.start);
    w->base.values = hg_alloc_zeroed(n, sizeof *w->base.values);
    w->lacks = hg_alloc_zeroed(n, sizeof *w->lacks);
    w->kept = hg_alloc_zeroed(n, sizeof *w->kept);
    w->busy = hg_alloc_zeroed(w->g->rules.n, sizeof *w->busy);
    w->count->by_rule = hg_alloc_zeroed(w->g->rules.n, sizeof *w->count->by_rule);
    w->count->n_rules = w->g->rules.n;
    w->count->by_source = hg_alloc_zeroed(w->g->sources.n, sizeof *w->count->by_source);
    w->count->n_sources = w->g->sources.n;
    if (w->m->several.n > 1)
        w->count->by_site = hg_alloc_zeroed(w->m->several.n, sizeof *w->count->by_site);
    w->here = w->m->several.n > 1 && w->m->several.here
                  ? hg_pool_add_string(w->g->pool, w->m->several.here->name)
                  : HG_VALUE_ABSENT;
    hg_seen_reserve(&w->ids, (size_t)(cells < 1e6 ? cells : 1e6));
}

static void finish_walk(struct walk *w)
{
    hg_finisher_free(w->finisher);
    hg_cursor_done(&w->cursor);
    free(w->placed);
    hg_ids_free(w->names);
    if (w->configurations)
        hg_ids_free(w->configurations);
    free(w->of_repeat);
    free(w->cell.start);
    free(w->cell.values);
    free(w->base.start);
    free(w->base.values);
    free(w->lacks);
    free(w->kept);
    free(w->busy);
    free(w->base_why);
    for (size_t i = 0; i < w->n_repetitions; i++)
        hg_buf_done(&w->repetitions[i].values);
    hg_seen_done(&w->ids);
    hg_seen_done(&w->bases);
}

static void describe_nothing(const struct walk *w, struct hg_buf *out)
{
    for (size_t i = 0; i < w->g->rules.n; i++)
        if (w->count->by_rule[i])
            hg_buf_printf(out, "%s%s removes %llu", out->len ? ", " : "",
                          w->g->rules.items[i].pointer, (unsigned long long)w->count->by_rule[i]);
    if (w->count->skipped)
        hg_buf_printf(out, "%s%llu cannot run (", out->len ? ", " : "",
                      (unsigned long long)w->count->skipped);
    for (size_t i = 0; i < w->n_reasons; i++)
        hg_buf_printf(out, "%s%s", i ? "; " : "", w->reasons[i]);
    if (w->count->skipped)
        hg_buf_puts(out, w->n_reasons == REASONS_MAX ? "; ...)" : ")");
    if (w->count->elsewhere)
        hg_buf_printf(out, "%s%llu of other sites", out->len ? ", " : "",
                      (unsigned long long)w->count->elsewhere);
}

/* A matrix without cells is a mistake, but for those who ask what became of them. */
static int check_anything_left(struct walk *w)
{
    struct hg_buf why = HG_BUF_INIT;

    if (w->count->cells || w->flags & HG_CELLS_ALL)
        return 0;
    describe_nothing(w, &why);
    hg_err_hint(hg_json_error(&w->m->doc, "", w->errs, "nothing is left to run of %llu cells",
                              (unsigned long long)w->count->made),
                "%s", hg_buf_str(&why));
    hg_buf_done(&why);
    return -1;
}

static void sum_up(struct walk *w)
{
    struct hg_cells_count *c = w->count;

    c->cells = c->made - c->excluded - c->skipped - c->merged + c->added - c->elsewhere;
    warn_repetitions(w);
    warn_idle_rules(w);
    warn_unknown_names(w);
    warn_words(w);
    warn_metric(w);
    warn_baselines(w);
}

/* With a baseline there are two passes: only at the end of the first is it known which baselines
 * the matrix lacks. */
static int run(struct walk *w)
{
    int rc;

    w->collect = true;
    w->emit = !w->g->has_baseline;
    rc = walk_rounds(w);
    if (rc == 0 && !w->emit) {
        w->collect = false;
        w->emit = true;
        rc = walk_rounds(w);
    }
    w->collect = w->emit = false;
    w->name = true;
    if (rc == 0 && w->n_repetitions && walk_rounds(w) < 0)
        rc = -1;
    if (rc == 0) {
        sum_up(w);
        rc = check_anything_left(w);
    }
    return rc;
}

int hg_cells_walk(const struct hg_matrix *m, unsigned flags,
                  int (*visit)(const struct hg_cell *cell, void *context), void *context,
                  struct hg_cells_count *count, struct hg_errs *errs)
{
    struct hg_cells_count own = { 0 };
    struct walk w = { .m = m,
                      .g = m->grid,
                      .flags = flags,
                      .visit = visit,
                      .context = context,
                      .count = count ? count : &own,
                      .errs = errs };
    int rc;

    *w.count = (struct hg_cells_count){ 0 };
    prepare(&w);
    hg_bar_begin("cells",
                 (uint64_t)(m->grid->size * (double)m->repeats.max) * (1 + m->grid->has_baseline));
    rc = run(&w);
    hg_bar_end();
    finish_walk(&w);
    hg_cells_count_done(&own);
    return rc;
}

void hg_cells_count_warn(struct hg_cells_count *count, char *line)
{
    count->warnings =
        hg_realloc(count->warnings, (count->n_warnings + 1) * sizeof *count->warnings);
    count->warnings[count->n_warnings++] = line;
}

void hg_cells_count_done(struct hg_cells_count *count)
{
    for (size_t i = 0; i < count->n_warnings; i++)
        free(count->warnings[i]);
    free(count->warnings);
    free(count->by_rule);
    free(count->by_source);
    free(count->by_site);
    *count = (struct hg_cells_count){ 0 };
}

/* ---- Arithmetic on a cell's members ---- */

static long long whole(const json_t *members, const char *key)
{
    return (long long)json_number_value(json_object_get(members, key));
}

long long hg_cell_devices(const json_t *members)
{
    long long nodes = whole(members, "nodes"), gpus = whole(members, "gpus_per_node");
    long long cpus = whole(members, "cpus_per_task");

    if (gpus > 0)
        return nodes * gpus;
    return nodes * whole(members, "tasks_per_node") * (cpus > 0 ? cpus : 1);
}

bool hg_cell_time_is_auto(const json_t *members)
{
    const char *time = json_string_value(json_object_get(members, "time"));

    return time && strcmp(time, HG_KEY_TIME_AUTO) == 0;
}

double hg_cell_time_s(const json_t *members)
{
    const json_t *time = json_object_get(members, "time");
    double seconds = json_number_value(time);

    if (json_is_string(time) && hg_text_duration_parse(json_string_value(time), &seconds, NULL) < 0)
        return 0;
    return seconds;
}
