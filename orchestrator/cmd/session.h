/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_SESSION_H
#define HG_CMD_SESSION_H

#include "matrix/matrix.h"
#include "drive/drive.h"

/* What submit, run, watch and resume share: a run with its plan, a way to the scheduler, the loop. */
struct hg_session {
    struct hg_rundir rd;
    struct hg_plan *plan;
    const struct hg_executor *executor;
    struct hg_exec *exec;
    struct hg_drive *drive;
    struct hg_lock *lock; /* until the drive has it */
    char *box;            /* name of the run's own box; NULL: none */
    bool box_is_new;      /* started by this process, and nothing was submitted to it */
    bool box_is_over;     /* its run is over: it may go */
    long long running, max_queued;
    struct hg_retry retry;
    bool send_nothing;
    char cluster[64]; /* the scheduler's name; "": not known */
    bool *told;       /* failed cells that were spoken of, by position in the plan */
    size_t told_n;
    char *command; /* as typed, for whoever finds the run locked */
};

/* Where runs are: --reports, HPCGRID_REPORTS, or "reports". */
const char *hg_cmd_reports(const char *option);

/* Choices of a command that starts from a matrix. */
struct hg_session_wish {
    const char *matrix, *site, *select, *reports;
    bool fresh;     /* a new run, though there is one */
    bool box;       /* in a box of its own */
    bool skip_data; /* do not ask the worker whether the data are there */
    bool steal;
};

/* From a matrix: read it, reach the scheduler, continue its newest run or begin one, write the plan.
 * Nothing is written before matrix and scheduler are known to be good. */
int hg_session_begin(struct hg_session *s, const struct hg_session_wish *wish, int argc,
                     char **argv, struct hg_errs *errs);

/* From a run's folder (or its name, or its matrix's file). */
struct hg_session_back {
    const char *reports, *run;
    const char *command; /* "resume" */
    bool steal, send_nothing;
    bool wait; /* for a scheduler that does not answer, where the run has submissions */
};

/* 0; 1: a signal came while it waited, return hg_session_left(); -1: errs filled. */
int hg_session_resume(struct hg_session *s, const struct hg_session_back *back,
                      struct hg_errs *errs);

/* The exit code of a command that a signal has stopped. */
int hg_session_left(void);

/* Only the scheduler, for those who do without the lock. telling: the run's jobs are told something, so it must be at
 * home here. Close with hg_session_done. */
int hg_session_reach(struct hg_session *s, const char *reports, const char *word, bool telling,
                     struct hg_err *err);

/* Before its jobs are told something: is this the cluster that has them? One that does not answer is taken for it. */
int hg_session_check_cluster(struct hg_session *s, const struct hg_run_state *state,
                             struct hg_err *err);

/* The ways to end without a good result, after which a person may want a cell again. */
#define HG_SESSION_BAD                                                                            \
    (1u << HG_CELL_FAILED | 1u << HG_CELL_TIMEOUT | 1u << HG_CELL_OOM | 1u << HG_CELL_NODE_FAIL | \
     1u << HG_CELL_CANCELLED | 1u << HG_CELL_LOST)

/* Let cells run again that ended in one of the statuses (bits of HG_SESSION_BAD) and that select
 * picks (NULL: all), and say how many. Returns 0, or -1 with errs filled. */
int hg_session_again(struct hg_session *s, unsigned statuses, const char *select,
                     struct hg_errs *errs);

/* Ask before the first submission whether the scheduler would take it all. */
int hg_session_check(struct hg_session *s, struct hg_errs *errs);

/* Drive to the end, telling what happens. 0: over; 1: stopped by a signal; -1: errs filled. */
int hg_session_drive(struct hg_session *s, struct hg_errs *errs);

/* Drive, report, remove the run's own box. Returns the exit code, or -1. */
int hg_session_finish(struct hg_session *s, struct hg_errs *errs);

void hg_session_done(struct hg_session *s);

/* Point SLURM_CONF at the box that a run was started in, if there is one. *box: its name, yours (NULL:
 * none). */
int hg_cmd_use_box(const struct hg_rundir *rd, char **box, struct hg_err *err);

/* Catch Ctrl-C and its like: they set *hg_cmd_stop; a second one ends the program. */
extern volatile sig_atomic_t hg_cmd_stop;
void hg_cmd_catch_signals(void);

/* "ok 12 · running 3 · waiting 9" */
void hg_cmd_counts(const size_t counts[HG_CELL_STATES], struct hg_buf *out);
/* The same of a run, with " (9 held)" behind it. */
void hg_cmd_state(const struct hg_run_state *state, struct hg_buf *out);

#endif
