/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_SESSION_H
#define HG_CMD_SESSION_H

#include "cmd/scheduler.h"
#include "drive/drive.h"
#include "matrix/matrix.h"

/* What submit, run, watch, resume and retry share: a run with its plan, the way to the scheduler, the drive. */
struct hg_session {
    struct hg_rundir rd;
    struct hg_plan *plan;
    struct hg_scheduler scheduler;
    struct hg_drive *drive;
    struct hg_lock *lock; /* until the drive has it */
    char *command;        /* as typed, for another process that finds the run locked */
    long long running, max_queued;
    struct hg_retry retry;
    struct hg_repeats repeats;
    double gpu_hours;
    char *metric;              /* of the report; NULL: not said */
    struct hg_names *names;    /* of the cells, once one is shown */
    struct hg_words elsewhere; /* of several sites: what runs at the others, and how */
    bool steal, send_nothing;
    const char *notify; /* --notify: run at events (cmd/notify.h); NULL: none */
    bool json;          /* --json: the end of the run is told as JSON, not as tables */
    bool box_is_new;    /* its box was started by this process, and nothing was submitted to it */
    bool box_is_over;   /* the run in the box is over: the box may go */
};

/* From a matrix. */
struct hg_begin_options {
    const char *matrix, *site, *select, *reports;
    bool fresh;      /* a new run, even if there is one */
    bool box;        /* in a box of its own */
    bool shrink;     /* there: models, data and epochs are made tiny */
    bool data_check; /* ask the worker whether it has the data sets */
    bool steal;
};

/* Read the matrix, reach the scheduler, continue the matrix's newest run or create one, write the plan, open the drive. Nothing is
 * written before matrix and scheduler are known to be good. Returns 0, or -1 with errs filled and the session closed. */
int hg_session_begin(struct hg_session *s, const struct hg_begin_options *o, int argc, char **argv,
                     struct hg_errs *errs);

/* From a run's folder (or its name, or its matrix's file). */
struct hg_resume_options {
    const char *reports, *run;
    const char *command; /* "resume" */
    bool steal, send_nothing;
    bool wait; /* for a scheduler that does not answer, if the run has submissions */
};

/* Returns 0; 1: a signal came while it waited (return hg_signals_code()); -1: errs filled. Closed unless 0. */
int hg_session_resume(struct hg_session *s, const struct hg_resume_options *o,
                      struct hg_errs *errs);

/* The states without a good result, after which a person may run a cell again. */
#define HG_SESSION_BAD                                                                            \
    (1u << HG_CELL_FAILED | 1u << HG_CELL_TIMEOUT | 1u << HG_CELL_OOM | 1u << HG_CELL_NODE_FAIL | \
     1u << HG_CELL_CANCELLED | 1u << HG_CELL_LOST)

/* Let cells run again that ended in one of the states (bits of HG_SESSION_BAD) and that select picks (NULL: all), and say how
 * many. Returns 0, or -1 with errs filled. */
int hg_session_again(struct hg_session *s, unsigned statuses, const char *select,
                     struct hg_errs *errs);

/* Append what a cell is called; line from 0. */
void hg_session_append_name(struct hg_session *s, int batch, size_t line, struct hg_buf *out);

/* Say what the matrix has for other sites, if it has. */
void hg_session_tell_elsewhere(const struct hg_session *s);

/* Close everything; take down the run's box if the run is over, or if the box is new and nothing was submitted to it. */
void hg_session_done(struct hg_session *s);

/* A run whose jobs are cancelled, held or released without its lock: another process may drive it meanwhile. */
struct hg_reach {
    struct hg_rundir rd;
    struct hg_scheduler scheduler;
    struct hg_run_state *state; /* its journal */
};

/* Find the run and the way to its jobs. Fails if the folder was moved or copied, or the cluster is another one. Call
 * hg_reach_done either way. */
int hg_reach_open(struct hg_reach *r, const char *reports, const char *run, struct hg_err *err);
void hg_reach_done(struct hg_reach *r);

/* Afterwards: if no process drives the run, journal what became of the request, in passes until settled says so (NULL: one pass) or
 * limit_s have passed. A process that drives the run does this itself. */
void hg_reach_settle(const char *reports, const char *run, const char *command,
                     bool (*settled)(const struct hg_run_state *state), double limit_s);

/* The hint if Slurm did not get the request. */
#define HG_REACH_NOTED                                                                            \
    "the request is noted in the run; the process that drives it, or the next `hpcgrid resume`, " \
    "carries it out"

#endif
