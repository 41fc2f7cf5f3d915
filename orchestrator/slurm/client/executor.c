/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/client/executor.h"

#include <stdlib.h>

void hg_exec_jobs_done(struct hg_exec_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        free(jobs->items[i].wide_tasks);
    free(jobs->items);
    *jobs = (struct hg_exec_jobs){ 0 };
}
