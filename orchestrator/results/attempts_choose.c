/* SPDX-License-Identifier: Apache-2.0 */
#include "results/attempts_choose.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "results/frame.h"

/* "2.10" is newer than "2.9". */
static int compare_attempts(const char *a, const char *b)
{
    long na[2], nb[2];

    hg_result_attempt(a, na);
    hg_result_attempt(b, nb);
    if (na[0] != nb[0])
        return na[0] < nb[0] ? -1 : 1;
    return (na[1] > nb[1]) - (na[1] < nb[1]);
}

/* What a cell is, as bytes: all its members but notes and the way of asking. */
static size_t identity(const struct hg_frame *f, uint32_t *row)
{
    for (size_t k = 0; k < f->keys.n; k++)
        if (f->keys.items[k].flags & (HG_KEY_NOTE | HG_KEY_LOOSE))
            row[k] = 0;
    return f->keys.n * sizeof *row;
}

static bool counts_more(const struct hg_result *a, const struct hg_result *b)
{
    return a->ok != b->ok ? a->ok : compare_attempts(a->attempt, b->attempt) >= 0;
}

/* A result contradicts an earlier one. */
static struct hg_err *contradict(struct hg_results *set, size_t i, size_t earlier, const char *what,
                                 struct hg_errs *errs)
{
    char *pointer = hg_str_printf("/results/%zu", i);
    struct hg_err *err = hg_json_error(&set->doc, pointer, errs, "%s /results/%zu", what, earlier);

    free(pointer);
    return err;
}

struct cells {
    struct hg_map members, ids, attempts; /* to the first result */
    struct hg_buf name;
};

/* First result of the same cell, by its id where it has one. An id names one cell, and a cell has one id. */
static size_t first_of_cell(struct hg_results *set, struct cells *cells, const struct hg_frame *f,
                            size_t i, bool strict, struct hg_errs *errs)
{
    const struct hg_result *r = &set->items[i];
    uint32_t *row = hg_frame_row(f, i);
    size_t same, id;

    if (r->removed && *r->id) /* the matrix may have an equal one with another command */
        return hg_map_put(&cells->ids, r->id, strlen(r->id), i);
    same = hg_map_put(&cells->members, row, identity(f, row), i);
    if (!*r->id)
        return same;
    id = hg_map_put(&cells->ids, r->id, strlen(r->id), i);
    if (strict && id == i && same != i)
        contradict(set, i, same, "under another id the same cell as", errs);
    else if (strict && set->items[id].first != set->items[same].first)
        contradict(set, i, id, "another cell under the id of", errs);
    return id;
}

static int choose(struct hg_results *set, struct hg_frame *f, struct hg_errs *errs)
{
    bool strict = !(set->flags & HG_RESULTS_TOLERANT);
    size_t before = errs->n + errs->dropped;
    struct cells cells = { .name = HG_BUF_INIT };

    for (size_t i = 0; i < set->n && !errs->dropped; i++) {
        struct hg_result *r = &set->items[i];
        size_t cell, first;

        r->first = i;
        cell = first_of_cell(set, &cells, f, i, strict, errs);
        hg_buf_clear(&cells.name);
        hg_buf_printf(&cells.name, "%zu %s", cell, r->attempt);
        first = hg_map_put(&cells.attempts, cells.name.data, cells.name.len, i);
        r->first = cell;
        if (first != i && strict)
            hg_err_hint(contradict(set, i, first, "the same cell as", errs),
                        "distinguish several runs of one case by \"repeat\": 1, 2, ... in the "
                        "cell");
        if (cell == i || counts_more(r, &set->items[set->items[cell].best]))
            set->items[cell].best = i;
    }
    /* what the matrix has no more stands for what it did, not for what it did not */
    for (size_t i = 0; i < set->n; i++) {
        struct hg_result *r = &set->items[i];
        size_t best = set->items[r->first].best;

        r->used = best == i && (!r->removed || r->ok);
        if (best != i && r->ok)
            set->items[best].chosen = true;
    }
    hg_buf_done(&cells.name);
    hg_map_done(&cells.attempts);
    hg_map_done(&cells.ids);
    hg_map_done(&cells.members);
    return errs->n + errs->dropped == before ? 0 : -1;
}

int hg_attempts_choose(struct hg_results *set, struct hg_errs *errs)
{
    const json_t **cells = hg_alloc(set->n * sizeof *cells);
    struct hg_frame frame = { 0 };
    int rc;

    for (size_t i = 0; i < set->n; i++)
        cells[i] = set->items[i].cell;
    hg_frame_build(&frame, cells, set->n, NULL);
    rc = choose(set, &frame, errs);
    hg_frame_done(&frame);
    free(cells);
    return rc;
}
