/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_CHANGES_H
#define HG_CMD_CHANGES_H

#include "base/buf.h"
#include "matrix/matrix.h"
#include "plan/batch.h"
#include "rundir/rundir.h"

/* Note in a plan which programs and scripts its command names, as they are now. */
void hg_changes_note_files(const struct hg_rundir *rd, struct hg_plan *plan);

/* What in a matrix and its site is not as a run's folder has it, and which of the files noted in its plan are others now, for people:
 * `workload.time "5m" → "1h", ...`, the first few. Returns how many differences there are. */
size_t hg_changes_list(const struct hg_rundir *rd, const struct hg_matrix *m,
                       const struct hg_plan *known, struct hg_buf *out);

#endif
