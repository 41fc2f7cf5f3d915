/* SPDX-License-Identifier: Apache-2.0 */
#include "box/daemons.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/vec.h"

#define READY_S 60.0     /* munged and slurmctld take less than a second each on an idle machine */
#define DATABASE_S 120.0 /* 2 s on an idle machine */
#define TAIL_LINES 4

/* ---- logs ---- */

static void append_tail(const char *path, struct hg_buf *out)
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

void hg_box_daemons_log(const char *dir, const char *name, struct hg_buf *out)
{
    char *path = hg_str_printf("%s/log/%s.log", dir, name);

    append_tail(path, out);
    free(path);
}

/* With the end of the daemon's log, or of what it printed before it opened one. */
static int daemon_failed(const char *dir, const char *name, const char *what, struct hg_err *err)
{
    char *printed = hg_str_printf("%s/log/%s.out", dir, name);
    struct hg_buf tail = HG_BUF_INIT;

    hg_box_daemons_log(dir, name, &tail);
    if (!tail.len)
        append_tail(printed, &tail);
    hg_err_set(err, HG_E_ENV, "%s %s", name, what);
    if (tail.len)
        hg_err_hint(err, "end of its log:\n%s", hg_buf_str(&tail));
    hg_buf_done(&tail);
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

/* Daemons get only what they need of the caller's environment. */
static int spawn(const struct hg_box_setup *setup, struct hg_box_daemon *d, const char *const *argv,
                 struct hg_err *err)
{
    const char *home = getenv("HOME"), *zone = getenv("TZ");
    char *conf = hg_str_printf("SLURM_CONF=%s/slurm.conf", setup->dir);
    char *home_line = hg_str_printf("HOME=%s", home ? home : "/");
    char *zone_line = hg_str_printf("TZ=%s", zone ? zone : "");
    const char *env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                          "LANG=C.UTF-8",
                          conf,
                          home_line,
                          zone ? zone_line : NULL,
                          NULL };
    int out = open_output(setup->dir, d->name);
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_proc proc;
    int rc = -1;

    spec.argv = argv;
    spec.env = env;
    spec.in = HG_PROC_NULL;
    spec.out = spec.err = out;
    spec.new_session = true;
    if (out < 0)
        hg_err_sys(err, "cannot write in %s/log", setup->dir);
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
static int prepare_database(const struct hg_box_setup *setup, struct hg_err *err)
{
    char *option = hg_str_printf("--datadir=%s/database", setup->dir);
    const char *data = strchr(option, '/');
    const char *argv[] = { setup->tools->mariadb_install,
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

/* slurmctld stops where the database does not know its cluster. sacctmgr reports an error when it
 * is added twice. */
static int register_cluster(const struct hg_box_setup *setup, struct hg_err *err)
{
    char *conf = hg_str_printf("SLURM_CONF=%s/slurm.conf", setup->dir);
    const char *argv[] = { "env",     "-i",  conf, setup->tools->sacctmgr, "-i", "add",
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

static bool munged_answers(const struct hg_box_setup *setup)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    snprintf(address.sun_path, sizeof address.sun_path, "%s/munge/sock", setup->dir);
    return connects(AF_UNIX, &address, sizeof address);
}

static bool port_answers(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    return connects(AF_INET, &address, sizeof address);
}

static bool answers(const struct hg_box_setup *setup, enum hg_box_daemon_kind kind)
{
    switch (kind) {
    case HG_BOX_MUNGED:
        return munged_answers(setup);
    case HG_BOX_DATABASE:
        return port_answers(setup->ports.database);
    case HG_BOX_SLURMDBD:
        return port_answers(setup->ports.dbd);
    case HG_BOX_SLURMCTLD:
        return port_answers(setup->ports.ctld);
    default:
        return true; /* nodes are waited for together */
    }
}

static int wait_ready(const struct hg_box_setup *setup, struct hg_box_daemon *d, struct hg_err *err)
{
    double end = hg_clock_mono_s() + READY_S;

    while (!answers(setup, d->kind)) {
        if (waitpid(d->pid, NULL, WNOHANG) == d->pid) {
            d->pid = 0;
            return daemon_failed(setup->dir, d->name, "ended at once", err);
        }
        if (hg_clock_mono_s() > end)
            return daemon_failed(setup->dir, d->name, "does not answer", err);
        hg_clock_sleep_s(0.01);
    }
    return 0;
}

/* ---- the daemons ---- */

struct words {
    char **items;
    size_t n, cap;
};

/* Append words that a space separates; each @ is the box's folder. */
static void add_words(struct words *argv, const char *text, const char *dir)
{
    for (const char *p = text; *p; p += *p == ' ') {
        struct hg_buf word = HG_BUF_INIT;

        for (; *p && *p != ' '; p++)
            if (*p == '@')
                hg_buf_puts(&word, dir);
            else
                hg_buf_append(&word, p, 1);
        *HG_VEC_PUSH(argv) = hg_buf_detach(&word);
    }
}

static void make_command(const struct hg_box_setup *setup, const struct hg_box_daemon *d,
                         struct words *argv)
{
    const struct hg_box_tools *tools = setup->tools;
    const char *const programs[] = { [HG_BOX_MUNGED] = tools->munged,
                                     [HG_BOX_DATABASE] = tools->mariadbd,
                                     [HG_BOX_SLURMDBD] = tools->slurmdbd,
                                     [HG_BOX_SLURMCTLD] = tools->slurmctld,
                                     [HG_BOX_SLURMD] = tools->slurmd };
    static const char *const options[] = {
        [HG_BOX_MUNGED] = "--foreground --force --origin=127.0.0.1 --key-file=@/munge/key "
                          "--socket=@/munge/sock --pid-file=@/munge/pid "
                          "--log-file=@/log/munged.log --seed-file=@/munge/seed",
        [HG_BOX_DATABASE] = "--no-defaults --datadir=@/database --socket=@/database.sock "
                            "--pid-file=@/database.pid --init-file=@/database.sql "
                            "--bind-address=127.0.0.1 --skip-name-resolve "
                            "--innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2",
        [HG_BOX_SLURMDBD] = "-D",
        [HG_BOX_SLURMCTLD] = "-D -f @/slurm.conf",
        [HG_BOX_SLURMD] = "-D -f @/slurm.conf -N",
    };

    *HG_VEC_PUSH(argv) = hg_strdup(programs[d->kind]);
    add_words(argv, options[d->kind], setup->dir);
    if (d->kind == HG_BOX_SLURMD)
        *HG_VEC_PUSH(argv) = hg_strdup(d->name + strlen("slurmd-"));
    if (d->kind == HG_BOX_DATABASE) {
        *HG_VEC_PUSH(argv) = hg_str_printf("--port=%d", setup->ports.database);
        if (geteuid() == 0)
            *HG_VEC_PUSH(argv) = hg_strdup("--user=root");
    }
    *HG_VEC_PUSH(argv) = NULL;
}

int hg_box_daemons_start(const struct hg_box_setup *setup, struct hg_box_daemon *d,
                         struct hg_err *err)
{
    struct words argv = { 0 };
    int rc = d->kind == HG_BOX_DATABASE ? prepare_database(setup, err) : 0;

    make_command(setup, d, &argv);
    if (rc == 0)
        rc = spawn(setup, d, (const char *const *)argv.items, err);
    if (rc == 0)
        rc = wait_ready(setup, d, err);
    if (rc == 0 && d->kind == HG_BOX_SLURMDBD)
        rc = register_cluster(setup, err);
    for (size_t i = 0; i < argv.n; i++)
        free(argv.items[i]);
    HG_VEC_DONE(&argv);
    return rc;
}

static void add(struct hg_box_daemons *list, enum hg_box_daemon_kind kind, const char *prefix,
                const char *name)
{
    struct hg_box_daemon *d = HG_VEC_PUSH(list);

    *d = (struct hg_box_daemon){ .kind = kind };
    snprintf(d->name, sizeof d->name, "%s%s", prefix, name);
}

void hg_box_daemons_list(const struct hg_box_spec *spec, struct hg_box_daemons *list)
{
    size_t nodes = hg_box_nodes_count(spec);
    char node[96];

    add(list, HG_BOX_MUNGED, "", "munged");
    if (spec->accounting) {
        add(list, HG_BOX_DATABASE, "", "mariadbd");
        add(list, HG_BOX_SLURMDBD, "", "slurmdbd");
    }
    add(list, HG_BOX_SLURMCTLD, "", "slurmctld");
    for (size_t i = 0; i < nodes; i++) {
        hg_box_nodes_name(spec, i, node);
        add(list, HG_BOX_SLURMD, "slurmd-", node);
    }
}
