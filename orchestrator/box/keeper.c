/* SPDX-License-Identifier: Apache-2.0 */
#include "box/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "box/process.h"
#include "box/record.h"

#define STARTED_S 240.0 /* silence of a keeper that starts daemons */
#define STOP_S 20.0
#define POLITE_S 1.0 /* between SIGTERM and SIGKILL */

struct keeper {
    const struct hg_box_setup *setup;
    json_t *record;
    struct hg_box_daemons daemons;
    sigset_t signals;
};

/* ---- the record ---- */

static int save_record(struct keeper *kp, struct hg_err *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < kp->daemons.n; i++) {
        json_t *o = hg_box_record_encode(hg_box_process_find(kp->daemons.items[i].pid));

        json_object_set_new(o, "name", json_string(kp->daemons.items[i].name));
        json_array_append_new(list, o);
    }
    json_object_set_new(kp->record, "keeper", hg_box_record_encode(hg_box_process_find(getpid())));
    json_object_set_new(kp->record, "daemons", list);
    return hg_box_record_save(kp->setup->dir, kp->record, err);
}

/* ---- ending ---- */

/* Collect the dead; daemons among them are noted. */
static void reap(struct keeper *kp)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (size_t i = 0; i < kp->daemons.n; i++)
            if (kp->daemons.items[i].pid == pid)
                kp->daemons.items[i].pid = 0;
}

/* First the daemons, so that nothing new is started, then what is left, then by force. */
static void end_all(struct keeper *kp)
{
    double begin = hg_clock_mono_s(), end = begin + STOP_S;
    bool polite = true;

    for (size_t i = kp->daemons.n; i-- > 1;)
        if (kp->daemons.items[i].pid)
            kill(kp->daemons.items[i].pid, SIGTERM);
    hg_box_process_signal_tree(getpid(), SIGTERM);
    hg_box_process_signal_tree(getpid(),
                               SIGCONT); /* a stopped process would sleep through the first */
    while (hg_box_process_signal_tree(getpid(), polite ? 0 : SIGKILL) && hg_clock_mono_s() < end) {
        reap(kp);
        hg_clock_sleep_s(0.02);
        polite = hg_clock_mono_s() < begin + POLITE_S;
    }
    reap(kp);
}

/* ---- the process ---- */

static int begin(struct keeper *kp, struct hg_err *err)
{
    if (save_record(kp, err) < 0)
        return -1;
    for (size_t i = 0; i < kp->daemons.n; i++)
        if (hg_box_daemons_start(kp->setup, &kp->daemons.items[i], err) < 0 ||
            (kp->daemons.items[i].kind != HG_BOX_SLURMD && save_record(kp, err) < 0))
            return -1;
    return save_record(kp, err);
}

static void heal(struct keeper *kp)
{
    struct hg_err err = HG_ERR_INIT;
    bool changed = false;

    reap(kp);
    for (size_t i = 0; i < kp->daemons.n; i++)
        if (!kp->daemons.items[i].pid) {
            changed = true;
            if (hg_box_daemons_start(kp->setup, &kp->daemons.items[i], &err) < 0)
                break;
        }
    if (changed)
        save_record(kp, &(struct hg_err)HG_ERR_INIT);
}

static void stay(struct keeper *kp)
{
    int sig;

    for (;;) {
        if (sigwait(&kp->signals, &sig) != 0)
            continue;
        if (sig == SIGCHLD)
            reap(kp);
        else if (sig == SIGHUP)
            heal(kp);
        else
            break;
    }
    end_all(kp);
}

/* Cut the ties with the caller: its session, its files, its folder. Only the report stays. */
static void detach(struct keeper *kp, int *report)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "hpcgrid-box");
    umask(022);
    if (chdir("/") < 0)
        _exit(1);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    dup2(*report, 3);
    *report = 3;
    fcntl(3, F_SETFD, FD_CLOEXEC);
    if (syscall(SYS_close_range, 4, ~0U, 0) < 0) /* glibc knows it since 2.34, Linux since 5.9 */
        for (int fd = 4; fd < sysconf(_SC_OPEN_MAX); fd++)
            close(fd);
    sigemptyset(&kp->signals);
    sigaddset(&kp->signals, SIGTERM);
    sigaddset(&kp->signals, SIGINT);
    sigaddset(&kp->signals, SIGHUP);
    sigaddset(&kp->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &kp->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* The keeper reports to its starter by a struct hg_err, with no code if all went well. */
static void keep(struct keeper *kp, int report)
{
    struct hg_err err = HG_ERR_INIT;
    int rc;

    detach(kp, &report);
    hg_box_daemons_list(kp->setup->spec, &kp->daemons);
    rc = begin(kp, &err);
    if (rc < 0)
        end_all(kp);
    hg_fs_write_all(report, &err, sizeof err);
    close(report);
    if (rc == 0)
        stay(kp);
    _exit(0);
}

static int read_report(int fd, struct hg_err *err)
{
    struct hg_err reported = HG_ERR_INIT;
    size_t have = 0;
    struct pollfd p = { .fd = fd, .events = POLLIN };

    while (have < sizeof reported) {
        ssize_t n;

        if (poll(&p, 1, (int)(STARTED_S * 1000)) <= 0)
            return hg_err_set(err, HG_E_ENV, "the box did not start");
        n = read(fd, (char *)&reported + have, sizeof reported - have);
        if (n <= 0)
            return hg_err_set(err, HG_E_ENV, "the box's keeper was killed");
        have += (size_t)n;
    }
    if (!reported.code)
        return 0;
    *err = reported;
    return -1;
}

int hg_box_keeper_start(const struct hg_box_setup *setup, json_t *record, struct hg_err *err)
{
    struct keeper kp = { .setup = setup, .record = record };
    int report[2], rc;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0)
        return hg_err_sys(err, "cannot start the box's keeper");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* A second fork: init adopts the keeper, so no zombie is left. */
        pid = fork();
        if (pid == 0)
            keep(&kp, report[1]);
        _exit(pid < 0);
    }
    close(report[1]);
    if (pid < 0)
        hg_err_sys(err, "cannot start the box's keeper");
    else
        waitpid(pid, NULL, 0);
    rc = pid < 0 ? -1 : read_report(report[0], err);
    close(report[0]);
    return rc;
}

void hg_box_keeper_heal(struct hg_box_process keeper)
{
    hg_box_process_signal(keeper, SIGHUP);
}

void hg_box_keeper_stop(struct hg_box_process keeper)
{
    hg_box_process_signal(keeper, SIGCONT);
    hg_box_process_signal(keeper, SIGTERM);
    if (hg_box_process_wait(keeper, STOP_S + 5))
        return;
    hg_box_process_signal_tree(keeper.pid, SIGKILL);
    hg_box_process_signal(keeper, SIGKILL);
    hg_box_process_wait(keeper, 5);
}

#define GONE_S 5.0 /* for one process after SIGKILL */

static void end_tree(pid_t pid)
{
    struct hg_box_process p = hg_box_process_find(pid);

    hg_box_process_signal_tree(pid, SIGKILL);
    hg_box_process_signal(p, SIGKILL);
    hg_box_process_wait(p, GONE_S);
}

/* Each step daemon listens on a socket NODE_JOB.STEP in its node's spool folder. */
static void end_steps_of(const char *spool)
{
    DIR *folder = opendir(spool);
    const struct dirent *e;

    while (folder && (e = readdir(folder))) {
        char *path = hg_fs_join(spool, e->d_name);
        struct stat st;
        pid_t pid =
            lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? hg_box_process_listener(path) : 0;

        if (pid > 1)
            end_tree(pid);
        free(path);
    }
    if (folder)
        closedir(folder);
}

static void end_steps(const char *dir)
{
    char *spool = hg_fs_join(dir, "spool");
    DIR *nodes = opendir(spool);
    const struct dirent *e;

    while (nodes && (e = readdir(nodes)))
        if (e->d_name[0] != '.') {
            char *path = hg_fs_join(spool, e->d_name);

            if (hg_fs_is_dir(path))
                end_steps_of(path);
            free(path);
        }
    if (nodes)
        closedir(nodes);
    free(spool);
}

void hg_box_orphans_stop(const char *dir, const json_t *record)
{
    json_t *list = json_object_get(record, "daemons"), *d;
    double end = hg_clock_mono_s() + STOP_S;
    size_t i;

    json_array_foreach(list, i, d) {
        struct hg_box_process p = hg_box_record_process(d);

        hg_box_process_signal(p, SIGKILL);
        hg_box_process_wait(p, GONE_S);
    }
    while (hg_box_process_signal_daemons(dir, SIGKILL) && hg_clock_mono_s() < end)
        hg_clock_sleep_s(0.01);
    end_steps(dir);
}
