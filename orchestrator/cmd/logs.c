/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/picks.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "cmd/session.h"
#include "cmd/signals.h"
#include "drive/drive.h"
#include "drive/overlay.h"
#include "matrix/select.h"
#include "plan/cells.h"
#include "rundir/attempt.h"
#include "rundir/collect.h"

#define FOLLOW_S 0.25
#define JOURNAL_EVERY 8 /* times FOLLOW_S */
#define CHUNK 65536

static const char *reports, *wanted;
static bool only_out, only_err, follow;
static long lines = 20;

static const struct hg_opt opts[] = {
    { HG_OPT_INT, 'n', "lines", &lines, "N", "the last N lines of each (20); 0: all", 0, 1e9 },
    { HG_OPT_FLAG, 'f', "follow", &follow, NULL, "continue until the cell's attempt has ended", 0,
      0 },
    { HG_OPT_FLAG, 0, "out", &only_out, NULL, "only stdout", 0, 0 },
    { HG_OPT_FLAG, 0, "err", &only_err, NULL, "only stderr", 0, 0 },
    { HG_OPT_STRING, 0, "attempt", &wanted, "S.R", "this attempt instead of the newest", 0, 0 },
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

/* ---- Which cells ---- */

/* What the user named: a selector, which may also be the beginning of an id, or nothing. */
struct request {
    struct hg_selector *select;
    const char *id;
};

static int read_request(const char *word, struct request *a, struct hg_err *err)
{
    *a = (struct request){ 0 };
    if (!word)
        return 0;
    if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] ==
        '\0')
        a->id = word;
    a->select = hg_selector_parse(word, a->id ? NULL : err);
    return a->id || a->select ? 0 : -1;
}

static bool is_bad(const char *status)
{
    static const char *const fine[] = { "ok", "pending", "running", "waiting", "cancelled" };

    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (strcmp(status, fine[i]) == 0)
            return false;
    return true;
}

/* 1: print its log, 0: do not, -1: err set. */
static int is_requested(const struct request *a, const json_t *entry, struct hg_err *err)
{
    const char *id = json_string_value(json_object_get(entry, "id"));
    const char *status = json_string_value(json_object_get(entry, "status"));

    if (a->id && strncmp(id, a->id, strlen(a->id)) == 0)
        return 1;
    if (a->select) {
        hg_selector_see(a->select, json_object_get(entry, "cell"));
        return hg_selector_match(a->select, id, json_object_get(entry, "cell"), err);
    }
    return is_bad(status);
}

/* ---- Which attempt ---- */

/* The newest attempt at a cell, or the wanted one; NULL if there is none. */
static struct hg_attempt_files *find_attempt(const struct hg_attempt_group *g, const char *id)
{
    struct hg_attempt_list list;

    hg_attempt_group_find(g, id, &list);
    while (list.n) {
        struct hg_attempt_files *f = &list.items[--list.n];
        char name[HG_ATTEMPT_NAME_MAX];

        hg_attempt_name(f->submission, f->restarts, name);
        if (!wanted || strcmp(name, wanted) == 0)
            return f;
    }
    return NULL;
}

/* ---- Printing ---- */

/* Start of the last n lines between two offsets of an open file; n 0: begin. */
static off_t tail_start(int fd, off_t begin, off_t end, long n)
{
    char chunk[4096];
    long seen = 0;

    for (off_t at = end; n > 0 && at > begin;) {
        ssize_t size =
            at - begin < (off_t)sizeof chunk ? (ssize_t)(at - begin) : (ssize_t)sizeof chunk;

        at -= size;
        if (pread(fd, chunk, (size_t)size, at) != size)
            return begin;
        for (ssize_t i = size - 1; i >= 0; i--)
            if (chunk[i] == '\n' && at + i != end - 1 && ++seen == n)
                return at + i + 1;
    }
    return begin;
}

/* One attempt, in the group that was read. */
struct attempt {
    const struct hg_attempt_group *group;
    struct hg_attempt_files *files;
};

static void tell_file(const struct attempt *a, const char *name)
{
    char *path = hg_attempt_path(a->group, a->files, name);

    hg_info("%s", path);
    free(path);
}

/* Print a file from *at on; *at advances past what was printed. grows: half a character at its end is left for the next time. */
static int print_from(const struct attempt *a, const char *name, off_t *at, bool head, bool grows,
                      struct hg_err *err)
{
    static char chunk[CHUNK + 1]; /* ends with NUL */
    struct hg_attempt_file file;
    int rc = hg_attempt_open(a->group, a->files, name, &file, err);
    ssize_t n = 0;
    off_t end;

    if (rc < 0) /* nothing was printed */
        return rc == HG_ATTEMPT_NONE ? 0 : -1;
    if (head)
        tell_file(a, name);
    end = file.end < 0 ? lseek(file.fd, 0, SEEK_END) : file.end;
    if (*at < 0)
        *at = tail_start(file.fd, file.begin, end, lines);
    while (*at < end &&
           (n = pread(file.fd, chunk, end - *at < CHUNK ? (size_t)(end - *at) : CHUNK, *at)) > 0 &&
           !ferror(stdout)) {
        if (grows || *at + n < end)
            n = (ssize_t)hg_text_utf8_whole(chunk, (size_t)n);
        if (!n)
            break;
        chunk[n] = '\0';
        hg_print_raw(chunk, (size_t)n);
        *at += n;
    }
    close(file.fd);
    fflush(stdout);
    return n < 0 ? hg_err_sys(err, "cannot read %s", name) : 0;
}

static const char *const streams[] = { "out.log", "err.log" };

static bool is_wanted(size_t stream)
{
    return only_out == only_err || (stream == 0 ? only_out : only_err);
}

static int print_streams(const struct attempt *a, off_t at[static 2], bool head, bool grows,
                         struct hg_err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < 2; i++)
        if (is_wanted(i))
            rc = print_from(a, streams[i], &at[i], head, grows, err);
    return rc;
}

/* A cell's place in the run's journal; batch 0: not found. */
struct place {
    int batch;
    uint32_t line;
};

static struct place find_place(const struct hg_rundir *rd, const char *id)
{
    struct hg_run_state *state = hg_run_state_load(rd->path, NULL);
    struct hg_picks picks = { 0 };
    struct place place = { 0 };

    if (state && hg_picks_name(&picks, rd->path, state, NULL, NULL) == 0)
        for (size_t b = 0; b < state->batches.n && !place.batch; b++)
            for (size_t i = 0; i < state->batches.items[b].n && !place.batch; i++)
                if (strcmp(hg_picks_id(&picks, (int)b + 1, (uint32_t)i), id) == 0)
                    place = (struct place){ (int)b + 1, (uint32_t)i };
    hg_picks_done(&picks);
    hg_run_state_free(state);
    return place;
}

/* An attempt whose exec was killed leaves no result: then the journal knows that its cell is over. */
static bool is_over_in_journal(const struct hg_rundir *rd, struct place place)
{
    struct hg_run_state *state = place.batch ? hg_run_state_load(rd->path, NULL) : NULL;
    const struct hg_run_cell *cell =
        state ? hg_run_cell_find(state, place.batch, place.line) : NULL;
    bool over = cell && hg_cell_is_over(cell);

    hg_run_state_free(state);
    return over;
}

static int follow_attempt(const struct attempt *a, off_t at[static 2], struct hg_err *err)
{
    const struct hg_rundir *rd = a->group->rd;
    struct place place = find_place(rd, a->files->id);
    bool over = false;
    int rc = 0;

    for (unsigned i = 0; rc == 0 && !over && !hg_signals_stop; i++) {
        rc = hg_attempt_look(a->group, a->files, NULL, NULL, err);
        if (rc < 0)
            break;
        over = a->files->result || (i % JOURNAL_EVERY == 0 && is_over_in_journal(rd, place));
        if (!over)
            hg_clock_sleep_s(FOLLOW_S);
        rc = print_streams(a, at, false, !over, err);
    }
    return rc;
}

/* A walk over the results of a run. */
struct walk {
    struct hg_attempt_group group; /* of the run */
    struct hg_names *names;        /* of its cells, once one is shown */
    const struct request *request;
    json_t *newest; /* the last entry so far of the current cell */
    /* The one cell that --follow may take, shown when it is known to be the only one. */
    json_t *followed;
    size_t picked, begun;
};

static void tell_cell(struct walk *w, const json_t *entry, const struct hg_attempt_files *f)
{
    const char *why =
        json_string_value(json_object_get(json_object_get(entry, "error"), "message"));
    char attempt[HG_ATTEMPT_NAME_MAX];
    struct hg_buf name = HG_BUF_INIT;

    if (!w->names)
        w->names = hg_plan_names(w->group.rd->path, NULL);
    if (w->names)
        hg_names_append_cell(w->names, json_object_get(entry, "cell"), &name);
    else
        hg_buf_puts(&name, json_string_value(json_object_get(entry, "id")));
    hg_attempt_name(f->submission, f->restarts, attempt);
    hg_info("%s: attempt %s, %s%s%s", hg_buf_str(&name), attempt,
            json_string_value(json_object_get(entry, "status")), why ? ": " : "", why ? why : "");
    hg_buf_done(&name);
}

/* 1: printed, 0: the cell has not begun, -1: err set. */
static int print_cell(struct walk *w, const json_t *entry, struct hg_err *err)
{
    const char *id = json_string_value(json_object_get(entry, "id"));
    const char *group = json_string_value(json_object_get(entry, "attempt_in"));
    struct hg_attempt_group *g = &w->group;
    struct attempt a = { .group = g };
    off_t at[2] = { -1, -1 };

    if (!group)
        return 0;
    if (hg_attempt_group_read(g, group, err) < 0)
        return -1;
    a.files = find_attempt(g, id);
    if (!a.files)
        return 0;
    tell_cell(w, entry, a.files);
    if (print_streams(&a, at, true, follow, err) < 0 || (follow && follow_attempt(&a, at, err) < 0))
        return -1;
    return 1;
}

static int show(struct walk *w, const json_t *entry, struct hg_err *err)
{
    int is = print_cell(w, entry, err);

    w->begun += is > 0;
    return is < 0 ? -1 : 0;
}

/* No other entry of this cell comes. */
static int end_cell(struct walk *w, struct hg_err *err)
{
    json_t *entry = w->newest;
    int is = entry && !hg_signals_stop ? is_requested(w->request, entry, err) : 0;

    w->newest = NULL;
    if (is > 0 && ++w->picked > 1 && follow) {
        is = hg_err_set(err, HG_E_USAGE, "--follow takes one cell, but several match");
    } else if (is > 0 && follow) {
        w->followed = entry;
        return 0;
    } else if (is > 0) {
        is = show(w, entry, err);
    }
    json_decref(entry);
    return is < 0 ? -1 : 0;
}

static int take_entry(void *context, json_t *entry, char *file, struct hg_err *err)
{
    struct walk *w = context;
    int rc = 0;

    free(file);
    if (w->newest && strcmp(json_string_value(json_object_get(w->newest, "id")),
                            json_string_value(json_object_get(entry, "id"))) != 0)
        rc = end_cell(w, err);
    json_decref(w->newest);
    w->newest = entry;
    return rc;
}

static int tell_nothing(const struct walk *w, struct hg_err *err)
{
    const struct request *a = w->request;

    if (!a->id && !a->select && !w->picked)
        hg_info("no cell has failed; name a cell to see its log");
    else if (!w->picked)
        return !a->id && hg_selector_check_seen(a->select, err) < 0
                   ? -1
                   : hg_err_set(err, HG_E_INPUT, "no cell of %s matches", w->group.rd->path);
    else if (!w->begun)
        hg_info("%s", wanted ? "there is no such attempt" : "nothing has started yet");
    return 0;
}

static int print_all(const struct hg_rundir *rd, const struct request *request, struct hg_err *err)
{
    struct hg_run_state *state =
        hg_run_state_load(rd->path, NULL); /* a plan that was submitted by hand has none */
    struct walk w = { .group = { .rd = rd }, .request = request };
    int rc = hg_collect_each(rd, state ? hg_drive_verdict : NULL, state, take_entry, &w, false,
                             NULL, err);

    if (rc == 0)
        rc = end_cell(&w, err);
    if (rc == 0 && w.followed)
        rc = show(&w, w.followed, err);
    if (rc == 0)
        rc = tell_nothing(&w, err);
    hg_attempt_group_forget(&w.group);
    hg_names_free(w.names);
    json_decref(w.newest);
    json_decref(w.followed);
    hg_run_state_free(state);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    struct request request = { 0 };
    int rc = -1;

    hg_signals_catch();
    if (read_request(argc > 1 ? argv[1] : NULL, &request, &err) == 0 &&
        hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) == 0)
        rc = print_all(&rd, &request, &err);
    hg_rundir_done(&rd);
    hg_selector_free(request.select);
    return rc < 0 ? hg_errs_add(errs, &err) : 0;
}

const struct hg_cmd hg_cmd_logs = {
    .name = "logs",
    .args = "RUN [CELL]",
    .summary = "Print the output of failed cells, or of the cells you name.",
    .details = "CELL is an id, the beginning of one, or a selector. The output goes to stdout,\n"
               "the names of the files to stderr.",
    .opts = opts,
    .min_args = 1,
    .max_args = 2,
    .run = run,
};
