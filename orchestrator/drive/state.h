/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_STATE_H
#define HG_DRIVE_STATE_H

#include "drive/options.h"
#include "rundir/journal.h"
#include "rundir/rundir.h"
#include "rundir/claim.h"

/* What the files of the loop share: the state of a drive and small helpers. The order of the files, each uses only those
 * before it: state, news (the journal), orders, queue (what the scheduler shows), ended, history, settle, window,
 * rounds, again, requests, check; drive calls them all. */

/* What this process remembers of a cell beyond the journal. */
struct hg_drive_task {
    uint32_t seen;   /* the last poll that showed its job; 0: none since we started */
    double seen_s;   /* monotonic; when that poll was begun */
    uint32_t missed; /* polls since then that did not */
    double gone_s;   /* monotonic; since when its job has ended or is missing; 0: it is there */
    double asked_s;  /* monotonic; when its cancel was last requested; 0: never */
    double proven_s; /* monotonic; since when its newest attempt has a good result; 0: none yet */
    double look_s; /* monotonic; next look for a result of a job that Slurm still shows; 0: none */
    double look_step_s; /* between the last two of them */
    double held_s;      /* monotonic; when it was last held or released; 0: never */
    bool told_hold;     /* it was held */
    bool done;          /* it shares its job, which goes on, and its newest attempt has ended */
    struct hg_claim_watch watch; /* of the process that works on it */
};

/* One cell's news; equal ones become one line of the journal. */
struct hg_drive_news {
    const char *kind; /* "state", "result", ... */
    char word[24];    /* the state or status */
    char *text;       /* NULL: none; owned */
    uint32_t submission, restarts, index;
};

/* What the scheduler has to do to a task. NEVER, REDO and RECALL also cancel it; then its cell has failed or is sent
 * again, and text says why. */
enum hg_order {
    HG_ORDER_HOLD,
    HG_ORDER_RELEASE,
    HG_ORDER_CANCEL,
    HG_ORDER_NEVER,
    HG_ORDER_REDO,
    HG_ORDER_RECALL,
};

struct hg_drive_order {
    uint32_t job_id, submission, index;
    enum hg_order what;
    const char *text;
};

/* Where a run of a configuration is in the plan. */
struct hg_drive_place {
    struct hg_turn turn;
    int batch;
    uint32_t line;
};

/* Adaptive repeats. */
struct hg_drive_rounds {
    struct hg_drive_place *places; /* by configuration, then by run; NULL: not listed yet */
    size_t n;
    /* By the first place of a configuration: what it was judged by, so that results are read once. */
    uint32_t *judged;
    struct {
        struct hg_drive_place *items;
        size_t n, cap;
    } needs;      /* of this round */
    double hours; /* GPU-hours asked for so far */
    bool told;    /* that the budget is used up */
};

/* Why pending cells wait, as the last poll showed it. */
#define HG_DRIVE_WHYS 8
struct hg_drive_why {
    char reason[64];
    size_t n; /* cells */
};

struct hg_drive {
    struct hg_rundir rd; /* borrowed members */
    const struct hg_plan *plan;
    struct hg_drive_options o;
    struct hg_lock *lock;
    struct hg_journal *journal;
    const struct hg_run_state *state; /* of the journal */
    struct hg_executor_limits limits;
    bool has_limits;
    struct hg_drive_task **tasks;  /* by batch - 1, line */
    struct hg_attempt_group group; /* of attempts, the last one that this pass has read */
    struct hg_err **refusals;      /* by batch - 1; NULL: it is submitted */

    uint32_t polls;     /* successful ones */
    double poll_wall_s; /* when the last of them was begun */
    double poll_s;      /* the same, monotonic */
    double poll_cost_s; /* CPU time of the last of them, the executor's included */
    bool fresh;         /* it was in this pass */
    bool adopted;       /* results of cells that wait were looked for */
    size_t table_tasks; /* ours that it showed */
    struct hg_drive_why whys[HG_DRIVE_WHYS];
    size_t n_whys;
    uint32_t *shown; /* by submission - 1: the last poll that showed any job of it */
    size_t n_shown;
    double started_s, changed_s, poll_due_s, look_due_s, look_step_s, history_due_s, back_due_s;
    size_t awaited; /* cells whose job is gone and whose end is not known yet */

    double away_since_s, retry_due_s; /* the scheduler does not answer; 0: it does */
    unsigned failures;
    bool said_away;

    double send_due_s; /* after "try again later" */
    unsigned send_failures;
    uint32_t chunk_max; /* most cells of a submission, halved while the scheduler has no room */
    double tokens, tokens_s; /* requests that may be made at once */
    bool sending;            /* more could be submitted, except for the tokens */
    bool crowded;            /* more could be submitted, except for the room in the table */

    struct hg_executor_counts counted; /* requests that are in the journal already */
    struct {
        struct hg_drive_news *items;
        size_t n, cap;
    } news;
    struct {
        struct hg_drive_order *items;
        size_t n, cap;
    } orders;
    struct hg_drive_rounds rounds;
};

double hg_drive_now(const struct hg_drive *d);  /* wall */
double hg_drive_mono(const struct hg_drive *d); /* monotonic */
bool hg_drive_stopped(const struct hg_drive *d);
const struct hg_submission *hg_drive_submission(const struct hg_drive *d, uint32_t number);

/* Its batch asks for something else than it did: the site or the matrix was corrected. */
bool hg_drive_is_outdated(const struct hg_drive *d, const struct hg_submission *sub);

/* How often the time limit of a cell was raised: after TIMEOUT, where its "time" is "auto". */
uint8_t hg_drive_raises(const struct hg_drive *d, int batch, const struct hg_run_cell *cell);

/* The attempt of a cell that counts, under a claim number (0: any). */
int hg_drive_find_attempt(struct hg_drive *d, int batch, uint32_t line, uint32_t claim,
                          struct hg_attempt *a, struct hg_err *err);

/* The cells that share a task with one of a submission, by line: from *begin to before *end. */
void hg_drive_mates(const struct hg_drive *d, const struct hg_submission *sub, uint32_t index,
                    uint32_t *begin, uint32_t *end);

/* It has ended with status "ok". */
bool hg_drive_is_good(const struct hg_attempt *a);

/* The scheduler did not answer: ask again later, and later each time. */
void hg_drive_away(struct hg_drive *d, const struct hg_err *why);

#endif
