/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_BATCH_H
#define HG_PLAN_BATCH_H

#include <jansson.h>

#include "base/err.h"
#include "model/matrix.h"
#include "model/select.h"

/* Cells of one resource shape: one job array (or a few, where limits split it). */
struct hg_batch {
    int number;  /* 1, 2, ...: names batches/<n>.sh and batches/<n>.cells.jsonl */
    json_t *job; /* as exec/executor.h describes it, without array, args, key and output */
    char **ids;  /* cell ids, by line of the cells file */
    size_t n, cap;
    double time_s; /* the limit asked for, 0: none */
};

/* Everything that a run will submit. Saved as plan.json (without ids) plus
 * batches/<n>.{sh,cells.jsonl}; a line of a cells file is {"id", "cell", "baseline", "added"}. */
struct hg_plan {
    char *name;
    char run_key[33];
    struct hg_batch *items;
    size_t n, cap;
};

/* Group the cells that select picks (NULL: all) into batches. Cells already in `known` (a loaded
 * plan of the same run; may be NULL) keep their batch and line; only new ones are appended, as new
 * batches. cells_out gets the text of each batch's cells file (hg_plan_save writes it). NULL on
 * failure. */
struct hg_plan *hg_plan_make(const struct hg_matrix *m, const struct hg_selector *select,
                             const struct hg_plan *known, struct hg_errs *errs);

/* Write plan.json and the batches' files below dir, plan.json last. */
int hg_plan_save(struct hg_plan *plan, const struct hg_matrix *m, const char *dir,
                 struct hg_err *err);
struct hg_plan *hg_plan_load(const char *dir, struct hg_err *err);
void hg_plan_free(struct hg_plan *plan);

#endif
