/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_REHEARSE_H
#define HG_MATRIX_REHEARSE_H

#include "matrix/matrix.h"

/* $SBATCH_ACCOUNT of a rehearsal that has none. */
#define HG_REHEARSAL_ACCOUNT "rehearsal"

/* Make a loaded matrix one that a box on this machine can run: its site loses what only the cluster has (modules, containers,
 * launcher, reservation, ...), and site->rehearsal says so. Hardware, cells and their ids stay; the memory check, skipped cells and
 * `$hw` are those of the real run. shrink: models, data and epochs will be tiny. */
void hg_matrix_rehearse(struct hg_matrix *m, bool shrink);

/* Add a text to "missing" of a rehearsal, once. */
void hg_rehearsal_add(json_t *rehearsal, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
