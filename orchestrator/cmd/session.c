/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/load.h"
#include "box/box.h"
#include "cmd/cells.h"
#include "cmd/picks.h"
#include "cmd/runbox.h"
#include "drive/again.h"
#include "drive/check.h"
#include "plan/batch.h"
#include "plan/files.h"
#include "plan/plan.h"
#include "plan/preflight.h"
#include "rundir/identity.h"
#include "rundir/lock.h"

#define REACH_TRIES 3
#define DEADLINE_S 60.0 /* of one call to the scheduler: far above what libslurm itself waits */

volatile sig_atomic_t hg_cmd_stop;

static void on_signal(int number)
{
    hg_cmd_stop = number;
}

void hg_cmd_catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

    hg_cmd_stop = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

const char *hg_cmd_reports(const char *option)
{
    const char *set = getenv("HPCGRID_REPORTS");

    if (option)
        return option;
    return set && *set ? set : "reports";
}

static int add(struct hg_errs *errs, const struct hg_err *err)
{
    hg_errs_add(errs, err);
    return -1;
}

static char *join_words(int argc, char **argv, const char *name)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_buf_printf(&text, "hpcgrid %s", name);
    for (int i = 0; i < argc; i++)
        hg_buf_printf(&text, " %.80s", argv[i]);
    return hg_buf_detach(&text);
}

/* ---- The scheduler ---- */

/* site: as written, or NULL. */
static int open_executor(struct hg_session *s, const json_t *site, struct hg_err *err)
{
    s->executor = &hg_executor_slurm;
    s->exec = s->executor->open(site, DEADLINE_S, err);
    return s->exec ? 0 : -1;
}

/* For a run that has begun: its own copy of the site, so that all its commands go the same way. */
static int open_of_run(struct hg_session *s, struct hg_err *err)
{
    char *path = hg_rundir_path(&s->rd, "site.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    int rc;

    if (path)
        hg_json_load(path, &doc, NULL);
    rc = path ? open_executor(s, doc.root, err) : hg_err_oom(err);
    hg_json_doc_done(&doc);
    free(path);
    return rc;
}

static int ask_limits(struct hg_session *s, struct hg_err *err)
{
    double start = hg_clock_mono_s();
    struct hg_exec_limits limits;

    for (int i = 0; i < REACH_TRIES; i++) { /* an agent that died is started again */
        *err = (struct hg_err)HG_ERR_INIT;
        if (s->executor->limits(s->exec, &limits, err) == 0) {
            snprintf(s->cluster, sizeof s->cluster, "%s", limits.cluster);
            return 0;
        }
        if (err->code != HG_E_AGAIN || hg_clock_mono_s() - start > DEADLINE_S / 4)
            break;
    }
    return -1;
}

/* Is it there at all? Asked before a folder is made. */
static int reach(struct hg_session *s, const struct hg_matrix *m, struct hg_err *err)
{
    if (open_executor(s, m->site->json, err) < 0)
        return -1;
    if (ask_limits(s, err) == 0)
        return 0;
    if (strcmp(m->site->name, "box") == 0 && !getenv("SLURM_CONF"))
        hg_err_hint(err,
                    "this matrix is for a box: `hpcgrid run --box` starts one on this machine");
    return -1;
}

/* How many submissions has the run's journal? -1: err set. */
static long count_submissions(const struct hg_session *s, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_load(s->rd.path, &why);
    long n = state ? (long)state->submissions.n : 0;

    hg_run_state_free(state);
    if (state || why.code == HG_E_NOTFOUND)
        return n;
    *err = why;
    return -1;
}

/* For a run that has begun: jobs that are out go on while their scheduler is away, so it is waited for. What is missing here
 * comes by no waiting. 0; 1: a signal came; -1: err set. */
static int reach_again(struct hg_session *s, bool wait, struct hg_err *err)
{
    double step_s = 1;
    bool said = false;
    int rc;

    if (open_of_run(s, err) < 0)
        return -1;
    while ((rc = ask_limits(s, err)) < 0 && wait && s->executor->away &&
           s->executor->away(s->exec) && !hg_cmd_stop) {
        if (!said)
            hg_warn("no answer from Slurm (%s); jobs go on, and so does the waiting; Ctrl-C leaves",
                    err->text);
        said = true;
        hg_clock_sleep_s(step_s);
        step_s = step_s < 32 ? step_s * 2 : 60;
    }
    if (rc == 0 && said)
        hg_info("Slurm answers again");
    if (rc == 0 || !said || !hg_cmd_stop)
        return rc;
    hg_info("stopped; come back with: hpcgrid resume %s", s->rd.path);
    return 1;
}

/* Is the scheduler one that nobody else uses? */
static bool is_near(const struct hg_session *s)
{
    const char *conf = getenv("SLURM_CONF");
    struct hg_boxes boxes = { 0 };
    bool near = s->box != NULL;

    if (!near && conf && hg_box_list(&boxes, NULL) == 0)
        for (size_t i = 0; i < boxes.n; i++)
            near = near || (boxes.items[i].conf && strcmp(boxes.items[i].conf, conf) == 0);
    hg_boxes_done(&boxes);
    return near;
}

static int open_drive(struct hg_session *s, bool steal, struct hg_err *err)
{
    struct hg_drive_options options = {
        .executor = s->executor,
        .exec = s->exec,
        .deadline_s = DEADLINE_S,
        .running = s->running,
        .retry = s->retry,
        .max_queued = s->max_queued,
        .visible_s = -1,
        .near = is_near(s),
        .send_nothing = s->send_nothing,
        .steal = steal,
        .command = s->command,
        .cluster = s->cluster,
        .lock = s->lock,
        .stop = &hg_cmd_stop,
    };

    s->lock = NULL;
    s->drive = hg_drive_open(&s->rd, s->plan, &options, err);
    return s->drive ? 0 : -1;
}

/* ---- From a matrix ---- */

/* A matrix of another site that runs in a box is a rehearsal: a run of its own, with the box's words. */
static struct hg_matrix *load_matrix(const struct hg_session_wish *wish, struct hg_errs *errs)
{
    struct hg_matrix *m = hg_matrix_load(wish->matrix, wish->site, errs);
    char *name;

    if (!m || !wish->box || strcmp(m->site->name, "box") == 0)
        return m;
    hg_matrix_free(m);
    m = hg_matrix_load(wish->matrix, "box", errs);
    if (!m)
        return NULL;
    name = hg_str_printf("%.58s-box", m->name);
    if (name) {
        free(m->name);
        m->name = name;
    }
    return m;
}

static int warn_cells(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct hg_cells_count count;
    int rc = hg_cells_walk(m, 0, NULL, NULL, &count, errs);

    if (rc == 0)
        hg_cmd_warn(&count);
    hg_cells_count_done(&count);
    return rc;
}

static int find_run(struct hg_session *s, const struct hg_session_wish *wish, const char *name,
                    struct hg_err *err)
{
    const char *root = hg_cmd_reports(wish->reports);
    struct hg_err why = HG_ERR_INIT;

    if (!wish->fresh) {
        if (hg_rundir_newest(root, name, &s->rd, &why) == 0)
            return 0;
        if (why.code != HG_E_NOTFOUND) {
            *err = why;
            return -1;
        }
    }
    return hg_rundir_create(root, name, &s->rd, err);
}

static int remove_file(const struct hg_rundir *rd, const char *name, struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "%s", name);
    int rc = path ? hg_fs_remove_tree(path, err) : hg_err_oom(err);

    free(path);
    return rc;
}

/* A run of which nothing was ever submitted has no past: its plan is made anew, so that what Slurm
 * refused can be put right in the site or the matrix. */
static int forget_unsubmitted(const struct hg_session *s, struct hg_err *err)
{
    long submitted = count_submissions(s, err);

    if (submitted)
        return submitted < 0 ? -1 : 0;
    /* the plan first: what it names may be gone only when it is */
    return remove_file(&s->rd, "plan.json", err) < 0 || remove_file(&s->rd, "batches", err) < 0 ||
                   remove_file(&s->rd, "events.jsonl", err) < 0
               ? -1
               : 0;
}

/* May what was submitted before be gone on with, here? */
static int check_past(const struct hg_session *s, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_load(s->rd.path, &why);
    int rc = 0;

    if (!state && why.code != HG_E_NOTFOUND) {
        *err = why;
        rc = -1;
    } else if (state && state->submissions.n &&
               (hg_identity_check(s->rd.path, err) < 0 ||
                hg_identity_check_cluster(s->rd.path, state, s->cluster, err) < 0)) {
        rc = -1;
    }
    hg_run_state_free(state);
    return rc;
}

/* Bring the run's plan up to the matrix, under the lock. */
static int make_plan(struct hg_session *s, const struct hg_matrix *m,
                     const struct hg_selector *select, bool steal, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_plan *known;
    size_t before;

    if (check_past(s, &err) < 0 || !(s->lock = hg_drive_lock(&s->rd, s->command, steal, &err)) ||
        forget_unsubmitted(s, &err) < 0)
        return add(errs, &err);
    known = hg_plan_load(s->rd.path, &err);
    if (!known && (err.code != HG_E_NOTFOUND || count_submissions(s, &err)))
        return add(errs, &err);
    before = known ? known->cells : 0;
    s->plan = hg_plan_make(m, select, known, errs);
    hg_plan_free(known);
    err = (struct hg_err)HG_ERR_INIT;
    if (!s->plan)
        return -1;
    hg_cmd_show_skips(s->plan);
    if (s->plan->reshaped)
        hg_warn(
            "cells of this run that ask for other resources now, but not all of their batch: %zu; "
            "they keep what they had (--new begins a new run)",
            s->plan->reshaped);
    if (s->plan->renewed)
        hg_info("cells of this run that ask for other resources when they are submitted next: %zu",
                s->plan->renewed);
    if (hg_plan_save(s->plan, m, s->rd.path, &err) < 0)
        return add(errs, &err);
    if (before && s->plan->cells > before)
        hg_info("%s: %zu new cell%s", s->rd.path, s->plan->cells - before,
                hg_text_s(s->plan->cells - before));
    return 0;
}

/* A plan that cannot be made is found before anything is written. */
static int try_plan(const struct hg_matrix *m, const struct hg_selector *select,
                    struct hg_errs *errs)
{
    struct hg_plan *plan = hg_plan_make(m, select, NULL, errs);

    hg_plan_free(plan);
    return plan ? 0 : -1;
}

static int begin(struct hg_session *s, const struct hg_session_wish *wish,
                 const struct hg_matrix *m, const struct hg_selector *select, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;

    s->running = m->running;
    s->retry = m->retry;
    s->max_queued = m->site->max_queued;
    if (wish->box)
        unsetenv("SLURM_CONF"); /* a plan looks there for what a box has; this one is yet to come */
    if (warn_cells(m, errs) < 0 || try_plan(m, select, errs) < 0 ||
        (!wish->skip_data && hg_preflight_data(m, select, errs) < 0))
        return -1;
    if (!wish->box && reach(s, m, &err) < 0)
        return add(errs, &err);
    if (find_run(s, wish, m->name, &err) < 0)
        return add(errs, &err);
    if (make_plan(s, m, select, wish->steal, errs) < 0)
        return -1;
    if (wish->box && (hg_cmd_start_box(s, m->site, &err) < 0 || reach(s, m, &err) < 0))
        return add(errs, &err);
    if (open_drive(s, wish->steal, &err) < 0)
        return add(errs, &err);
    return 0;
}

int hg_session_begin(struct hg_session *s, const struct hg_session_wish *wish, int argc,
                     char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *select = NULL;
    struct hg_matrix *m = NULL;
    int rc = -1;

    *s = (struct hg_session){ .command = join_words(argc, argv, "run") };
    if (wish->select && !(select = hg_selector_parse(wish->select, &err))) {
        add(errs, &err);
        goto out;
    }
    m = load_matrix(wish, errs);
    if (!m)
        goto out;
    if (select && hg_selector_check(select, m->grid, &err) < 0) {
        add(errs, &err);
        goto out;
    }
    hg_cmd_catch_signals();
    rc = begin(s, wish, m, select, errs);
out:
    hg_selector_free(select);
    hg_matrix_free(m);
    if (rc < 0)
        hg_session_done(s);
    return rc;
}

/* ---- From a run ---- */

/* What the run's own matrix and site say about how it is driven. */
static void read_limits(struct hg_session *s)
{
    char *matrix = hg_rundir_path(&s->rd, "matrix.json"),
         *site = hg_rundir_path(&s->rd, "site.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;

    if (matrix && hg_json_load(matrix, &doc, NULL) == 0) {
        const json_t *limits = json_object_get(doc.root, "limits");

        s->running = json_integer_value(json_object_get(limits, "running"));
        s->retry = hg_retry_of(json_object_get(doc.root, "retry"));
    }
    hg_json_doc_done(&doc);
    if (site && hg_json_load(site, &doc, NULL) == 0)
        s->max_queued = json_integer_value(json_object_get(doc.root, "max_queued"));
    hg_json_doc_done(&doc);
    free(matrix);
    free(site);
}

int hg_session_resume(struct hg_session *s, const struct hg_session_back *back,
                      struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    long submitted;
    int rc = -1;

    *s = (struct hg_session){ .send_nothing = back->send_nothing,
                              .command =
                                  hg_str_printf("hpcgrid %s %.120s", back->command, back->run) };
    if (hg_rundir_find(hg_cmd_reports(back->reports), back->run, &s->rd, &err) < 0 ||
        hg_identity_check(s->rd.path, &err) < 0)
        goto out;
    read_limits(s);
    s->lock = hg_drive_lock(&s->rd, s->command, back->steal, &err);
    if (!s->lock)
        goto out;
    s->plan = hg_plan_load(s->rd.path, &err);
    submitted = s->plan ? count_submissions(s, &err) : -1;
    if (submitted < 0 || hg_cmd_use_box(&s->rd, &s->box, &err) < 0)
        goto out;
    hg_cmd_catch_signals();
    rc = reach_again(s, back->wait && submitted > 0, &err);
    if (rc == 0)
        rc = open_drive(s, back->steal, &err);
out:
    if (rc != 0)
        hg_session_done(s);
    return rc < 0 ? add(errs, &err) : rc;
}

int hg_session_left(void)
{
    return 128 + (hg_cmd_stop ? hg_cmd_stop : SIGINT);
}

int hg_session_reach(struct hg_session *s, const char *reports, const char *word, bool telling,
                     struct hg_err *err)
{
    *s = (struct hg_session){ 0 };
    if (hg_rundir_find(hg_cmd_reports(reports), word, &s->rd, err) == 0 &&
        (!telling || hg_identity_check(s->rd.path, err) == 0) &&
        hg_cmd_use_box(&s->rd, &s->box, err) == 0 && open_of_run(s, err) == 0)
        return 0;
    hg_session_done(s);
    return -1;
}

int hg_session_check_cluster(struct hg_session *s, const struct hg_run_state *state,
                             struct hg_err *err)
{
    if (!*state->cluster || ask_limits(s, &(struct hg_err)HG_ERR_INIT) < 0)
        return 0;
    return hg_identity_check_cluster(s->rd.path, state, s->cluster, err);
}

int hg_session_again(struct hg_session *s, unsigned statuses, const char *select,
                     struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_picks picks;
    long n = -1;

    if (hg_picks_make(&picks, s->rd.path, hg_drive_state(s->drive), select, &err) == 0)
        n = hg_drive_again(s->drive, statuses, hg_picks_fits, &picks, &err);
    hg_picks_done(&picks);
    if (n < 0)
        return add(errs, &err);
    if (n > 0)
        hg_info("%ld cell%s again", n, n == 1 ? " runs" : "s run");
    else
        hg_info("no cell to run again");
    return 0;
}

void hg_session_done(struct hg_session *s)
{
    hg_drive_close(s->drive);
    if (s->exec)
        s->executor->close(s->exec);
    hg_lock_release(s->lock);
    hg_cmd_end_box(s);
    hg_plan_free(s->plan);
    hg_rundir_done(&s->rd);
    free(s->box);
    free(s->told);
    free(s->command);
    *s = (struct hg_session){ 0 };
}

int hg_session_check(struct hg_session *s, struct hg_errs *errs)
{
    return hg_drive_check(s->drive, errs);
}
