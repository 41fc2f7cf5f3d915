/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_OPTIONS_H
#define HG_DRIVE_OPTIONS_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "plan/batch.h"
#include "rundir/attempt_find.h"
#include "slurm/client/executor.h"
#include "rundir/attempt_find.h"

struct hg_lock;

/* Clocks and results as the loop sees them; tests replace them. NULL members: the real ones. */
struct hg_drive_io {
    double (*now)(void *context);  /* seconds since 1970 */
    double (*mono)(void *context); /* seconds that never jump */
    /* The attempt that counts, as hg_attempt_find. */
    int (*attempt)(void *context, int batch, uint32_t line, uint32_t claim, struct hg_attempt *a,
                   struct hg_err *err);
    /* The result of a good cell; a new reference. */
    json_t *(*result)(void *context, int batch, uint32_t line);
    void *context;
};

struct hg_drive_options {
    const struct hg_executor *executor;
    struct hg_executor_session *session; /* open; stays the caller's */
    double deadline_s;                   /* of its calls */
    long long running;                   /* most cells at a time over all arrays; 0: no limit */
    long long max_queued;  /* most cells in the queue; 0: as the scheduler's limits allow */
    struct hg_retry retry; /* of the matrix, as are the next three */
    struct hg_repeats repeats;
    const char *metric;   /* of the report; NULL: train_s, else wall_s */
    double gpu_hours;     /* that rounds of adaptive repeats may cost; 0: no limit */
    double visible_s;     /* how long a result may take to be seen here; negative: by file system */
    bool near;            /* a private scheduler (a box): poll it often */
    bool send_nothing;    /* submit nothing */
    bool steal;           /* take the lock from a holder on another machine */
    const char *command;  /* shown to others who find the run locked */
    const char *cluster;  /* the scheduler's name; NULL or "": not known */
    struct hg_lock *lock; /* of hg_drive_lock, consumed even on failure; NULL: it is taken here */
    const volatile sig_atomic_t *stop; /* stop between two requests when it is set; may be NULL */
    struct hg_drive_io io;
};

#endif
