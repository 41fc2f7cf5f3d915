/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper owns a box: it starts the daemons, adopts every orphan below them, and ends them all. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "box/internal.h"

#define READY_S 60.0 /* munged and slurmctld take less than a second each on an idle machine */
#define STOP_S 20.0
#define DATABASE_S 120.0 /* 2 s on an idle machine */
#define POLITE_S 1.0     /* between SIGTERM and SIGKILL */
#define TAIL_LINES 4

enum kind { MUNGED, DATABASE, SLURMDBD, SLURMCTLD, SLURMD };

struct daemon {
    enum kind kind;
    char name[112]; /* "munged", "slurmctld", "slurmd-a100-1" */
    pid_t pid;      /* 0: not running */
};

struct keeper {
    const struct hg_box_keeper *k;
    const struct hg_box_ports *ports;
    struct daemon *daemons; /* in the order in which they are started */
    size_t n;
    sigset_t signals;
};

/* ---- logs ---- */

void hg_box_log_tail(const char *path, struct hg_buf *out)
{
    char text[4096];
    long size;
    size_t n = 0;
    const char *p;
    FILE *f = fopen(path, "re");

    if (!f)
        return;
    if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) > 0) {
        fseek(f, size > (long)sizeof text - 1 ? size - (long)sizeof text + 1 : 0, SEEK_SET);
        n = fread(text, 1, sizeof text - 1, f);
    }
    fclose(f);
    while (n && text[n - 1] == '\n')
        n--;
    text[n] = 0;
    p = text + n;
    for (int lines = 0; p > text; p--)
        if (p[-1] == '\n' && ++lines == TAIL_LINES)
            break;
    hg_buf_puts(out, p);
}

/* The daemon's own log, or what it printed before it opened one. */
static int daemon_failed(const char *dir, const char *name, const char *what, struct hg_err *err)
{
    char *log = hg_str_printf("%s/log/%s.log", dir, name);
    char *printed = hg_str_printf("%s/log/%s.out", dir, name);
    struct hg_buf tail = HG_BUF_INIT;

    hg_box_log_tail(log, &tail);
    if (!tail.len)
        hg_box_log_tail(printed, &tail);
    hg_err_set(err, HG_E_ENV, "%s %s", name, what);
    if (tail.len)
        hg_err_hint(err, "end of its log:\n%s", hg_buf_str(&tail));
    hg_buf_done(&tail);
    free(log);
    free(printed);
    return -1;
}

/* ---- starting ---- */

static int open_output(const char *dir, const char *name)
{
    char *path = hg_str_printf("%s/log/%s.out", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    free(path);
    return fd;
}

/* Daemons get nothing of the caller's environment but what they need. */
static int spawn(struct keeper *kp, struct daemon *d, const char *const *argv, struct hg_err *err)
{
    const char *home = getenv("HOME"), *zone = getenv("TZ");
    char *conf = hg_str_printf("SLURM_CONF=%s/slurm.conf", kp->k->dir);
    char *home_line = hg_str_printf("HOME=%s", home ? home : "/");
    char *zone_line = hg_str_printf("TZ=%s", zone ? zone : "");
    const char *env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          "LANG=C.UTF-8",
                          conf,
                          home_line,
                          zone ? zone_line : NULL,
                          NULL };
    int out = open_output(kp->k->dir, d->name);
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc proc;
    int rc = -1;

    spec.argv = argv;
    spec.env = env;
    spec.in = HG_PROC_NULL;
    spec.out = spec.err = out;
    spec.new_session = true;
    if (out < 0)
        hg_err_sys(err, "cannot write in %s/log", kp->k->dir);
    else
        rc = hg_proc_start(&spec, &proc, err);
    if (rc == 0)
        d->pid = proc.pid;
    if (out >= 0)
        close(out);
    free(conf);
    free(home_line);
    free(zone_line);
    return rc;
}

static int start_munged(struct keeper *kp, struct daemon *d, struct hg_err *err)
{
    const char *dir = kp->k->dir;
    char *key = hg_str_printf("--key-file=%s/munge/key", dir);
    char *sock = hg_str_printf("--socket=%s/munge/sock", dir);
    char *pid = hg_str_printf("--pid-file=%s/munge/pid", dir);
    char *log = hg_str_printf("--log-file=%s/log/munged.log", dir);
    char *seed = hg_str_printf("--seed-file=%s/munge/seed", dir);
    const char *argv[] = { kp->k->tools->munged,
                           "--foreground",
                           "--force",
                           "--origin=127.0.0.1",
                           key,
                           sock,
                           pid,
                           log,
                           seed,
                           NULL };
    int rc = spawn(kp, d, argv, err);

    free(key);
    free(sock);
    free(pid);
    free(log);
    free(seed);
    return rc;
}

static int start_slurmctld(struct keeper *kp, struct daemon *d, struct hg_err *err)
{
    char *conf = hg_str_printf("%s/slurm.conf", kp->k->dir);
    const char *argv[] = { kp->k->tools->slurmctld, "-D", "-f", conf, NULL };
    int rc = spawn(kp, d, argv, err);

    free(conf);
    return rc;
}

static int start_slurmd(struct keeper *kp, struct daemon *d, struct hg_err *err)
{
    char *conf = hg_str_printf("%s/slurm.conf", kp->k->dir);
    const char *argv[] = { kp->k->tools->slurmd,        "-D", "-f", conf, "-N",
                           d->name + strlen("slurmd-"), NULL };
    int rc = spawn(kp, d, argv, err);

    free(conf);
    return rc;
}

/* ---- accounting ---- */

/* Run a program to its end; what it printed goes into the hint. */
static int run_once(const char *const *argv, struct hg_err *err)
{
    struct hg_buf out = HG_BUF_INIT;
    int status = 0, rc = hg_proc_capture(argv, DATABASE_S, &out, &out, &status, err);

    if (rc == 0 && status) {
        rc = hg_err_set(err, HG_E_ENV, "%s failed", argv[0]);
        hg_err_hint(err, "%.400s", hg_buf_str(&out));
    }
    hg_buf_done(&out);
    return rc;
}

/* The tables that every MariaDB has. A heal finds them there. */
static int prepare_database(struct keeper *kp, const char *data, struct hg_err *err)
{
    char *option = hg_str_printf("--datadir=%s", data);
    const char *argv[] = { kp->k->tools->mariadb_install,
                           "--no-defaults",
                           option,
                           "--auth-root-authentication-method=normal",
                           "--skip-test-db",
                           geteuid() == 0 ? "--user=root" : NULL,
                           NULL };
    int rc = 0;

    if (!hg_fs_is_dir(data))
        rc = run_once(argv, err);
    free(option);
    return rc;
}

static int start_database(struct keeper *kp, struct daemon *d, struct hg_err *err)
{
    const char *dir = kp->k->dir;
    char *data = hg_str_printf("%s/database", dir);
    char *datadir = hg_str_printf("--datadir=%s/database", dir);
    char *sock = hg_str_printf("--socket=%s/database.sock", dir);
    char *pid = hg_str_printf("--pid-file=%s/database.pid", dir);
    char *init = hg_str_printf("--init-file=%s/database.sql", dir);
    char *port = hg_str_printf("--port=%d", kp->ports->database);
    const char *argv[] = { kp->k->tools->mariadbd,
                           "--no-defaults",
                           datadir,
                           sock,
                           pid,
                           init,
                           port,
                           "--bind-address=127.0.0.1",
                           "--skip-name-resolve",
                           "--innodb-buffer-pool-size=64M",
                           "--innodb-flush-log-at-trx-commit=2",
                           geteuid() == 0 ? "--user=root" : NULL,
                           NULL };
    int rc = -1;

    if (prepare_database(kp, data, err) == 0)
        rc = spawn(kp, d, argv, err);
    free(data);
    free(datadir);
    free(sock);
    free(pid);
    free(init);
    free(port);
    return rc;
}

static int start_slurmdbd(struct keeper *kp, struct daemon *d, struct hg_err *err)
{
    const char *argv[] = { kp->k->tools->slurmdbd, "-D", NULL };

    return spawn(kp, d, argv, err);
}

/* slurmctld stops where the database does not know its cluster. Adding it twice is an error of
 * sacctmgr's that says so. */
static int register_cluster(struct keeper *kp, struct hg_err *err)
{
    char *conf = hg_str_printf("SLURM_CONF=%s/slurm.conf", kp->k->dir);
    const char *argv[] = { "env",     "-i",  conf, kp->k->tools->sacctmgr, "-i", "add",
                           "cluster", "box", NULL };
    struct hg_buf out = HG_BUF_INIT, errors = HG_BUF_INIT;
    int status = 0, rc = hg_proc_capture(argv, DATABASE_S, &out, &errors, &status, err);

    if (rc == 0 && status && !strstr(hg_buf_str(&out), "already exists")) {
        rc = hg_err_set(err, HG_E_ENV, "sacctmgr cannot add the cluster");
        hg_err_hint(err, "%.200s%.200s", hg_buf_str(&errors), hg_buf_str(&out));
    }
    hg_buf_done(&out);
    hg_buf_done(&errors);
    free(conf);
    return rc;
}

/* ---- readiness ---- */

static bool connects(int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, address, size) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

static bool munged_answers(const struct keeper *kp)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof address.sun_path, "%s/munge/sock", kp->k->dir);
    return connects(AF_UNIX, &address, sizeof address);
}

static bool port_answers(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    return connects(AF_INET, &address, sizeof address);
}

static bool slurmctld_answers(const struct keeper *kp)
{
    return port_answers(kp->ports->ctld);
}

static bool slurmdbd_answers(const struct keeper *kp)
{
    return port_answers(kp->ports->dbd);
}

static bool database_answers(const struct keeper *kp)
{
    return port_answers(kp->ports->database);
}

static int wait_ready(struct keeper *kp, struct daemon *d, bool (*ready)(const struct keeper *kp),
                      struct hg_err *err)
{
    double end = hg_clock_mono_s() + READY_S;

    while (!ready(kp)) {
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) {
            d->pid = 0;
            return daemon_failed(kp->k->dir, d->name, "ended at once", err);
        }
        if (hg_clock_mono_s() > end)
            return daemon_failed(kp->k->dir, d->name, "does not answer", err);
        hg_clock_sleep_s(0.01);
    }
    return 0;
}

static int start_daemon(struct keeper *kp, size_t i, struct hg_err *err)
{
    struct daemon *d = &kp->daemons[i];

    switch (d->kind) {
    case MUNGED:
        return start_munged(kp, d, err) < 0 ? -1 : wait_ready(kp, d, munged_answers, err);
    case DATABASE:
        return start_database(kp, d, err) < 0 ? -1 : wait_ready(kp, d, database_answers, err);
    case SLURMDBD:
        if (start_slurmdbd(kp, d, err) < 0 || wait_ready(kp, d, slurmdbd_answers, err) < 0)
            return -1;
        return register_cluster(kp, err);
    case SLURMCTLD:
        return start_slurmctld(kp, d, err) < 0 ? -1 : wait_ready(kp, d, slurmctld_answers, err);
    default:
        return start_slurmd(kp, d, err);
    }
}

/* ---- the record ---- */

static json_t *encode_process(pid_t pid)
{
    return json_pack("{s:i, s:I}", "pid", (int)pid, "start", (json_int_t)hg_box_process_start(pid));
}

static int save_record(struct keeper *kp, struct hg_err *err)
{
    json_t *list = json_array();
    char *path = hg_fs_join(kp->k->dir, HG_BOX_RECORD);
    int rc;

    for (size_t i = 0; i < kp->n; i++) {
        json_t *o = encode_process(kp->daemons[i].pid);

        json_object_set_new(o, "name", json_string(kp->daemons[i].name));
        json_array_append_new(list, o);
    }
    json_object_set_new(kp->k->record, "keeper", encode_process(getpid()));
    json_object_set_new(kp->k->record, "daemons", list);
    rc = hg_json_save(path, kp->k->record, err);
    free(path);
    return rc;
}

/* ---- ending ---- */

/* Collect the dead; daemons among them are noted. */
static void reap(struct keeper *kp)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (size_t i = 0; i < kp->n; i++)
            if (kp->daemons[i].pid == pid)
                kp->daemons[i].pid = 0;
}

/* First the daemons, so that nothing new is started, then what is left, then by force. */
static void end_all(struct keeper *kp)
{
    double begin = hg_clock_mono_s(), end = begin + STOP_S;
    bool polite = true;

    for (size_t i = kp->n; i-- > 1;)
        if (kp->daemons[i].pid)
            kill(kp->daemons[i].pid, SIGTERM);
    hg_box_tree_signal(getpid(), SIGTERM);
    hg_box_tree_signal(getpid(), SIGCONT); /* a stopped process would sleep through the first */
    while (hg_box_tree_signal(getpid(), polite ? 0 : SIGKILL) && hg_clock_mono_s() < end) {
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
    for (size_t i = 0; i < kp->n; i++)
        if (start_daemon(kp, i, err) < 0 ||
            (kp->daemons[i].kind != SLURMD && save_record(kp, err) < 0))
            return -1;
    return save_record(kp, err);
}

static void heal(struct keeper *kp)
{
    struct hg_err err = HG_ERR_INIT;
    bool changed = false;

    reap(kp);
    for (size_t i = 0; i < kp->n; i++)
        if (!kp->daemons[i].pid) {
            changed = true;
            if (start_daemon(kp, i, &err) < 0)
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

static void name_daemons(struct keeper *kp)
{
    static const struct {
        enum kind kind;
        const char *name;
        bool accounting;
    } one_each[] = { { MUNGED, "munged", false },
                     { DATABASE, "mariadbd", true },
                     { SLURMDBD, "slurmdbd", true },
                     { SLURMCTLD, "slurmctld", false } };
    size_t nodes = hg_box_count_nodes(kp->k->spec);

    kp->daemons = hg_alloc_zeroed(nodes + 4, sizeof *kp->daemons);
    for (size_t i = 0; i < 4; i++)
        if (!one_each[i].accounting || kp->k->spec->accounting) {
            struct daemon *d = &kp->daemons[kp->n++];

            d->kind = one_each[i].kind;
            snprintf(d->name, sizeof d->name, "%s", one_each[i].name);
        }
    for (size_t i = 0; i < nodes; i++) {
        struct daemon *d = &kp->daemons[kp->n++];
        char node[96];

        hg_box_node_name(kp->k->spec, i, node);
        d->kind = SLURMD;
        snprintf(d->name, sizeof d->name, "slurmd-%s", node);
    }
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
    close_range(4, ~0U, 0);
    sigemptyset(&kp->signals);
    sigaddset(&kp->signals, SIGTERM);
    sigaddset(&kp->signals, SIGINT);
    sigaddset(&kp->signals, SIGHUP);
    sigaddset(&kp->signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &kp->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* What the keeper tells its starter: a struct hg_err, with no code if all went well. */
static void keep(struct keeper *kp, int report)
{
    struct hg_err err = HG_ERR_INIT;
    int rc;

    detach(kp, &report);
    name_daemons(kp);
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
    struct hg_err told = HG_ERR_INIT;
    size_t have = 0;
    struct pollfd p = { .fd = fd, .events = POLLIN };

    while (have < sizeof told) {
        ssize_t n;

        if (poll(&p, 1, (int)(4 * READY_S * 1000)) <= 0)
            return hg_err_set(err, HG_E_ENV, "the box does not come up");
        n = read(fd, (char *)&told + have, sizeof told - have);
        if (n <= 0)
            return hg_err_set(err, HG_E_ENV, "the box's keeper was killed");
        have += (size_t)n;
    }
    if (!told.code)
        return 0;
    *err = told;
    return -1;
}

int hg_box_keeper_start(const struct hg_box_keeper *k, const struct hg_box_ports *ports,
                        struct hg_err *err)
{
    struct keeper kp = { .k = k, .ports = ports };
    int report[2], rc;
    pid_t pid;

    if (pipe2(report, O_CLOEXEC) < 0)
        return hg_err_sys(err, "cannot start the box's keeper");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* A second fork, so that the keeper is nobody's child and leaves no zombie behind. */
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

void hg_box_keeper_heal(pid_t keeper, unsigned long long start)
{
    hg_box_process_signal(keeper, start, SIGHUP);
}

static bool wait_gone(pid_t pid, unsigned long long start, double limit_s)
{
    double end = hg_clock_mono_s() + limit_s;

    while (hg_box_process_alive(pid, start)) {
        if (hg_clock_mono_s() > end)
            return false;
        hg_clock_sleep_s(0.01);
    }
    return true;
}

void hg_box_keeper_stop(pid_t keeper, unsigned long long start)
{
    hg_box_process_signal(keeper, start, SIGCONT);
    hg_box_process_signal(keeper, start, SIGTERM);
    if (wait_gone(keeper, start, STOP_S + 5))
        return;
    hg_box_tree_signal(keeper, SIGKILL);
    hg_box_process_signal(keeper, start, SIGKILL);
    wait_gone(keeper, start, 5);
}

/* ---- without a keeper ---- */

static void end_tree(pid_t pid)
{
    unsigned long long start = hg_box_process_start(pid);

    hg_box_tree_signal(pid, SIGKILL);
    hg_box_process_signal(pid, start, SIGKILL);
    wait_gone(pid, start, 5);
}

/* Each step daemon listens on a socket NODE_JOB.STEP in its node's spool folder. */
static void end_steps_of(const char *spool)
{
    DIR *folder = opendir(spool);
    const struct dirent *e;

    while (folder && (e = readdir(folder))) {
        char *path = hg_fs_join(spool, e->d_name);
        struct stat st;
        pid_t pid = lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? hg_box_socket_owner(path) : 0;

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
        pid_t pid = (pid_t)json_integer_value(json_object_get(d, "pid"));
        unsigned long long start =
            (unsigned long long)json_integer_value(json_object_get(d, "start"));

        hg_box_process_signal(pid, start, SIGKILL);
        wait_gone(pid, start, 5);
    }
    while (hg_box_daemons_signal(dir, SIGKILL) && hg_clock_mono_s() < end)
        hg_clock_sleep_s(0.01);
    end_steps(dir);
}
