/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/colour.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/words.h"
#include "box/boxes.h"
#include "box/tools.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/sitedraft.h"
#include "plan/worker.h"
#include "slurm/client/transport.h"
#include "matrix/site.h"

#define PROGRAM_S 5.0 /* for a program that only prints its version */
#define SLURM_S 25.0  /* for slurmctld: twice its usual message timeout, and a bit */
#define TRANSPORTS_MAX 8
#define DISK_LOW ((uint64_t)1 << 30)

/* One line of the output. */
struct finding {
    const char *what;
    const char *state; /* "ok", "warning", "missing" */
    char found[400];
    char effect[160]; /* what does not work because of it; "" if all is well */
    char next[560];   /* what to do about it */
};

struct findings {
    struct finding *items;
    size_t n, cap;
};

static bool as_json;
static const char *site_word;

/* --site names none that is known: a file for it is drafted from the cluster. */
static bool drafts;
static struct hg_cluster_facts facts;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "site", &site_word, "SITE",
      "check the way to this site; a new name: draft it", 0, 0 },
    HG_OPTION_JSON(&as_json),
    { 0 },
};

static struct finding *add(struct findings *f, const char *what, const char *state)
{
    struct finding *item = HG_VEC_PUSH(f);

    *item = (struct finding){ .what = what, .state = state };
    return item;
}

#define SAY(field, ...) snprintf(field, sizeof field, __VA_ARGS__)

/* First line of what a program prints within its time; false if it cannot be run or fails. */
static bool first_line(const char *const *argv, char *out, size_t size)
{
    struct hg_buf text = HG_BUF_INIT, errors = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int status = -1;
    bool ok = hg_proc_capture(argv, PROGRAM_S, &text, &errors, &status, &err) == 0 && status == 0;
    const char *said = text.len ? hg_buf_str(&text) : hg_buf_str(&errors);

    snprintf(out, size, "%.*s", (int)strcspn(said, "\n"), ok ? said : "");
    hg_buf_done(&text);
    hg_buf_done(&errors);
    return ok;
}

/* ---- this machine ---- */

static void look_at_machine(struct findings *f)
{
    struct finding *item = add(f, "machine", "ok");
    long cores = hg_proc_cpus();
    struct utsname u;
    char memory[32];

    uname(&u);
    hg_text_size_format((uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
                        memory);
    SAY(item->found, "%.60s %.60s %.20s, %ld core%s, %s", u.sysname, u.release, u.machine, cores,
        hg_text_s((unsigned long long)cores), memory);
    item = add(f, "hpcgrid", "ok");
    SAY(item->found, "%s", HPCGRID_VERSION);
}

/* main has raised the soft limit if that was needed and possible. */
static void look_at_files(struct findings *f)
{
    struct finding *item = add(f, "files", "ok");
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0) {
        item->state = "warning";
        SAY(item->found, "cannot read the limit: %s", strerror(errno));
    } else if (files.rlim_cur < HG_CMD_FILES) {
        item->state = "missing";
        SAY(item->found, "ulimit -n allows %llu open files, hpcgrid needs %d",
            (unsigned long long)files.rlim_cur, HG_CMD_FILES);
        SAY(item->effect,
            "other commands do not start; findings below may be wrong because of this");
        SAY(item->next,
            "start a shell with `ulimit -n 1024`, or ask the administrator to raise the hard limit of %llu",
            (unsigned long long)files.rlim_max);
    } else {
        SAY(item->found, "%llu may be open", (unsigned long long)files.rlim_cur);
    }
}

static void look_at_disk(struct findings *f)
{
    struct statvfs fs;
    struct finding *item = add(f, "disk", "ok");
    uint64_t room;
    char text[32];

    if (statvfs(".", &fs) < 0) {
        item->state = "warning";
        SAY(item->found, "cannot look at this folder: %s", strerror(errno));
        return;
    }
    room = (uint64_t)fs.f_bavail * fs.f_frsize;
    hg_text_size_format(room, text);
    SAY(item->found, "%s free in this folder's file system", text);
    if (access(".", W_OK) != 0) {
        item->state = "warning";
        SAY(item->effect, "runs cannot be written here: %s", strerror(errno));
        SAY(item->next, "work in a folder of your own");
    } else if (room < DISK_LOW) {
        item->state = "warning";
        SAY(item->effect, "a sweep may run out of space");
        SAY(item->next,
            "free some space, or set HPCGRID_REPORTS to a folder in another file system");
    }
}

/* ---- Slurm, through the agent ---- */

struct conversation {
    const struct hg_transport *transport;
    struct hg_proc proc;
    struct hg_buf text; /* read, not yet taken */
    double end_s;       /* when patience ends, hg_clock_mono_s() */
};

/* A transport and its program. */
struct agent {
    const struct hg_transport *transport;
    char *path, *argument;
    struct hg_err missing; /* why there is no path */
};

static int begin(struct conversation *c, const struct agent *agent, struct hg_err *err)
{
    const char *const argv[] = { agent->path, agent->argument, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;

    *c = (struct conversation){ .transport = agent->transport,
                                .end_s = hg_clock_mono_s() + SLURM_S };
    spec.argv = argv;
    spec.in = spec.out = HG_PROC_PIPE;
    spec.err = HG_PROC_NULL;
    spec.death_signal = SIGTERM;
    return hg_proc_start(&spec, &c->proc, err);
}

/* Send one request about a cluster ("": the only one) and read its answer; NULL with err set when none came in time. */
static json_t *ask_about(struct conversation *c, const char *op, const char *cluster,
                         struct hg_err *err)
{
    struct pollfd p = { .fd = c->proc.out, .events = POLLIN };
    char bytes[65536];
    int n = snprintf(bytes, sizeof bytes, "{\"id\":0,\"op\":\"%s\"%s%.100s%s}\n", op,
                     *cluster ? ",\"cluster\":\"" : "", cluster, *cluster ? "\"" : "");
    json_t *answer;

    hg_buf_clear(&c->text);
    if (hg_fs_write_all(c->proc.in, bytes, (size_t)n) < 0) {
        hg_err_sys(err, "cannot send a request to %s", c->transport->program);
        return NULL;
    }
    while (!c->text.len || c->text.data[c->text.len - 1] != '\n') {
        double left = c->end_s - hg_clock_mono_s();
        ssize_t got;

        if (left <= 0 || poll(&p, 1, (int)(left * 1000) + 1) <= 0) {
            hg_err_set(err, HG_E_AGAIN, "no answer within %.0f s", SLURM_S);
            return NULL;
        }
        got = read(c->proc.out, bytes, sizeof bytes);
        if (got <= 0) {
            hg_err_set(err, HG_E_ENV, "%s ended without an answer", c->transport->program);
            return NULL;
        }
        hg_buf_append(&c->text, bytes, (size_t)got);
    }
    answer = json_loads(hg_buf_str(&c->text), JSON_REJECT_DUPLICATES, NULL);
    if (!answer)
        hg_err_set(err, HG_E_BUG, "the answer of %s is not JSON", c->transport->program);
    return answer;
}

static json_t *ask(struct conversation *c, const char *op, struct hg_err *err)
{
    return ask_about(c, op, "", err);
}

static void finish(struct conversation *c)
{
    int status;

    close(c->proc.in);
    close(c->proc.out);
    if (hg_proc_wait(c->proc.pid, 0.2, &status, &(struct hg_err)HG_ERR_INIT) == 1) {
        kill(c->proc.pid, SIGKILL);
        hg_proc_wait(c->proc.pid, -1, &status, &(struct hg_err)HG_ERR_INIT);
    }
    hg_buf_done(&c->text);
}

static const char *word(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* 22.05 -> 269, in months. */
static int release_number(const char *version)
{
    int year = 0, month = 0;

    sscanf(version, "%d.%d", &year, &month);
    return year * 12 + month;
}

/* slurmctld takes clients two releases old, three since 24.11, and none newer than itself. */
static void compare_versions(const struct hg_transport *t, const char *library,
                             const char *controller, struct finding *item)
{
    int apart = release_number(controller) - release_number(library);
    int most = release_number(controller) >= release_number("24.11") ? 21 : 18;

    if (apart >= 0 && apart <= most)
        return;
    item->state = "warning";
    SAY(item->effect, "%s %s may not be understood by slurmctld %s", t->means, library, controller);
    SAY(item->next, "use this site's own (to build hpcgrid-slurm: -DSLURM_ROOT=PREFIX)");
}

static void note_error(const json_t *answer, const struct hg_err *err, struct finding *item)
{
    const json_t *error = json_object_get(answer, "error");

    item->state = "missing";
    SAY(item->found, "%.390s", error ? word(error, "message") : err->text);
    SAY(item->next, "%.500s",
        error && *word(error, "hint") ? word(error, "hint")
                                      : "hpcgrid box up starts a private one");
}

static void look_at_partitions(struct findings *f, const json_t *answer)
{
    json_t *list = json_object_get(json_object_get(answer, "ok"), "partitions"), *p;
    struct finding *item = add(f, "partitions", list ? "ok" : "warning");
    size_t i, used = 0;

    if (!list)
        SAY(item->found, "%.390s", word(json_object_get(answer, "error"), "message"));
    json_array_foreach(list, i, p)
        if (used < sizeof item->found)
            used +=
                (size_t)snprintf(item->found + used, sizeof item->found - used,
                                 "%s%s%s (%lld node%s%s)", i ? ", " : "", word(p, "name"),
                                 json_is_true(json_object_get(p, "default")) ? "*" : "",
                                 (long long)json_integer_value(json_object_get(p, "total_nodes")),
                                 hg_text_s((unsigned long long)json_integer_value(
                                     json_object_get(p, "total_nodes"))),
                                 json_is_true(json_object_get(p, "up")) ? "" : ", down");
}

static void look_at_nodes(struct findings *f, const json_t *answer)
{
    json_t *list = json_object_get(json_object_get(answer, "ok"), "nodes"), *n;
    struct finding *item;
    size_t i, bad = 0;
    const char *reason = "";

    if (!list)
        return;
    json_array_foreach(list, i, n)
        if (strncmp(word(n, "state"), "DOWN", 4) == 0 || strstr(word(n, "state"), "DRAIN") ||
            strstr(word(n, "state"), "NOT_RESPONDING")) {
            bad++;
            reason = *word(n, "reason") ? word(n, "reason") : reason;
        }
    item = add(f, "nodes", bad == json_array_size(list) && bad ? "missing" : "ok");
    SAY(item->found, "%zu, %zu of them down or drained%s%.200s", json_array_size(list), bad,
        *reason ? ": " : "", reason);
    if (*item->state == 'm') {
        SAY(item->effect, "jobs never start");
        SAY(item->next, "`sinfo -R` says why");
    }
}

/* Without PMIx, `srun` starts N independent programs instead of N ranks. */
static void look_at_srun(struct findings *f)
{
    const char *const argv[] = { "srun", "--mpi=list", NULL };
    struct hg_buf out = HG_BUF_INIT, errors = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct finding *item = add(f, "srun", "ok");
    int status = -1;

    if (hg_proc_capture(argv, PROGRAM_S, &out, &errors, &status, &err) < 0 || status != 0) {
        item->state = "missing";
        SAY(item->found, "%.390s", err.code ? err.text : "srun --mpi=list fails");
        SAY(item->next, "the site's launcher must then be mpirun");
    } else {
        hg_buf_append(&out, hg_buf_str(&errors), errors.len); /* 22.05 prints on stderr */
        for (char *p = out.data; p && *p; p++)
            *p = *p == '\n' || *p == '\t' ? ' ' : *p;
        facts.launcher = strstr(hg_buf_str(&out), "pmix") ? "srun --mpi=pmix" : "srun";
        if (strstr(hg_buf_str(&out), "pmix")) {
            SAY(item->found, "can start MPI programs through PMIx");
        } else {
            item->state = "warning";
            SAY(item->found, "%.300s", hg_buf_str(&out));
            SAY(item->effect, "srun cannot start Open MPI programs: no PMIx");
            SAY(item->next, "use a launcher with mpirun in the site");
        }
    }
    hg_buf_done(&out);
    hg_buf_done(&errors);
}

/* For the account that jobs are charged to unless they say another. */
static void look_at_account(struct findings *f, const json_t *answer)
{
    struct finding *item = add(f, "account", "ok");
    const char *qos = word(facts.account, "qos");

    if (!facts.account) {
        item->state = "warning";
        SAY(item->found, "%.390s", word(json_object_get(answer, "error"), "message"));
    } else {
        SAY(item->found, "%.100s%s%.100s",
            *word(facts.account, "account") ? word(facts.account, "account") : "no default account",
            *qos ? ", qos " : "", qos);
    }
}

/* What a site is drafted from. */
static void keep_facts(struct findings *f, struct conversation *c, const json_t *limits,
                       const json_t *partitions, const json_t *nodes)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *answer = ask_about(c, "account", word(limits, "cluster"), &err);

    facts.limits = json_incref((json_t *)limits);
    facts.partitions = json_incref(json_object_get(partitions, "ok"));
    facts.nodes = json_incref(json_object_get(nodes, "ok"));
    facts.account = json_incref(json_object_get(answer, "ok"));
    look_at_account(f, answer);
    json_decref(answer);
}

/* slurm.conf was found: ask the controller. */
static bool look_at_slurmctld(struct findings *f, struct conversation *c, const char *library)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *answer = ask(c, "limits", &err), *partitions, *nodes;
    const json_t *limits = json_object_get(answer, "ok");
    const char *said = word(json_object_get(answer, "error"), "message");
    struct finding *item = add(f, strstr(said, "munge") ? "munge" : "slurmctld", "ok");
    bool reached = limits != NULL;

    if (reached) {
        SAY(item->found, "%s, cluster %s; arrays up to %lld tasks, %lld jobs, accounting %s",
            word(limits, "version"), word(limits, "cluster"),
            (long long)json_integer_value(json_object_get(limits, "max_array_size")),
            (long long)json_integer_value(json_object_get(limits, "max_jobs")),
            json_is_true(json_object_get(limits, "accounting")) ? "yes" : "no");
        if (*library)
            compare_versions(c->transport, library, word(limits, "version"), item);
        partitions = ask(c, "partitions", &err);
        look_at_partitions(f, partitions);
        nodes = ask(c, "nodes", &err);
        look_at_nodes(f, nodes);
        if (drafts)
            keep_facts(f, c, limits, partitions, nodes);
        json_decref(partitions);
        json_decref(nodes);
        if (*library) /* jobs start here, or on machines like this one */
            look_at_srun(f);
    } else {
        note_error(answer, &err, item);
        SAY(item->effect, "no jobs can be sent to this cluster");
    }
    json_decref(answer);
    return reached;
}

static void note_conf(struct findings *f, struct conversation *c, const json_t *hello)
{
    bool is_url = c->transport->member != NULL;
    struct finding *item = add(f, is_url ? c->transport->means : "slurm.conf", "ok");
    struct hg_err err = HG_ERR_INIT;
    json_t *answer;

    SAY(item->found, "%.390s", word(hello, "conf"));
    if (*word(hello, "conf"))
        return;
    answer = ask(c, "limits", &err); /* says why, without waiting */
    note_error(answer, &err, item);
    SAY(item->effect, "no jobs can be sent to a cluster");
    json_decref(answer);
}

/* Returns whether a slurmctld can be used from here. */
static bool ask_agent(struct findings *f, const struct agent *agent)
{
    struct conversation c;
    struct hg_err err = HG_ERR_INIT;
    struct finding *item = add(f, "agent", "ok");
    bool started = begin(&c, agent, &err) == 0, reached = false;
    json_t *answer = started ? ask(&c, "hello", &err) : NULL;
    const json_t *hello = json_object_get(answer, "ok");

    if (!hello) {
        item->state = "missing";
        SAY(item->found, "%.100s does not work: %.200s", agent->path, err.text);
        SAY(item->effect, "no jobs can be sent to Slurm");
        SAY(item->next, "run it by hand; is %s still installed as it was when it was built?",
            agent->transport->means);
    } else {
        SAY(item->found, *word(hello, "library") ? "%s, %s %s" : "%s", word(hello, "agent"),
            agent->transport->means, word(hello, "library"));
        note_conf(f, &c, hello);
        reached = *word(hello, "conf") && look_at_slurmctld(f, &c, word(hello, "library"));
    }
    json_decref(answer);
    if (started)
        finish(&c);
    return reached;
}

/* ---- which way to Slurm ---- */

/* "" if it works here, else why not. */
static void try_transport(const struct agent *agent, char *why, size_t size)
{
    struct conversation c;
    struct hg_err err = HG_ERR_INIT;
    json_t *answer = NULL;

    if (!agent->path) {
        snprintf(why, size, "%.150s", agent->missing.text);
        return;
    }
    if (begin(&c, agent, &err) == 0) {
        answer = ask(&c, "hello", &err);
        finish(&c);
    }
    if (!json_object_get(answer, "ok"))
        snprintf(why, size, "%.150s", err.code ? err.text : "its agent does not answer");
    else
        snprintf(why, size, "%s",
                 *word(json_object_get(answer, "ok"), "conf") ? "" : "no slurm.conf found");
    json_decref(answer);
}

static void name_transport(struct finding *item, const char *name, const char *why)
{
    size_t used = strlen(item->found);

    snprintf(item->found + used, sizeof item->found - used, "; %.20s %s%.150s%s", name,
             *why ? "does not (" : "also works", why, *why ? ")" : "");
}

/* The one that a run would take: the requested one, else the first that works, else the first that is built. */
static const struct agent *choose(const struct agent *agents, size_t n, char why[][160],
                                  const struct hg_transport *wanted)
{
    const struct agent *first = NULL;

    for (size_t i = 0; i < n; i++) {
        if (wanted ? agents[i].transport == wanted : !why[i][0])
            return &agents[i];
        if (!first && agents[i].path)
            first = &agents[i];
    }
    return first ? first : agents;
}

static void tell_transports(struct findings *f, const struct agent *agents, size_t n,
                            char why[][160], const struct agent *taken, const char *by)
{
    struct finding *item = add(f, "transport", "ok");
    const char *failed = why[taken - agents];

    SAY(item->found, "%s (%s), chosen by %s%s%.150s", taken->transport->name,
        taken->transport->means, by, *failed ? ", does not work here: " : "", failed);
    for (size_t i = 0; i < n; i++)
        if (&agents[i] != taken)
            name_transport(item, agents[i].transport->name, why[i]);
    if (taken->path) /* what its agent is missing has its own lines */
        return;
    item->state = "missing";
    SAY(item->effect, "no jobs can be sent to Slurm");
    SAY(item->next, "%.200s; or request another: \"transport\" of the site, HPCGRID_TRANSPORT",
        taken->missing.hint);
}

static bool look_at_slurm(struct findings *f, const json_t *site, struct hg_err *err)
{
    struct agent agents[TRANSPORTS_MAX] = { 0 };
    char why[TRANSPORTS_MAX][160];
    const struct hg_transport *wanted;
    const struct agent *taken;
    const char *by;
    size_t n = 0;
    bool reached;

    if (hg_transport_wanted(site, &wanted, &by, err) < 0)
        return false;
    for (const struct hg_transport *t = hg_transports; t->name && n < TRANSPORTS_MAX; t++, n++) {
        agents[n] = (struct agent){ .transport = t, .missing = HG_ERR_INIT };
        agents[n].path = hg_transport_find(t, site, &agents[n].missing);
        agents[n].argument = hg_transport_argument(t, site);
        try_transport(&agents[n], why[n], sizeof why[n]);
    }
    taken = choose(agents, n, why, wanted);
    tell_transports(f, agents, n, why, taken, by);
    reached = taken->path && ask_agent(f, taken);
    while (n--) {
        free(agents[n].path);
        free(agents[n].argument);
    }
    return reached;
}

static bool look_at_box(struct findings *f)
{
    struct finding *item = add(f, "box", "ok");
    struct hg_err err = HG_ERR_INIT;
    struct hg_boxes boxes = { 0 };
    int version;

    if (hg_box_tools_check(&version, &err) < 0) {
        item->state = "missing";
        SAY(item->found, "%.390s", err.text);
        SAY(item->effect, "hpcgrid box and run --box");
        SAY(item->next, "%s", err.hint);
        return false;
    }
    hg_boxes_list(&boxes, &err);
    SAY(item->found, "can start Slurm %d.%02d here; %zu running", version / 100, version % 100,
        boxes.n);
    hg_boxes_done(&boxes);
    return true;
}

/* ---- what cells run ---- */

static void look_at_worker(struct findings *f)
{
    char *path = hg_worker_find();
    const char *const argv[] = { path, "--version", NULL };
    struct finding *item = add(f, "worker", "ok");

    if (!first_line(argv, item->found, sizeof item->found)) {
        item->state = "missing";
        SAY(item->found, "hpcgrid-worker is missing or does not start");
        SAY(item->effect,
            "matrices with \"program\": \"hpcgrid-worker\"; those with a command run");
        SAY(item->next, "build it (it needs libopenmpi-dev and libopenblas-dev)");
    }
    free(path);
}

static void look_at_mpi(struct findings *f)
{
    const char *const argv[] = { "mpirun", "--version", NULL };
    struct finding *item = add(f, "mpi", "ok");

    if (!first_line(argv, item->found, sizeof item->found)) {
        item->state = "warning";
        SAY(item->found, "no mpirun in PATH");
        SAY(item->effect, "cells with several ranks, unless the site loads MPI as a module");
        SAY(item->next, "Debian: apt-get install openmpi-bin");
    }
}

static void look_at_gpu(struct findings *f)
{
    const char *const argv[] = { "nvidia-smi", "--query-gpu=name,driver_version",
                                 "--format=csv,noheader", NULL };
    struct finding *item = add(f, "gpu", "ok");

    if (first_line(argv, item->found, sizeof item->found) && item->found[0])
        return;
    if (hg_fs_exists("/proc/driver/nvidia/version")) {
        item->state = "warning";
        SAY(item->found, "an NVIDIA driver is loaded, but nvidia-smi fails");
        SAY(item->next, "run nvidia-smi by hand and read its message");
    } else {
        SAY(item->found, "no NVIDIA driver here (nodes may have one)");
    }
}

/* ---- the answer ---- */

static void print_text(const struct findings *f, FILE *to)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct finding *item = &f->items[i];

        fprintf(to, "%s%-8s%s %-11s %s\n",
                hg_colour_start(fileno(to), strcmp(item->state, "ok") == 0 ? HG_COLOUR_GOOD
                                            : strcmp(item->state, "warning") == 0
                                                ? HG_COLOUR_WARNING
                                                : HG_COLOUR_BAD),
                item->state, hg_colour_stop(fileno(to)), item->what, item->found);
        if (item->effect[0])
            fprintf(to, "%20s affects: %s\n", "", item->effect);
        if (item->next[0])
            fprintf(to, "%20s next: %s\n", "", item->next);
    }
}

static void print_json(const struct findings *f)
{
    json_t *o = json_object(), *list = json_array();

    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o, s:o}", "what", f->items[i].what,
                                              "state", f->items[i].state, "found",
                                              hg_json_text(f->items[i].found), "affects",
                                              hg_json_text(f->items[i].effect), "next",
                                              hg_json_text(f->items[i].next)));
    json_object_set_new(o, "schema", json_string("hpcgrid-doctor/1"));
    json_object_set_new(o, "findings", list);
    hg_print_json(o);
}

/* Is it the name of a site that is not known here? */
static bool is_new_site(const char *name)
{
    struct hg_words known = HG_WORDS_INIT;
    bool is;

    hg_site_names(&known);
    is = hg_text_is_name(name) && !hg_text_ends_with(name, ".json") &&
         !(known.n && hg_text_is_one_of(name, strlen(name), (const char *const *)known.items));
    hg_words_done(&known);
    return is;
}

/* The findings go to stderr, the draft to stdout. */
static int print_draft(const struct findings *f, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    json_t *site = NULL;

    if (!as_json)
        print_text(f, stderr);
    if (facts.partitions && facts.nodes)
        site = hg_site_draft(site_word, &facts, &err);
    else
        hg_err_set(&err, HG_E_ENV,
                   "site %s is not known, and none can be drafted: no cluster answers here",
                   site_word);
    hg_cluster_facts_done(&facts);
    if (!site) {
        hg_site_suggest(site_word, &err);
        return hg_errs_add(errs, &err);
    }
    hg_print_json(site);
    hg_info("%s is drafted from this cluster: save it as FILE.json, and use it with \"site\": "
            "\"./FILE.json\"",
            site_word);
    return 0;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_site *site = NULL;
    struct findings f = { 0 };
    struct hg_err err = HG_ERR_INIT;
    bool cluster, box;

    (void)argc;
    (void)argv;
    drafts = site_word && is_new_site(site_word);
    if (site_word && !drafts && !(site = hg_site_find(site_word, errs)))
        return -1;
    look_at_machine(&f);
    look_at_files(&f);
    cluster = look_at_slurm(&f, site ? site->json : NULL, &err);
    hg_site_free(site);
    if (err.code)
        return hg_errs_add(errs, &err);
    if (drafts) {
        int rc = print_draft(&f, errs);

        HG_VEC_DONE(&f);
        return rc;
    }
    box = look_at_box(&f);
    look_at_worker(&f);
    look_at_mpi(&f);
    look_at_gpu(&f);
    look_at_disk(&f);
    if (as_json)
        print_json(&f);
    else
        print_text(&f, stdout);
    HG_VEC_DONE(&f);
    return cluster || box ? 0 : 1;
}

const struct hg_cmd hg_cmd_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "Check this machine: what works, what is missing, what to do.",
    .details = "Nothing is submitted or changed; every probe has a time limit. Exit code 1: jobs\n"
               "can run neither on a cluster nor in a box. With --site and a new name, a site\n"
               "file for the cluster here is drafted and printed: partitions, GPUs, limits,\n"
               "default account and qos.",
    .opts = opts,
    .any_files = true,
    .run = run,
};
