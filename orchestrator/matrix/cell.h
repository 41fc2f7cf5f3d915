/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_CELL_H
#define HG_MATRIX_CELL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "matrix/finish.h"
#include "matrix/id.h"
#include "matrix/matrix.h"

/* One cell as a walk hands it out; everything is lent until the visit returns. */
struct hg_cell {
    char id[HG_CELL_ID_MAX];
    json_t *members; /* the whole cell, defaults, derived members and notes included */
    char baseline[HG_CELL_ID_MAX]; /* id of its baseline; "" if it has none */
    bool added;             /* not in the matrix: made because it is another cell's baseline */
    uint64_t configuration; /* adaptive repeats: the same for all repeats of it; else 0 */
    const char *skip;       /* why it cannot run; NULL if it can */
    enum hg_cell_fate fate;
    const char *source; /* what made it: "/axes", "/include/3", "" (the workload alone) */
    int rule;           /* EXCLUDED: number of the rule, else -1 */
    json_t *origins;    /* HG_CELLS_ORIGINS: member: what set it ("workload", "/axes", "default",
                           "/derive/time", "/baseline", "repeats") */
};

/* What a walk counted. Cells with equal ids count once. */
struct hg_cells_count {
    uint64_t made; /* products of axes, include and repeats */
    uint64_t excluded;
    uint64_t skipped;        /* can never run */
    uint64_t merged;         /* same id as an earlier one */
    uint64_t added;          /* baselines */
    uint64_t elsewhere;      /* of several sites: cells of the others, which are not visited */
    uint64_t cells;          /* made - excluded - skipped - merged + added - elsewhere */
    uint64_t unbased;        /* cells whose baseline is excluded or cannot run */
    double added_device_s;   /* added baselines: devices x time limit, summed */
    uint64_t added_unpriced; /* added baselines without a time limit */
    uint64_t *by_rule;       /* per exclude rule: cells it removed */
    size_t n_rules;
    uint64_t *by_source; /* axes (if any) and the entries of include: cells they made */
    size_t n_sources;
    uint64_t *by_site; /* per site of several: cells that run there, added baselines included */
    char **warnings;   /* "x.json:3:5: warning: ..." or without a place */
    size_t n_warnings;
};

enum {
    HG_CELLS_MEMBERS =
        1, /* fill members; without it a visit sees id, baseline and flags only, and is faster */
    HG_CELLS_SKIPPED = 2, /* visit the skipped ones too */
    HG_CELLS_ALL =
        4, /* visit the excluded and merged ones too, never fail because no cells are left */
    HG_CELLS_ORIGINS = 8, /* fill origins */
};

/* Walk over the cells of a matrix in its order; an added baseline comes right before the first cell
 * that needs it. Cells are made one at a time: a million take little more memory than one. visit
 * returns 0 to continue; anything else ends the walk, which returns it. visit may be NULL: only count.
 * Returns 0, or -1 with errs filled: a rule failed on some cell, nothing is left to run, two cells
 * have one id by chance. count may be NULL; end it with hg_cells_count_done whatever is returned. */
int hg_cells_walk(const struct hg_matrix *m, unsigned flags,
                  int (*visit)(const struct hg_cell *cell, void *context), void *context,
                  struct hg_cells_count *count, struct hg_errs *errs);

/* Add a warning, which it takes. */
void hg_cells_count_warn(struct hg_cells_count *count, char *line);

void hg_cells_count_done(struct hg_cells_count *count);

/* Devices that a cell computes on: GPUs, or on hardware without GPUs tasks x cpus_per_task (a device
 * is a core). 0 if its members do not say. */
long long hg_cell_devices(const json_t *members);

/* The cell's time limit in seconds; 0 if it has none, or "auto". */
double hg_cell_time_s(const json_t *members);

/* Is it "auto"? */
bool hg_cell_time_is_auto(const json_t *members);

#endif
