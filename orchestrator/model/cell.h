/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MODEL_CELL_H
#define HG_MODEL_CELL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/matrix.h"

#define HG_CELL_ID_MAX 128 /* slug, "-", 12 hex digits, NUL */

/* One cell as a walk hands it out; everything is lent until the visit returns. */
struct hg_cell {
    char id[HG_CELL_ID_MAX];
    json_t *members; /* the whole cell, defaults, derived members and notes included */
    char baseline[HG_CELL_ID_MAX]; /* id of its baseline; "" if it has none */
    bool added;                    /* not in the matrix: made because it is somebody's baseline */
    const char *skip;              /* why it cannot run; NULL if it can */
};

/* What a walk counted. Cells with equal ids count once. */
struct hg_cells_count {
    uint64_t made; /* products of axes, include and repeats */
    uint64_t excluded;
    uint64_t skipped;  /* cannot run */
    uint64_t merged;   /* same id as an earlier one */
    uint64_t added;    /* baselines */
    uint64_t cells;    /* that will run: made - excluded - skipped - merged + added */
    uint64_t *by_rule; /* per exclude rule: cells it removed; n_rules of them, yours to free */
    size_t n_rules;
};

enum {
    HG_CELLS_MEMBERS =
        1, /* fill members; without it a visit sees id, baseline and flags only, and is faster */
    HG_CELLS_SKIPPED = 2, /* visit the skipped ones too */
};

/* Walk over the cells of a matrix in its order (added baselines right before the first cell that
 * wants them... or after it; the order is the same every time). Cells are made one at a time: a
 * million take little more memory than one. visit returns 0 to go on; anything else ends the walk,
 * which returns it. visit may be NULL: only count. Returns 0, or -1 with errs filled: a rule failed
 * on some cell, nothing is left to run, too many cells. */
int hg_cells_walk(const struct hg_matrix *m, unsigned flags,
                  int (*visit)(const struct hg_cell *cell, void *context), void *context,
                  struct hg_cells_count *count, struct hg_errs *errs);

void hg_cells_count_done(struct hg_cells_count *count);

#endif
