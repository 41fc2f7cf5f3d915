/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "node/enter.h"
#include "node/job.h"
#include "node/launch.h"
#include "node/save.h"
#include "node/supervise.h"
#include "node/where.h"
#include "rundir/outcome.h"

struct node {
    struct hg_job job;
    struct hg_launch launch;
    struct hg_err problem; /* why the ranks cannot be started */
    struct hg_outcome outcome;
    struct hg_supervisor supervisor;
    char name[HG_ATTEMPT_NAME_MAX]; /* of the attempt */
    char *dir;
};

/* ---- The claim ---- */

/* "ranks" of the claim that n is about to make, so that ranks need no file of their own. If it cannot be made, the reason is
 * reported in the result once the attempt is ours. */
static json_t *describe_ranks(void *context, const char *dir)
{
    struct node *n = context;
    const char *problem = getenv("HPCGRID_ERROR"); /* of the batch script */

    n->problem = (struct hg_err)HG_ERR_INIT;
    hg_launch_done(&n->launch);
    if (problem && problem[0])
        hg_err_set(&n->problem, HG_E_ENV, "%s", problem);
    return n->problem.code ? NULL : hg_launch_make(&n->job, dir, &n->launch, &n->problem);
}

static void on_claim(void *context, const char *dir)
{
    struct node *n = context;

    n->outcome.dir = dir;
}

static bool is_told(void *context, double within_s)
{
    struct node *n = context;

    return hg_supervise_is_told(&n->supervisor, within_s);
}

/* 0: the attempt is ours, 1: this copy of the job has to leave, -1: err set. */
static int claim(struct node *n, unsigned submission, char why[static 256], struct hg_err *err)
{
    struct hg_comer comer = { .rd = &n->job.rd,
                              .batch = n->job.batch_number,
                              .line = n->job.line_number,
                              .id = n->job.id,
                              .run_key = n->job.run_key,
                              .submission = submission,
                              .restarts = n->job.restarts,
                              .heartbeat_s = n->job.heartbeat_s,
                              .who = hg_where_slurm(NULL),
                              .ranks = describe_ranks,
                              .claimed = on_claim,
                              .reserve = hg_save_reserve(n->job.cell),
                              .told = is_told,
                              .context = n };
    int rc;

    json_object_set_new(comer.who, "claimed_s", hg_json_number(n->outcome.start_s));
    rc = hg_enter(&comer, n->name, &n->dir, why, err);
    json_decref(comer.who);
    return rc;
}

/* ---- The attempt ---- */

static void find_out(struct node *n)
{
    const char *cwd = json_string_value(json_object_get(n->job.workload, "cwd"));
    const char *launcher =
        json_string_value(json_array_get(json_object_get(n->job.site, "launcher"), 0));
    bool srun = launcher && strcmp(basename(launcher), "srun") == 0;

    n->outcome.env = hg_where_env(cwd ? cwd : n->job.rd.path);
    n->outcome.slurm = hg_where_slurm(srun ? launcher : NULL);
}

static int start(struct node *n)
{
    if (n->problem.code)
        return -1;
    return hg_supervise_start(&n->supervisor, &n->launch, &n->problem);
}

static int run_claimed(struct node *n, int *code, struct hg_err *err)
{
    struct hg_supervisor *s = &n->supervisor;
    json_t *result = NULL;
    int rc;

    find_out(n);
    if (!n->problem.code)
        hg_launch_write_files(&n->job, n->dir, &n->problem);
    s->start_mono_s = hg_clock_mono_s();
    if (!hg_supervise_is_told(s, 0) && start(n) == 0)
        hg_supervise_wait(s);
    else
        hg_supervise_note_time(s);
    if (n->problem.code && !hg_supervise_is_told(s, 0)) /* else TERM may have caused it */
        n->outcome.problem = &n->problem;
    rc = hg_save_final(&n->outcome, &result, err);
    *code = hg_outcome_exit_code(&n->outcome, result);
    json_decref(result);
    return rc;
}

static void node_done(struct node *n)
{
    hg_save_not_at_end();
    json_decref(n->outcome.env);
    json_decref(n->outcome.slurm);
    hg_launch_done(&n->launch);
    hg_job_done(&n->job);
    free(n->dir);
}

static void begin(struct node *n)
{
    n->outcome = (struct hg_outcome){ .name = n->name,
                                      .run_key = n->job.run_key,
                                      .line = n->job.line,
                                      .workload = n->job.workload,
                                      .gpu = n->job.gpu,
                                      .cpus_per_task = n->job.cpus_per_task,
                                      .start_s = n->outcome.start_s };
    n->supervisor.job = &n->job;
    n->supervisor.outcome = &n->outcome;
    hg_save_at_end(&n->outcome);
}

int hg_node_run(const struct hg_node_args *args, int *code, char left[static 256],
                struct hg_err *err)
{
    struct node n = { .outcome = { .start_s = hg_clock_wall_s() } };
    int rc;

    *code = 0;
    left[0] = '\0';
    hg_supervise_begin(
        &n.supervisor); /* from here on TERM leaves a result: a claim without one tells nothing */
    rc = hg_job_load(args->run, args->batch, args->offset, &n.job, err);
    if (rc == 0) {
        begin(&n);
        rc = claim(&n, (unsigned)args->submission, left, err);
    }
    if (rc == 0)
        rc = run_claimed(&n, code, err);
    node_done(&n);
    return rc < 0 ? -1 : 0;
}
