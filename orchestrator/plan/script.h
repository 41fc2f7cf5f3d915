/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_SCRIPT_H
#define HG_PLAN_SCRIPT_H

#include "base/buf.h"
#include "base/err.h"
#include "plan/batch.h"

/* The batch script: a #SBATCH header with all that the job asks for, so that `sbatch
 * batches/<n>.sh` by hand gives the same job, modules, and one exec. Fails with INPUT when a value
 * cannot stand in a header line. */
int hg_plan_script(const struct hg_plan *plan, const struct hg_batch *b, const char *dir,
                   struct hg_buf *out, struct hg_err *err);

#endif
