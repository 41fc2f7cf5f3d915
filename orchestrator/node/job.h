/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_JOB_H
#define HG_NODE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "plan/template.h"
#include "rundir/rundir.h"

/* The cell that this job (or this task of its array) runs, from the run's plan and Slurm's variables. */
struct hg_job {
    struct hg_rundir rd;
    int batch_number;    /* from 1 */
    size_t line_number;  /* of the cell, from 0, in the batch's cells file */
    json_t *plan, *line; /* plan.json; the cell's line */
    const json_t *batch; /* in plan, as are the next two */
    const json_t *site, *workload;
    json_t *rehearsal;  /* of site; NULL: it is none */
    bool shrink;        /* it makes everything tiny */
    const json_t *cell; /* in line */
    const char *id, *run_key;
    unsigned restarts;  /* Slurm's count */
    char head[256];     /* address of the first node */
    bool virtual_nodes; /* of this machine: a box */
    bool gpu;           /* the cell's hardware has GPUs */
    long long tasks, tasks_per_node, nodes, cpus_per_task;
    double time_s; /* limit; 0: unknown */
    double own_s;  /* limit of the cell where it shares its job; 0: none */
    double lead_s; /* so much before it the ranks get USR1; 0: they do not */
    double heartbeat_s;
};

/* Read it. Returns 0, or -1 with err set; hg_job_done either way. */
int hg_job_load(const char *run, int batch, size_t line, struct hg_job *job, struct hg_err *err);
void hg_job_done(struct hg_job *job);

/* Is this still what the plan wants: does the matrix have the cell, and does its batch ask for what the job was submitted for (request;
 * NULL: by hand)? why is the reason if not. */
bool hg_job_is_wanted(const struct hg_job *job, const char *request, char why[static 256]);

/* What starts the ranks of a cell. */
struct hg_launch {
    /* The launcher's argv, with `hpcgrid exec --rank` and the workload's command. */
    struct hg_words words;
    bool direct; /* without a launcher: one process, on this node */
};

/* Make it for an attempt's folder. Returns "ranks" of the claim (node/rank.h): environment and working directory, a new reference; or
 * NULL with err set. hg_launch_done either way. */
json_t *hg_launch_make(const struct hg_job *job, const char *dir, struct hg_launch *l,
                       struct hg_err *err);
void hg_launch_done(struct hg_launch *l);

/* Write the files that the workload reads into the attempt's folder: cell.json, and the workload's own. */
int hg_launch_write_files(const struct hg_job *job, const char *dir, struct hg_err *err);

#endif
