/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_PROC_H
#define HG_BASE_PROC_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Where a child's standard stream goes: one of these, or a file descriptor. */
enum { HG_PROC_INHERIT = -1, HG_PROC_PIPE = -2, HG_PROC_NULL = -3 };

struct hg_proc_spec {
    const char *const
        *argv; /* argv[0] is looked up in PATH unless it has a slash; no shell is involved */
    const char *const *env; /* NULL: the caller's */
    const char *cwd;        /* NULL: the caller's */
    int in, out, err;       /* INHERIT, PIPE, NULL or a descriptor */
    bool new_session;       /* setsid: out of reach of the terminal's signals */
    int death_signal;       /* sent to the child when this process dies; 0 = none */
    int held_signal; /* the child starts with it blocked, for a program that lets it come when it is ready; 0 = none */
};
#define HG_PROC_SPEC_INIT                                                     \
    {                                                                         \
        .in = HG_PROC_INHERIT, .out = HG_PROC_INHERIT, .err = HG_PROC_INHERIT \
    }

struct hg_proc {
    pid_t pid;
    int in, out, err; /* our ends of the pipes asked for, else -1; close them yourself */
};

/* CPUs that this process may run on, at least 1: those that are switched on, less what a cpuset or
 * taskset keeps from it. */
long hg_proc_cpus(void);

/* Start a child. A program that cannot be executed is an error here (NOTFOUND if absent), not an
 * exit code. */
int hg_proc_start(const struct hg_proc_spec *spec, struct hg_proc *proc, struct hg_err *err);

/* Wait at most limit_s seconds (negative: for ever). Returns 0 with the wait status, 1 when time is
 * up, -1 with err set. */
int hg_proc_wait(pid_t pid, double limit_s, int *status, struct hg_err *err);

/* How long a program may take, and what ends it before. */
struct hg_proc_watching {
    double limit_s;
    size_t most; /* bytes to keep of each stream; 0: 16 MiB */
    /* Asked about ten times a second with what has come on stderr so far; true: enough, end it. NULL: only
     * the time counts. */
    bool (*enough)(const struct hg_buf *errout, void *context);
    void *context;
    bool late;  /* answer: it was killed because the time had passed */
    bool alone; /* answer: nobody is left who holds its stdout or stderr */
};

/* Run a program to its end and keep what it prints. out and err of spec are set
 * here. One that must be ended is killed, with all of its session where it has one of its own. Returns 0 with
 * the wait status, -1 with err set: it could not be started. */
int hg_proc_watch(struct hg_proc_spec *spec, struct hg_proc_watching *watch, struct hg_buf *out,
                  struct hg_buf *errout, int *status, struct hg_err *err);

/* Run a program to its end and keep what it prints (each stream at most 16 MiB; NULL: discarded).
 * When limit_s passes it is killed and the call fails with ENV. *status is the wait status. It dies with
 * the caller. */
int hg_proc_capture(const char *const *argv, double limit_s, struct hg_buf *out,
                    struct hg_buf *errout, int *status, struct hg_err *err);

/* "exit code 3" or "signal 9 (Killed)". */
void hg_proc_status_format(int status, char out[static 64]);

#endif
