/* SPDX-License-Identifier: Apache-2.0 */
#include "node/job.h"

#include <stdlib.h>

#include "node/where.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt.h"

static long long job_count(const struct hg_job *job, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(json_object_get(job->batch, "job"), key));

    return v > 0 ? v : 1;
}

static unsigned variable(const char *name)
{
    const char *value = getenv(name);

    return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static int find_cell(struct hg_job *job, struct hg_err *err)
{
    job->plan = hg_plan_read(job->rd.path, err);
    if (!job->plan)
        return -1;
    job->batch =
        json_array_get(json_object_get(job->plan, "batches"), (size_t)job->batch_number - 1);
    if (!json_object_get(job->batch, "job"))
        return hg_err_set(err, HG_E_INPUT, "%s has no batch %d", job->rd.path, job->batch_number);
    job->line = hg_plan_read_cell(job->rd.path, job->batch_number, job->line_number, err);
    if (!job->line)
        return -1;
    job->cell = json_object_get(job->line, "cell");
    job->id = json_string_value(json_object_get(job->line, "id"));
    if (!job->id || !json_is_object(job->cell) || !hg_attempt_is_file_name(job->id))
        return hg_err_set(err, HG_E_INPUT, "%s: line %zu of batch %d is not a cell", job->rd.path,
                          job->line_number + 1, job->batch_number);
    return 0;
}

int hg_job_load(const char *run, int batch, long offset, struct hg_job *job, struct hg_err *err)
{
    *job = (struct hg_job){ .batch_number = batch,
                            .line_number = (size_t)offset + variable("SLURM_ARRAY_TASK_ID"),
                            .restarts = variable("SLURM_RESTART_COUNT") };
    if (hg_rundir_find("", run, &job->rd, err) < 0 || find_cell(job, err) < 0)
        return -1;
    job->run_key = json_string_value(json_object_get(job->plan, "run_key"));
    job->site = json_object_get(job->plan, "site");
    job->workload = json_object_get(job->plan, "workload");
    job->nodes = job_count(job, "nodes");
    job->tasks_per_node = job_count(job, "tasks_per_node");
    job->tasks = job->nodes * job->tasks_per_node;
    job->cpus_per_task = job_count(job, "cpus_per_task");
    job->time_s = json_number_value(json_object_get(json_object_get(job->batch, "job"), "time_s"));
    job->gpu = json_is_true(json_object_get(job->batch, "gpu"));
    job->heartbeat_s = hg_plan_heartbeat_s(job->site);
    job->virtual_nodes =
        !hg_where_head(job->head, sizeof job->head) && getenv("SLURM_JOB_NODELIST");
    return 0;
}

void hg_job_done(struct hg_job *job)
{
    json_decref(job->plan);
    json_decref(job->line);
    hg_rundir_done(&job->rd);
}
