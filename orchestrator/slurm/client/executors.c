/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/client/executor.h"

#include <stdlib.h>
#include <string.h>

extern const struct hg_executor hg_executor_slurm, hg_executor_fake;

const struct hg_executor *const hg_executors[] = {
    &hg_executor_slurm,
    &hg_executor_fake,
    NULL,
};

const struct hg_executor *hg_executor_find(const char *name)
{
    for (const struct hg_executor *const *x = hg_executors; *x; x++)
        if (strcmp((*x)->name, name) == 0)
            return *x;
    return NULL;
}

void hg_exec_jobs_done(struct hg_exec_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        free(jobs->items[i].wide_tasks);
    free(jobs->items);
    *jobs = (struct hg_exec_jobs){ 0 };
}
