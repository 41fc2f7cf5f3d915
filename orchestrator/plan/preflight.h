/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_PREFLIGHT_H
#define HG_PLAN_PREFLIGHT_H

#include "base/err.h"
#include "matrix/matrix.h"
#include "matrix/select.h"

/* Does hpcgrid-worker find good data and initial weights for the cells that select picks (NULL: all), and can their answers and
 * checkpoints be written? `hpcgrid-worker check` is asked once for each combination of model, data set and weights, 16 at most, as a
 * job would be: in the workload's folder, with the site's environment. What it says is added to errs, INPUT with the id of the
 * first such cell. A matrix of another program, or a machine without hpcgrid-worker, is fine. */
int hg_preflight_data(const struct hg_matrix *m, const struct hg_selector *select,
                      struct hg_errs *errs);

#endif
