/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/notify.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/vec.h"
#include "base/words.h"
#include "cmd/state.h"
#include "rundir/reasons.h"

#define AWAY_S 60.0
#define LIMIT_S 60.0 /* of one command */
#define REASONS_MAX 16

extern char **environ;

struct running {
    pid_t pid;
    int said; /* what it prints */
    double started_s;
};

struct hg_notify {
    const char *command, *run_dir;
    hg_notify_name_fn name;
    void *context;
    bool failure, away, refused, over; /* told */
    const struct hg_reason *reasons[REASONS_MAX];
    size_t n_reasons;
    struct running *items;
    size_t n, cap;
};

/* What is told. */
struct event {
    const char *kind;
    char subject[256];
    struct hg_buf text;
    char *cell; /* the one that failed, and how */
    const char *state;
};

/* ---- Running the command ---- */

/* A file without a name. -1: there is none. */
static int scratch(const struct hg_buf *content)
{
    int fd = memfd_create("notify", MFD_CLOEXEC);

    if (fd >= 0 && content &&
        (hg_fs_write_all(fd, hg_buf_str(content), content->len) < 0 ||
         lseek(fd, 0, SEEK_SET) < 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void set(struct hg_words *env, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set(struct hg_words *env, const char *name, const char *fmt, ...)
{
    struct hg_buf word = HG_BUF_INIT;
    va_list ap;

    hg_buf_printf(&word, "HPCGRID_%s=", name);
    va_start(ap, fmt);
    hg_buf_vprintf(&word, fmt, ap);
    va_end(ap);
    hg_words_push(env, hg_buf_str(&word));
    hg_buf_done(&word);
}

/* In front of the environment: the first of a name counts. */
static void make_env(const struct hg_notify *n, const struct hg_run_state *state,
                     const struct event *e, struct hg_words *env)
{
    struct hg_buf counts = HG_BUF_INIT;

    hg_state_format(state, -1, &counts);
    set(env, "EVENT", "%s", e->kind);
    set(env, "SUBJECT", "%s", e->subject);
    set(env, "RUN", "%s", n->run_dir);
    set(env, "COUNTS", "%s", hg_buf_str(&counts));
    set(env, "CELLS", "%zu", state->cells);
    set(env, "OK", "%zu", state->counts[HG_CELL_OK]);
    set(env, "BAD", "%zu", hg_state_bad(state) - hg_state_open(state));
    set(env, "OPEN", "%zu", hg_state_open(state));
    set(env, "CELL", "%s", e->cell ? e->cell : "");
    set(env, "STATE", "%s", e->state ? e->state : "");
    for (char **word = environ; *word; word++)
        hg_words_push(env, *word);
    hg_buf_done(&counts);
}

static void start(struct hg_notify *n, const struct hg_run_state *state, struct event *e)
{
    const char *const argv[] = { "/bin/sh", "-c", n->command, NULL };
    struct hg_proc_spec spec = HG_PROC_SPEC_INIT;
    struct hg_words env = HG_WORDS_INIT;
    struct running r = { .started_s = hg_clock_mono_s(), .said = scratch(NULL) };
    struct hg_err err = HG_ERR_INIT;
    struct hg_proc proc;

    hg_buf_printf(&e->text, "\nhpcgrid status %s\n", n->run_dir);
    make_env(n, state, e, &env);
    spec.argv = argv;
    spec.env = (const char *const *)env.items;
    spec.in = scratch(&e->text);
    spec.out = spec.err = r.said < 0 ? HG_PROC_NULL : r.said;
    spec.new_session = true; /* Ctrl-C is meant for hpcgrid */
    if (spec.in < 0)
        hg_err_sys(&err, "cannot write the message");
    else if (hg_proc_start(&spec, &proc, &err) == 0) {
        r.pid = proc.pid;
        *HG_VEC_PUSH(n) = r;
    }
    if (err.code) {
        hg_warn("--notify: %s", err.text);
        close(r.said);
    }
    if (spec.in >= 0)
        close(spec.in);
    hg_words_done(&env);
    hg_buf_done(&e->text);
    free(e->cell);
}

/* The last line that it printed, if it failed. */
static void tell_failure(const struct running *r, const char *ended)
{
    char text[512];
    off_t size = r->said < 0 ? 0 : lseek(r->said, 0, SEEK_END), most = sizeof text - 1;
    ssize_t n = r->said < 0 ? 0 : pread(r->said, text, most, size > most ? size - most : 0);

    n = n > 0 ? n : 0;
    while (n > 0 && strchr("\r\n", text[n - 1]))
        n--;
    text[n] = '\0';
    hg_warn("--notify: %s%s%s", ended, n ? ": " : "",
            strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text);
}

/* Take leave of commands that have ended, and end those that take too long. */
static void reap(struct hg_notify *n)
{
    for (size_t i = 0; i < n->n;) {
        struct running *r = &n->items[i];
        char ended[64] = "it took longer than a minute and was ended";
        int status = 0, rc = hg_proc_wait(r->pid, 0, &status, NULL);

        if (rc == 1 && hg_clock_mono_s() - r->started_s < LIMIT_S) {
            i++;
            continue;
        }
        if (rc == 1) {
            kill(-r->pid, SIGKILL);
            hg_proc_wait(r->pid, -1, &status, NULL);
        } else {
            hg_proc_status_format(status, ended);
        }
        if (status)
            tell_failure(r, ended);
        if (r->said >= 0)
            close(r->said);
        *r = n->items[--n->n];
    }
}

/* ---- Events ---- */

/* "squad/003", from the run's folder. */
static const char *short_name(const char *run_dir)
{
    const char *at = run_dir + strlen(run_dir);

    for (int slashes = 0; at > run_dir; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return at;
}

static struct event begin(const struct hg_notify *n, const struct hg_run_state *state,
                          const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* An event with its subject, which is also the text's first line. */
static struct event begin(const struct hg_notify *n, const struct hg_run_state *state,
                          const char *kind, const char *fmt, ...)
{
    struct event e = { .kind = kind, .text = HG_BUF_INIT };
    struct hg_buf line = HG_BUF_INIT;
    va_list ap;

    hg_buf_printf(&line, "%s: ", short_name(n->run_dir));
    va_start(ap, fmt);
    hg_buf_vprintf(&line, fmt, ap);
    va_end(ap);
    snprintf(e.subject, sizeof e.subject, "%s", hg_buf_str(&line));
    for (char *p = e.subject; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' '; /* a line of a mail's head */
    hg_buf_printf(&e.text, "%s\n", e.subject);
    hg_state_format(state, -1, &e.text);
    hg_buf_puts(&e.text, "\n");
    hg_buf_done(&line);
    return e;
}

/* The first cell that a function picks; NULL: none. */
static const struct hg_run_cell *find(const struct hg_run_state *state,
                                      bool (*is)(const struct hg_run_cell *cell), int *batch,
                                      size_t *line)
{
    for (size_t b = 0; b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            if (is(&state->batches.items[b].cells[i])) {
                *batch = (int)b + 1;
                *line = i;
                return &state->batches.items[b].cells[i];
            }
    return NULL;
}

static void look_at_failures(struct hg_notify *n, const struct hg_run_state *state)
{
    struct hg_buf name = HG_BUF_INIT;
    const struct hg_run_cell *cell;
    const char *why;
    struct event e;
    int batch;
    size_t line;

    if (n->failure || !(cell = find(state, hg_cell_is_bad, &batch, &line)))
        return;
    n->failure = true;
    why = hg_run_text(state, cell);
    n->name(n->context, batch, line, &name);
    e = begin(n, state, "failure", "%s: %s%s%s", hg_buf_str(&name),
              hg_cell_state_names[cell->state], *why ? ": " : "", why);
    hg_buf_printf(&e.text,
                  "\nThe first cell without a good result; the others go on.\nhpcgrid logs %s\n",
                  n->run_dir);
    e.cell = hg_buf_detach(&name);
    e.state = hg_cell_state_names[cell->state];
    start(n, state, &e);
}

static void look_at_slurm(struct hg_notify *n, const struct hg_run_state *state, double away_s)
{
    struct event e;

    if (away_s >= AWAY_S && !n->away) {
        e = begin(n, state, "attention", "Slurm has not answered for %.0f s", away_s);
        hg_buf_puts(&e.text, "\nJobs in the queue are not affected. hpcgrid keeps trying.\n");
        start(n, state, &e);
    }
    n->away = away_s >= AWAY_S || (n->away && away_s > 0);
}

static bool is_refused(const struct hg_run_cell *cell)
{
    return cell->state == HG_CELL_REFUSED;
}

static void look_at_refusals(struct hg_notify *n, const struct hg_run_state *state)
{
    const struct hg_run_cell *cell;
    struct event e;
    int batch;
    size_t line;

    if (n->refused || !(cell = find(state, is_refused, &batch, &line)))
        return;
    n->refused = true;
    e = begin(n, state, "attention", "refused cells: %zu, %s", state->counts[HG_CELL_REFUSED],
              hg_run_text(state, cell));
    hg_buf_printf(&e.text, "\nhpcgrid resume %s tries again.\n", n->run_dir);
    start(n, state, &e);
}

static bool was_told(const struct hg_notify *n, const struct hg_reason *reason)
{
    for (size_t i = 0; i < n->n_reasons; i++)
        if (n->reasons[i] == reason)
            return true;
    return n->n_reasons == REASONS_MAX;
}

/* Slurm keeps cells waiting until a person acts. What `hpcgrid hold` holds a person knows. */
static void look_at_reasons(struct hg_notify *n, const struct hg_run_state *state)
{
    for (size_t b = 0; b < state->batches.n && state->counts[HG_CELL_PENDING]; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = &state->batches.items[b].cells[i];
            const struct hg_reason *reason;
            struct event e;

            if (cell->state != HG_CELL_PENDING || !cell->text || hg_cell_is_held(cell))
                continue;
            reason = hg_reason_find(hg_run_text(state, cell));
            if (reason->class != HG_REASON_ACT || was_told(n, reason))
                continue;
            n->reasons[n->n_reasons++] = reason;
            e = begin(n, state, "attention", "cells wait for a person: %s",
                      hg_run_text(state, cell));
            hg_buf_printf(&e.text, "\n%s\n", reason->text);
            start(n, state, &e);
        }
}

/* ---- A run ---- */

struct hg_notify *hg_notify_create(const char *command, const char *run_dir,
                                   const struct hg_run_state *state, hg_notify_name_fn name,
                                   void *context)
{
    struct hg_notify *n;
    size_t line;
    int batch;

    if (!command)
        return NULL;
    n = hg_alloc_zeroed(1, sizeof *n);
    *n = (struct hg_notify){ .command = command,
                             .run_dir = run_dir,
                             .name = name,
                             .context = context,
                             .failure = find(state, hg_cell_is_bad, &batch, &line) != NULL };
    return n;
}

void hg_notify_look(struct hg_notify *n, const struct hg_run_state *state, double away_s)
{
    if (!n)
        return;
    reap(n);
    n->over = n->over && hg_state_open(state) == 0; /* else cells run again */
    look_at_failures(n, state);
    look_at_refusals(n, state);
    look_at_slurm(n, state, away_s);
    look_at_reasons(n, state);
}

static void tell_end(struct hg_notify *n, const struct hg_run_state *state, const char *why)
{
    struct event e;

    if (why)
        e = begin(n, state, "attention", "no longer driven: %s", why);
    else
        e = begin(n, state, "end", "finished, %zu of %zu cells have a good result",
                  state->counts[HG_CELL_OK],
                  state->cells - state->counts[HG_CELL_UNNEEDED] - state->counts[HG_CELL_REMOVED]);
    hg_buf_printf(&e.text, "\nhpcgrid %s %s\n", why ? "resume" : "report", n->run_dir);
    start(n, state, &e);
}

void hg_notify_over(struct hg_notify *n, const struct hg_run_state *state)
{
    if (!n || n->over)
        return;
    n->over = true;
    tell_end(n, state, NULL);
}

void hg_notify_end(struct hg_notify *n, const struct hg_run_state *state, const char *why)
{
    if (!n)
        return;
    if (!why)
        hg_notify_over(n, state);
    else if (*why)
        tell_end(n, state, why);
    for (reap(n); n->n; reap(n))
        hg_clock_sleep_s(0.02);
    HG_VEC_DONE(n);
    free(n);
}
