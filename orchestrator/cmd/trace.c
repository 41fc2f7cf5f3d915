/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/state.h"
#include "matrix/select.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt_find.h"
#include "inspect/ranktrace.h"
#include "inspect/timeline.h"
#include "inspect/trace.h"
#include "rundir/events.h"
#include "base/alloc.h"

static const char *reports, *select_text, *cell_text, *wanted, *out_path;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 'o', "out", &out_path, "FILE", "write to FILE instead of standard output", 0,
      0 },
    HG_OPTION_SELECT(&select_text),
    { HG_OPT_STRING, 0, "cell", &cell_text, "ID", "the worker's trace of this cell", 0, 0 },
    { HG_OPT_STRING, 0, "attempt", &wanted, "S.R", "this attempt instead of the one that counts", 0,
      0 },
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

/* ---- Where it goes ---- */

struct sink {
    FILE *f;
    struct hg_fs_part part; /* not begun: standard output */
};

static int open_sink(struct sink *s, struct hg_err *err)
{
    int fd;

    *s = (struct sink){ .f = stdout, .part = HG_FS_PART_INIT };
    if (!out_path || strcmp(out_path, "-") == 0)
        return 0;
    if (hg_fs_part_begin(out_path, 0644, &s->part, err) < 0)
        return -1;
    fd = fcntl(s->part.fd, F_DUPFD_CLOEXEC, 3);
    s->f = fd < 0 ? NULL : fdopen(fd, "w");
    if (s->f)
        return 0;
    hg_err_sys(err, "cannot write %s", out_path);
    if (fd >= 0)
        close(fd);
    hg_fs_part_done(&s->part);
    return -1;
}

/* rc: of writing it; an incomplete trace is removed. */
static int close_sink(struct sink *s, int rc, struct hg_err *err)
{
    bool failed = fflush(s->f) != 0 || ferror(s->f);

    if (s->f == stdout) /* main looks at it */
        return rc;
    if (fclose(s->f) != 0)
        failed = true;
    if (rc == 0 && failed)
        rc = hg_err_sys(err, "cannot write %s", out_path);
    if (rc == 0)
        rc = hg_fs_part_end(&s->part, err);
    hg_fs_part_done(&s->part);
    return rc;
}

/* ---- A run ---- */

static int write_run(const struct hg_rundir *rd, const struct hg_timeline *t, struct hg_err *err)
{
    struct sink s;

    if (t->damaged)
        hg_warn(
            "results that do not count: %zu (`hpcgrid fsck %s` says why); their attempts are drawn "
            "without them",
            t->damaged, rd->path);
    if (!t->cells)
        return hg_err_set(err, HG_E_INPUT, "no cell of %s matches", rd->path);
    if (!t->n) {
        hg_err_set(err, HG_E_NOTFOUND, "%s: nothing has run yet (%zu cell%s)", rd->path, t->cells,
                   hg_text_s(t->cells));
        return hg_err_hint(err, "`hpcgrid status %s` shows what they wait for", rd->path);
    }
    if (open_sink(&s, err) < 0)
        return -1;
    hg_trace_run(rd, t, s.f);
    if (close_sink(&s, 0, err) < 0)
        return -1;
    hg_info("%zu attempt%s; open it in https://ui.perfetto.dev or chrome://tracing", t->n,
            hg_text_s(t->n));
    return 0;
}

static int trace_run(const struct hg_rundir *rd, struct hg_err *err)
{
    struct hg_selector *select = select_text ? hg_selector_parse(select_text, err) : NULL;
    struct hg_run_state *state = NULL;
    struct hg_timeline t = { 0 };
    int rc = -1;

    if (select_text && !select)
        return -1;
    if (hg_state_load(rd->path, &state, err) == 0 &&
        hg_timeline_load(rd, state, select, &t, err) == 0)
        rc = write_run(rd, &t, err);
    hg_timeline_done(&t);
    hg_run_state_free(state);
    hg_selector_free(select);
    return rc;
}

/* ---- A cell ---- */

/* Planned cells whose id begins with the given text. */
struct search {
    char *id;
    int looked; /* the batch that is looked at */
    int batch;  /* its place: the batch, and the line in it */
    size_t line;
    size_t n;
    bool exact;
};

static int look_at(size_t line, const json_t *cell, void *context)
{
    struct search *s = context;
    const char *id = json_string_value(json_object_get(cell, "id"));

    if (!id || s->exact || strncmp(id, cell_text, strlen(cell_text)) != 0)
        return 0;
    s->exact = strcmp(id, cell_text) == 0;
    s->n = s->exact ? 1 : s->n + 1;
    free(s->id);
    s->id = hg_strdup(id);
    s->batch = s->looked;
    s->line = line;
    return 0;
}

static int find_cell(const struct hg_rundir *rd, struct search *s, struct hg_err *err)
{
    json_t *plan = hg_plan_read(rd->path, err);
    const json_t *batch;
    int rc = plan ? 0 : -1;
    size_t i;

    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        int number = (int)json_integer_value(json_object_get(batch, "number"));

        s->looked = number;
        if (rc == 0)
            rc = hg_plan_each_cell(rd->path, number, look_at, s, err);
    }
    json_decref(plan);
    if (rc == 0 && s->n != 1) {
        hg_err_set(err, HG_E_INPUT,
                   s->n ? "%s has %zu cells whose id begins with \"%s\""
                        : "%s has %zu cells with id \"%s\"",
                   rd->path, s->n, cell_text);
        rc = hg_err_hint(err, "`hpcgrid status %s --ids` lists them", rd->path);
    }
    return rc;
}

/* Attempts with traces have files of the workload's, and are never packed. */
static int refuse_packed(const struct hg_rundir *rd, const struct search *found,
                         const struct hg_attempt *a, struct hg_err *err)
{
    int packed = hg_attempt_is_packed(rd, found->batch, found->line, found->id, a->submission,
                                      a->restarts, err);

    return packed > 0 ? hg_err_set(err, HG_E_NOTFOUND, "attempt %u.%u of cell %s has no trace",
                                   a->submission, a->restarts, found->id)
                      : packed;
}

/* Folder of the requested attempt, or of the one that counts; yours. */
static char *find_attempt(const struct hg_rundir *rd, const struct search *found,
                          struct hg_err *err)
{
    struct hg_attempt_group g = { .rd = rd };
    struct hg_attempt a = { 0 };
    char *dir = NULL;
    int rc = 0;

    if (!wanted)
        rc = hg_attempt_find(&g, found->batch, found->line, found->id, 0, NULL, &a, err);
    else if (!hg_attempt_parse(wanted, &a.submission, &a.restarts))
        rc = hg_err_set(err, HG_E_USAGE, "--attempt %s: must be a number such as 2.0", wanted);
    if (rc == 0 && !wanted && !a.claimed)
        rc = hg_err_set(err, HG_E_NOTFOUND, "cell %s of %s has not run yet", found->id, rd->path);
    if (rc == 0)
        rc = refuse_packed(rd, found, &a, err);
    if (rc == 0)
        dir = hg_attempt_dir(rd, found->batch, found->line, found->id, a.submission, a.restarts);
    hg_attempt_group_forget(&g);
    return dir;
}

static int trace_cell(const struct hg_rundir *rd, struct hg_err *err)
{
    struct search found = { 0 };
    char *dir = NULL;
    struct sink s;
    int rc = -1;

    if (find_cell(rd, &found, err) == 0)
        dir = find_attempt(rd, &found, err);
    if (dir && open_sink(&s, err) == 0)
        rc = close_sink(&s, hg_trace_ranks(dir, s.f, err), err);
    free(found.id);
    free(dir);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd = { 0 };
    int rc = -1;

    (void)argc;
    if (wanted && !cell_text)
        hg_err_set(&err, HG_E_USAGE, "--attempt needs --cell");
    else if (cell_text && select_text)
        hg_err_set(&err, HG_E_USAGE, "--cell and --select exclude each other");
    else if (hg_rundir_find(hg_options_reports(reports), argv[0], &rd, &err) == 0)
        rc = cell_text ? trace_cell(&rd, &err) : trace_run(&rd, &err);
    hg_rundir_done(&rd);
    return rc < 0 ? hg_errs_add(errs, &err) : 0;
}

const struct hg_cmd hg_cmd_trace = {
    .name = "trace",
    .args = "RUN",
    .summary = "Export a run's timeline for Perfetto: nodes, queues, phases.",
    .details = "Prints Chrome's trace format (JSON). With --cell: what the worker's profiler\n"
               "recorded of one attempt (\"trace\": true), all ranks on the clocks of their hosts.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
