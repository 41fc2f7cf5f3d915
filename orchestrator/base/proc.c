/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define CAPTURE_MAX ((size_t)16 << 20)
#define CPUS_MAX (1 << 20) /* more than any kernel counts */

struct stream {
    int child; /* what the child gets as its descriptor */
    int ours;  /* our end of a pipe, or -1 */
    bool close_child;
};

/* The kernel refuses a set that is smaller than its own. */
long hg_proc_cpus(void)
{
    for (size_t cpus = 1024; cpus <= CPUS_MAX; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        size_t size = CPU_ALLOC_SIZE(cpus);
        int rc = set ? sched_getaffinity(0, size, set) : -1;
        int n = rc == 0 ? CPU_COUNT_S(size, set) : 0;
        bool small = set && rc < 0 && errno == EINVAL;

        CPU_FREE(set);
        if (n > 0)
            return n;
        if (!small)
            break;
    }
    return sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
}

static int open_stream(int want, bool child_reads, int standard, struct stream *s)
{
    int ends[2];

    *s = (struct stream){ .child = want, .ours = -1 };
    if (want == HG_PROC_INHERIT) {
        s->child = standard;
    } else if (want == HG_PROC_NULL) {
        s->child = open("/dev/null", (child_reads ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
        s->close_child = true;
    } else if (want == HG_PROC_PIPE) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -1;
        s->child = ends[child_reads ? 0 : 1];
        s->ours = ends[child_reads ? 1 : 0];
        s->close_child = true;
    }
    return s->child < 0 ? -1 : 0;
}

static void close_stream(struct stream *s, bool ours_too)
{
    if (s->close_child && s->child >= 0)
        close(s->child);
    if (ours_too && s->ours >= 0)
        close(s->ours);
}

/* Put descriptor fd at place `to` for the child; a descriptor already there loses its close-on-exec
 * flag. */
static int place_fd(int fd, int to)
{
    if (fd == to)
        return fcntl(fd, F_SETFD, 0);
    return dup2(fd, to);
}

static void run_child(const struct hg_proc_spec *spec, struct stream s[3], pid_t parent, int report)
{
    sigset_t held;
    int sys;

    sigemptyset(&held);
    if (spec->held_signal)
        sigaddset(&held, spec->held_signal);
    sigprocmask(SIG_SETMASK, &held, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 3; i++) /* out of the way of 0..2 first */
        if (s[i].child >= 0 && s[i].child < i)
            s[i].child = fcntl(s[i].child, F_DUPFD_CLOEXEC, 3);
    if (spec->new_session)
        setsid();
    if (spec->death_signal) {
        prctl(PR_SET_PDEATHSIG, spec->death_signal);
        if (getppid() != parent) /* it died before we asked */
            _exit(127);
    }
    if (place_fd(s[0].child, 0) >= 0 && place_fd(s[1].child, 1) >= 0 &&
        place_fd(s[2].child, 2) >= 0 && (!spec->cwd || chdir(spec->cwd) == 0)) {
        if (spec->env)
            execvpe(spec->argv[0], (char *const *)spec->argv, (char *const *)spec->env);
        else
            execvp(spec->argv[0], (char *const *)spec->argv);
    }
    sys = errno;
    (void)!write(report, &sys, sizeof sys);
    _exit(127);
}

int hg_proc_start(const struct hg_proc_spec *spec, struct hg_proc *proc, struct hg_err *err)
{
    struct stream s[3] = { { .child = -1, .ours = -1 },
                           { .child = -1, .ours = -1 },
                           { .child = -1, .ours = -1 } };
    int report[2] = { -1, -1 };
    char reason[HG_ERR_REASON_MAX];
    pid_t parent = getpid(), pid = -1;
    int rc = -1, sys = 0;

    if (open_stream(spec->in, true, 0, &s[0]) < 0 || open_stream(spec->out, false, 1, &s[1]) < 0 ||
        open_stream(spec->err, false, 2, &s[2]) < 0 || pipe2(report, O_CLOEXEC) < 0) {
        hg_err_sys(err, "cannot start %s", spec->argv[0]);
        goto out;
    }
    pid = fork();
    if (pid < 0) {
        hg_err_sys(err, "cannot start %s", spec->argv[0]);
        goto out;
    }
    if (pid == 0)
        run_child(spec, s, parent, report[1]);
    close(report[1]);
    report[1] = -1;
    while (read(report[0], &sys, sizeof sys) < 0 && errno == EINTR)
        ;
    if (sys) {
        waitpid(pid, NULL, 0);
        hg_err_set(err, sys == ENOENT ? HG_E_NOTFOUND : HG_E_ENV, "cannot start %s: %s",
                   spec->argv[0], hg_err_reason(sys, reason));
        goto out;
    }
    *proc = (struct hg_proc){ .pid = pid, .in = s[0].ours, .out = s[1].ours, .err = s[2].ours };
    rc = 0;
out:
    for (int i = 0; i < 3; i++)
        close_stream(&s[i], rc < 0);
    if (report[0] >= 0)
        close(report[0]);
    if (report[1] >= 0)
        close(report[1]);
    return rc;
}

int hg_proc_wait(pid_t pid, double limit_s, int *status, struct hg_err *err)
{
    double end = hg_clock_mono_s() + limit_s;
    double pause = 0.001;

    for (;;) {
        pid_t got = waitpid(pid, status, limit_s < 0 ? 0 : WNOHANG);

        if (got == pid)
            return 0;
        if (got < 0 && errno != EINTR)
            return hg_err_sys(err, "cannot wait for process %ld", (long)pid);
        if (limit_s >= 0 && hg_clock_mono_s() >= end)
            return 1;
        if (got == 0) {
            hg_clock_sleep_s(pause);
            pause = pause < 0.05 ? pause * 1.5 : pause;
        }
    }
}

/* Move what is readable into the buffer (or nowhere). Closes the descriptor and sets it to -1 at
 * its end. */
static void drain(int *fd, size_t most, struct hg_buf *into)
{
    char chunk[16384];
    ssize_t n = read(*fd, chunk, sizeof chunk);

    if (n > 0 && into && into->len < most)
        hg_buf_append(into, chunk, (size_t)n);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        close(*fd);
        *fd = -1;
    }
}

/* Read both streams until they end (true) or the time is up. */
static bool read_streams(struct hg_proc *proc, size_t most, double end, struct hg_buf *out,
                         struct hg_buf *errout)
{
    while (proc->out >= 0 || proc->err >= 0) {
        struct pollfd fds[2] = { { .fd = proc->out, .events = POLLIN },
                                 { .fd = proc->err, .events = POLLIN } };
        int left_ms = (int)((end - hg_clock_mono_s()) * 1000);

        if (left_ms <= 0 || (poll(fds, 2, left_ms) < 0 && errno != EINTR))
            return false;
        if (fds[0].revents)
            drain(&proc->out, most, out);
        if (fds[1].revents)
            drain(&proc->err, most, errout);
    }
    return true;
}

/* Read until there is reason to end the child (false), or its streams have ended. */
static bool watch_streams(struct hg_proc *proc, struct hg_proc_watching *watch, double end,
                          struct hg_buf *out, struct hg_buf *errout)
{
    for (;;) {
        double now = hg_clock_mono_s();
        double next = watch->enough ? fmin(end, now + 0.1) : end;

        if (read_streams(proc, watch->most, next, out, errout))
            return true;
        if (watch->enough && watch->enough(errout, watch->context))
            return false;
        watch->late = hg_clock_mono_s() >= end;
        if (watch->late)
            return false;
    }
}

int hg_proc_watch(struct hg_proc_spec *spec, struct hg_proc_watching *watch, struct hg_buf *out,
                  struct hg_buf *errout, int *status, struct hg_err *err)
{
    double end = hg_clock_mono_s() + watch->limit_s;
    struct hg_proc proc;
    bool ended, quiet;
    double left_s;

    if (!watch->most)
        watch->most = CAPTURE_MAX;
    spec->out = spec->err = HG_PROC_PIPE;
    if (hg_proc_start(spec, &proc, err) < 0)
        return -1;
    quiet = watch_streams(&proc, watch, end, out, errout);
    left_s =
        quiet ? fmax(end - hg_clock_mono_s(), 0) : 0; /* it may be over, and others hold them */
    ended = (quiet || watch->late) && hg_proc_wait(proc.pid, left_s, status, err) == 0;
    watch->late = (quiet || watch->late) && !ended;
    if (!ended) {
        kill(spec->new_session ? -proc.pid : proc.pid, SIGKILL);
        hg_proc_wait(proc.pid, -1, status, err);
    }
    watch->alone = read_streams(&proc, watch->most, hg_clock_mono_s() + 0.5, out, errout);
    if (proc.out >= 0)
        close(proc.out);
    if (proc.err >= 0)
        close(proc.err);
    return 0;
}

int hg_proc_capture(const char *const *argv, double limit_s, struct hg_buf *out,
                    struct hg_buf *errout, int *status, struct hg_err *err)
{
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc_watching watch = { .limit_s = limit_s };

    spec.argv = argv;
    spec.in = HG_PROC_NULL;
    spec.death_signal = SIGKILL; /* nobody else waits for it */
    if (hg_proc_watch(&spec, &watch, out, errout, status, err) < 0)
        return -1;
    if (watch.late)
        return hg_err_set(err, HG_E_ENV, "%s did not end within %g s", argv[0], limit_s);
    return 0;
}

void hg_proc_status_format(int status, char out[static 64])
{
    if (WIFSIGNALED(status))
        snprintf(out, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(out, 64, "exit code %d", WEXITSTATUS(status));
}
