/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/ranges.h"
#include "node/node.h"
#include "node/rank.h"

static struct {
    const char *run, *attempt, *request, *tasks;
    long batch, offset, submission, together;
    bool rank;
} o = { .together = 1 };

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "run", &o.run, "DIR", "the run's folder", 0, 0 },
    { HG_OPT_INT, 0, "batch", &o.batch, "N", "number of the batch", 1, 1e6 },
    { HG_OPT_INT, 0, "offset", &o.offset, "N", "line of array index 0 in the cells file", 0, 1e9 },
    { HG_OPT_INT, 0, "submission", &o.submission, "N", "claim number; 0: by hand", 0, 1e9 },
    { HG_OPT_INT, 0, "together", &o.together, "N", "lines that share an array index", 1, 1e6 },
    { HG_OPT_STRING, 0, "cells", &o.tasks, "SET",
      "of those lines, counted from --offset; absent: all", 0, 0 },
    { HG_OPT_STRING, 0, "request", &o.request, "HASH", "what its job was submitted for", 0, 0 },
    { HG_OPT_FLAG, 0, "rank", &o.rank, NULL, "be one rank: run the command after --", 0, 0 },
    { HG_OPT_STRING, 0, "attempt", &o.attempt, "DIR", "with --rank: the attempt's folder", 0, 0 },
    { 0 },
};

static int run_rank(char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    int code = hg_rank_run(o.attempt, argv, &err);

    if (code == 0 && err.code)
        return hg_errs_add(errs, &err);
    if (err.code)
        hg_log(HG_LOG_ERROR, "%s", err.text);
    return code;
}

/* One cell of the job; *code: the job's exit code, which is that of the first cell that failed. */
static int run_cell(struct hg_node_args *args, const char *task, int *code, bool *stop,
                    struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_node_end end;

    if (hg_node_run(args, &end, &err) < 0) {
        if (task)
            hg_err_wrap(&err, "task %s", task);
        return hg_errs_add(errs, &err);
    }
    if (*end.left)
        hg_info("task %s: nothing to do for this copy of the job: %s", task ? task : "0", end.left);
    *code = *code ? *code : end.code;
    *stop = end.stop;
    args->follows = true;
    return 0;
}

/* The cells of this array index, one after another. A cell that fails does not keep the next one from its run. */
static int run_cells(struct hg_errs *errs)
{
    struct hg_node_args args = {
        .run = o.run,
        .batch = (int)o.batch,
        .submission = o.submission,
        .request = o.request,
    };
    const char *task =
        getenv("SLURM_ARRAY_TASK_ID"); /* all tasks of a submission share its output */
    uint32_t first = (uint32_t)(task ? strtoul(task, NULL, 10) : 0) * (uint32_t)o.together;
    struct hg_ranges cells = HG_RANGES_INIT;
    struct hg_err err = HG_ERR_INIT;
    int code = 0, rc = 0;
    bool stop = false;

    if (o.tasks && hg_ranges_parse(o.tasks, UINT32_MAX - 1, &cells, &err) < 0)
        return hg_errs_add(errs, &err);
    for (uint32_t i = first; i < first + (uint32_t)o.together && rc == 0 && !stop; i++) {
        args.line = (size_t)o.offset + i;
        if (!o.tasks || hg_ranges_has(&cells, i))
            rc = run_cell(&args, task, &code, &stop, errs);
    }
    hg_ranges_done(&cells);
    return rc < 0 ? -1 : code;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    if (o.rank && o.attempt && argc > 0) {
        argv[argc] = NULL; /* the options that stood there are gone */
        return run_rank(argv, errs);
    }
    if (!o.rank && o.run && o.batch && argc == 0)
        return run_cells(errs);
    hg_err_set(hg_errs_next(errs), HG_E_USAGE,
               "exec: needs --run DIR --batch N, or --rank --attempt DIR -- COMMAND");
    return -1;
}

const struct hg_cmd hg_cmd_exec = {
    .name = "exec",
    .args = "[-- COMMAND]",
    .summary = "Run the cells of a job on its node; batch scripts call this.",
    .details = "Claims the attempt, starts the workload under the site's launcher, and writes\n"
               "result.json in every case. Exits with the workload's code.",
    .opts = opts,
    .max_args = -1,
    .hidden = true,
    .run = run,
};
