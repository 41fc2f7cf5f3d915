/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_HAZARDS_H
#define HG_PLAN_HAZARDS_H

#include "matrix/cell.h"
#include "plan/shape.h"

/* What is legal and most likely not meant, seen over all cells that run: several cells that write one file, a time limit too short
 * for the USR1 that saves a checkpoint. */
struct hg_hazards;

/* Borrows m. */
struct hg_hazards *hg_hazards_create(const struct hg_matrix *m);
void hg_hazards_free(struct hg_hazards *h);

/* A cell that runs, with its shape before its time is rounded. */
void hg_hazards_see(struct hg_hazards *h, const struct hg_cell *cell, const struct hg_shape *shape);

/* After the last cell: add a warning for each kind. */
void hg_hazards_list(const struct hg_hazards *h, struct hg_cells_count *out);

#endif
