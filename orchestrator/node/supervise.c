/* SPDX-License-Identifier: Apache-2.0 */
#include "node/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "node/save.h"
#include "rundir/claim.h"

/* Slurm sends TERM to the steps at the same time as to us; the launcher gets one of its own only if it does not end by that. */
#define FORWARD_AFTER_S 2

/* Slurm kills what does not end after TERM. Without Slurm exec does. */
#define KILL_AFTER_S 30

/* Slurm sends TERM to the processes of a job one after another, by other daemons on other nodes: ranks may have died of it before
 * exec receives it. Exec waits this long for its own. */
#define TOLD_WITHIN_S 10

void hg_supervise_begin(struct hg_supervisor *s)
{
    static const int wanted[] = { SIGTERM, SIGINT,  SIGUSR1, SIGUSR2,
                                  SIGHUP,  SIGCHLD, SIGTSTP, SIGCONT };

    sigemptyset(&s->signals);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        sigaddset(&s->signals, wanted[i]);
    sigprocmask(SIG_BLOCK, &s->signals, NULL);
}

static int open_log(const struct hg_supervisor *s, const char *name, struct hg_err *err)
{
    char *path = hg_fs_join(s->outcome->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        hg_err_sys(err, "cannot write %s", path);
    free(path);
    return fd;
}

int hg_supervise_start(struct hg_supervisor *s, const struct hg_launch *l, struct hg_err *err)
{
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc proc;
    char cpus[24];
    int rc = -1;

    s->direct = l->direct;
    spec.argv = (const char *const *)l->words.items;
    spec.in = HG_PROC_NULL;
    spec.out = open_log(s, "out.log", err);
    spec.err = open_log(s, "err.log", err);
    /* Slurm sends signals to the batch script's process group: exec decides which of them are passed on */
    spec.new_session = true;
    spec.death_signal = s->direct ? SIGTERM : SIGKILL;
    spec.held_signal = s->direct ? SIGUSR1 : 0; /* a rank unblocks it */
    snprintf(cpus, sizeof cpus, "%lld", s->job->cpus_per_task);
    setenv("SRUN_CPUS_PER_TASK", cpus, 1);
    if (spec.out >= 0 && spec.err >= 0)
        rc = hg_proc_start(&spec, &proc, err);
    if (rc == 0)
        s->pid = proc.pid;
    else
        hg_err_wrap(err, "%s", s->direct ? "rank" : "launcher");
    if (spec.out >= 0)
        close(spec.out);
    if (spec.err >= 0)
        close(spec.err);
    return rc;
}

static double deadline_s(const struct hg_supervisor *s)
{
    const char *end = getenv("SLURM_JOB_END_TIME");

    if (end)
        return strtod(end, NULL);
    return s->job->time_s > 0 ? s->outcome->start_s + s->job->time_s : 0;
}

/* TERM: is it the time limit? Slurm counts from a little before we began. */
static enum hg_stop why_stopped(const struct hg_supervisor *s)
{
    double end = deadline_s(s);
    double slack = s->job->time_s > 120 ? 30 : s->job->time_s / 4;

    if (end > 0)
        end += s->outcome->suspended_s;
    return end > 0 && hg_clock_wall_s() >= end - slack ? HG_STOP_TIMEOUT : HG_STOP_CANCELLED;
}

void hg_supervise_note_time(struct hg_supervisor *s)
{
    s->outcome->wall_s = hg_clock_mono_s() - s->start_mono_s;
    s->outcome->end_s = hg_clock_wall_s();
}

/* TERM has come. A result is written at once: if the workload takes longer than Slurm waits before
 * it kills, this is what stays. */
static void stop(struct hg_supervisor *s)
{
    double now_s = hg_clock_mono_s();

    if (s->outcome->stop != HG_STOP_NONE)
        return;
    s->outcome->stop = why_stopped(s);
    if (s->direct)
        kill(-s->pid, SIGTERM);
    else
        s->forward_s = now_s + FORWARD_AFTER_S;
    if (!getenv("SLURM_JOB_ID"))
        s->kill_s = now_s + KILL_AFTER_S;
    s->outcome->ending = true;
    hg_supervise_note_time(s);
    hg_save_early(s->outcome);
    s->outcome->ending = false;
}

/* Slurm suspends a job with TSTP, then STOP. CONT alone says nothing: it comes before TERM, too. */
static void on_pause(struct hg_supervisor *s, bool begins)
{
    double now_s = hg_clock_mono_s();

    if (begins && s->paused_s == 0)
        s->paused_s = now_s;
    if (begins || s->paused_s == 0)
        return;
    s->outcome->suspended_s += now_s - s->paused_s;
    s->paused_s = 0;
}

static void on_signal(struct hg_supervisor *s, int signal)
{
    if (signal == SIGTSTP || signal == SIGCONT)
        on_pause(s, signal == SIGTSTP);
    else if (signal == SIGTERM || signal == SIGINT)
        stop(s);
    else if (signal == SIGUSR1 || signal == SIGUSR2 || signal == SIGHUP)
        kill(s->direct ? -s->pid : s->pid, signal);
}

/* The heartbeat. An attempt that was taken over in the meantime must not work beside its successor. */
static void beat(struct hg_supervisor *s, double now_s)
{
    if (now_s < s->beat_s)
        return;
    s->beat_s = now_s + s->job->heartbeat_s;
    if (hg_claim_beat(s->outcome->dir) || s->outcome->stop == HG_STOP_SUPERSEDED)
        return;
    s->outcome->stop = HG_STOP_SUPERSEDED;
    s->kill_s = now_s + KILL_AFTER_S;
    kill(s->direct ? -s->pid : s->pid, SIGTERM);
}

static void on_time(struct hg_supervisor *s)
{
    double now_s = hg_clock_mono_s();

    beat(s, now_s);
    if (s->forward_s > 0 && now_s >= s->forward_s) {
        s->forward_s = 0;
        kill(s->pid, SIGTERM);
    }
    if (s->kill_s > 0 && now_s >= s->kill_s) {
        s->kill_s = 0;
        kill(-s->pid, SIGKILL);
    }
}

bool hg_supervise_is_told(struct hg_supervisor *s, double within_s)
{
    double end_s = hg_clock_mono_s() + within_s;
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    while (s->outcome->stop == HG_STOP_NONE) {
        double left_s = fmax(end_s - hg_clock_mono_s(), 0);
        struct timespec left = { .tv_sec = (time_t)left_s,
                                 .tv_nsec = (long)(fmod(left_s, 1) * 1e9) };

        if (sigtimedwait(&wanted, NULL, &left) > 0)
            s->outcome->stop = why_stopped(s);
        else if (left_s <= 0)
            break;
    }
    return s->outcome->stop != HG_STOP_NONE;
}

void hg_supervise_wait(struct hg_supervisor *s)
{
    const struct timespec tick = { .tv_sec = 1 };
    pid_t got;

    while ((got = waitpid(s->pid, &s->outcome->status, WNOHANG)) != s->pid) {
        if (got < 0 && errno == ECHILD)
            break;
        on_signal(s, sigtimedwait(&s->signals, NULL, &tick));
        on_time(s);
    }
    on_pause(s, false);
    hg_supervise_note_time(s);
    s->outcome->ended = true;
    if (s->outcome->status != 0)
        hg_supervise_is_told(
            s, getenv("SLURM_JOB_ID") && hg_outcome_died_of_term(s->outcome) ? TOLD_WITHIN_S : 0);
}
