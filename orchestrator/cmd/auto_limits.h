/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_AUTO_LIMITS_H
#define HG_CMD_AUTO_LIMITS_H

#include <jansson.h>

#include "base/buf.h"
#include "matrix/matrix.h"
#include "cmd/forecast.h"

/* "time": "auto": time limits from earlier runs. */

/* Give the cells of a matrix whose "time" is "auto" their limits: the time that 999 of 1000 runs stay below by the forecast from earlier
 * runs below the folder `reports` (NULL: as hg_options_reports), at least HG_AUTO_FLOOR_S. Does nothing if no cell has it, or in a rehearsal,
 * whose times mean nothing. */
void hg_auto_limits_set(struct hg_matrix *m, const char *reports);

/* The runs that they follow from, lent by the matrix; NULL if they were not set. */
const struct hg_measured *hg_auto_limits_measured(const struct hg_matrix *m);

/* Append what "auto" means for the cells that have asked: "\"auto\" limits: 24 cells as ... took (run 002, 001); ...". Nothing if none has. */
void hg_auto_limits_append(const struct hg_matrix *m, struct hg_buf *out);

/* Forget which cells have asked. */
void hg_auto_limits_forget(const struct hg_matrix *m);

/* Append what it means for one cell: "00:10:00, as runs of the same configuration took (run 001)". */
void hg_auto_limits_append_cell(const struct hg_matrix *m, const json_t *members,
                                struct hg_buf *out);

#endif
