/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_PREFLIGHT_H
#define HG_PLAN_PREFLIGHT_H

#include "base/err.h"
#include "matrix/matrix.h"
#include "matrix/select.h"

/* Does hpcgrid-worker find good data for the cells that select picks (NULL: all)? `hpcgrid-worker check`
 * is asked once for each combination of model and data set, 16 at most, as a job would be: in the
 * workload's folder, with the site's environment. What it says is added to errs, INPUT with the id of the
 * first such cell. A matrix of another program, or a machine without hpcgrid-worker, is fine. */
int hg_preflight_data(const struct hg_matrix *m, const struct hg_selector *select,
                      struct hg_errs *errs);

#endif
