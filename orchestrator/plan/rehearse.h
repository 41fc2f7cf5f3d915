/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_REHEARSE_H
#define HG_PLAN_REHEARSE_H

#include <jansson.h>

#include "base/words.h"
#include "plan/shape.h"

/* What hpcgrid-worker runs when a cell is rehearsed: the cell with the CPU as backend, with what it writes in the folder dir, and, if
 * the rehearsal shrinks, with a tiny model and two steps on data that ship. The cell's shape, strategy and options stay. What is
 * replaced is added to "missing" of the rehearsal (matrix/rehearse.h). dir: NULL if nothing will run. A new reference. */
json_t *hg_rehearse_cell(json_t *rehearsal, const json_t *cell, const char *dir);

/* More ranks than this would take minutes to start on few cores, as MPI's all wait by spinning. A shrunk hpcgrid-worker then talks
 * by TCP. */
#define HG_REHEARSE_MPI_RANKS 16

/* Why the cell cannot be rehearsed on this machine: it has more ranks than there is memory for, or more nodes than a box. "": it
 * can. */
void hg_rehearse_why(const struct hg_shape *shape, char why[static 160]);

/* Split sbatch options, as typed and judged, into those that a box honours, which stay, and others, which are moved to lost. */
void hg_rehearse_options(struct hg_words *options, struct hg_words *lost);

#endif
