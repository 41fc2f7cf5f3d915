/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/runplan.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/auto_limits.h"
#include "cmd/cells.h"
#include "cmd/changes.h"
#include "cmd/forecast.h"
#include "cmd/state.h"
#include "plan/files.h"
#include "plan/plan.h"
#include "plan/preflight.h"
#include "rundir/identity.h"

int hg_runplan_check(const struct hg_matrix *m, const struct hg_selector *select, bool data,
                     struct hg_errs *errs)
{
    struct hg_plan *plan = hg_plan_make(m, select, NULL, errs);

    if (!plan)
        return -1;
    hg_cells_print_warnings(&plan->count);
    hg_plan_free(plan);
    return data ? hg_preflight_data(m, select, errs) : 0;
}

int hg_runplan_check_past(const struct hg_rundir *rd, const char *cluster, struct hg_err *err)
{
    struct hg_run_state *state;
    int rc = hg_state_load(rd->path, &state, err);

    if (state && state->submissions.n &&
        (hg_identity_check(rd->path, err) < 0 ||
         hg_identity_check_cluster(rd->path, state, cluster, err) < 0))
        rc = -1;
    hg_run_state_free(state);
    return rc;
}

long hg_runplan_submissions(const struct hg_rundir *rd, struct hg_err *err)
{
    struct hg_run_state *state;
    int rc = hg_state_load(rd->path, &state, err);
    long n = state ? (long)state->submissions.n : 0;

    hg_run_state_free(state);
    return rc < 0 ? -1 : n;
}

static int remove_file(const struct hg_rundir *rd, const char *name, struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "%s", name);
    int rc = hg_fs_remove_tree(path, err);

    free(path);
    return rc;
}

/* A run of which nothing was ever submitted is planned again, so that what Slurm refused can be corrected in the site or the matrix.
 * The plan goes first: what it names may be missing only when there is no plan. */
static int forget_unsubmitted(const struct hg_rundir *rd, struct hg_err *err)
{
    long submitted = hg_runplan_submissions(rd, err);

    if (submitted)
        return submitted < 0 ? -1 : 0;
    return remove_file(rd, "plan.json", err) < 0 || remove_file(rd, "batches", err) < 0 ||
                   remove_file(rd, "events.jsonl", err) < 0
               ? -1
               : 0;
}

/* *known: NULL if the run has no plan yet. */
static int load_known(const struct hg_rundir *rd, struct hg_plan **known, struct hg_err *err)
{
    if (forget_unsubmitted(rd, err) < 0)
        return -1;
    *known = hg_plan_load(rd->path, err);
    if (!*known && (err->code != HG_E_NOTFOUND || hg_runplan_submissions(rd, err)))
        return -1;
    return 0;
}

/* ---- A run that has begun ---- */

/* Cells with a good result need nothing any more. */
static void mark_done(struct hg_plan *known, const struct hg_run_state *state)
{
    for (size_t b = 0; state && b < known->n && b < state->batches.n; b++)
        for (size_t i = 0; i < state->batches.items[b].n; i++)
            if (state->batches.items[b].cells[i].state == HG_CELL_OK)
                hg_ranges_add(&known->items[b].done, (uint32_t)i);
}

/* What a change means for the cells of a run, by where they are. */
struct effect {
    size_t done, running, queued, bad; /* of cells that the matrix has */
    size_t gone_done, gone_live, gone; /* of those that it has no more */
};

static void count_cell(const struct hg_run_state *state, const struct hg_batch *b, bool gone,
                       const struct hg_run_cell *cell, struct effect *e)
{
    bool ok = cell->state == HG_CELL_OK,
         running = cell->state == HG_CELL_RUNNING || cell->state == HG_CELL_ENDED;

    if (gone) {
        e->gone++;
        e->gone_done += ok;
        e->gone_live += running;
        return;
    }
    e->done += ok;
    e->running += running;
    e->bad += hg_cell_is_bad(cell);
    e->queued += cell->state >= HG_CELL_INTENDED && cell->state <= HG_CELL_PENDING &&
                 hg_run_is_outdated(state, cell, b->request);
}

static struct effect count_effect(const struct hg_plan *plan, const struct hg_run_state *state)
{
    struct effect e = { 0 };

    for (size_t b = 0; b < plan->n; b++) {
        const struct hg_ranges *removed = &plan->items[b].removed;
        size_t at = 0;

        for (size_t i = 0; i < plan->items[b].n; i++) {
            static const struct hg_run_cell waiting;
            const struct hg_run_cell *cell =
                state ? hg_run_cell_find(state, (int)b + 1, (uint32_t)i) : NULL;

            while (at < removed->n && removed->items[at].last < i)
                at++;
            count_cell(state, &plan->items[b], at < removed->n && removed->items[at].first <= i,
                       cell ? cell : &waiting, &e);
        }
    }
    return e;
}

static size_t count_removed(const struct hg_plan *plan)
{
    size_t n = 0;

    for (size_t b = 0; plan && b < plan->n; b++)
        n += (size_t)hg_ranges_count(&plan->items[b].removed);
    return n;
}

static void put_part(struct hg_buf *out, size_t n, const char *what)
{
    if (n)
        hg_buf_printf(out, "%s%zu %s", out->len ? "; " : "", n, what);
}

static void tell_effect(const struct effect *e, const char *run)
{
    struct hg_buf text = HG_BUF_INIT;

    put_part(&text, e->done, "finished: results stay");
    put_part(&text, e->running, "running: end as they began");
    put_part(&text, e->queued, "queued: what has not started is submitted again as corrected");
    put_part(&text, e->bad, "failed: ");
    if (e->bad)
        hg_buf_printf(&text, "hpcgrid retry %s", run);
    if (text.len)
        hg_info("its cells: %s", hg_buf_str(&text));
    hg_buf_done(&text);
}

static void tell_removed(const struct effect *e)
{
    struct hg_buf text = HG_BUF_INIT;

    put_part(&text, e->gone_done, "with good results, which stay");
    put_part(&text, e->gone_live, "running to their end");
    put_part(&text, e->gone - e->gone_done - e->gone_live, "that will not run");
    hg_info("cells of this run that the matrix has no more: %zu (%s)", e->gone, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void tell_changes(const struct hg_rundir *rd, const struct hg_plan *plan,
                         const struct hg_plan *known, const struct hg_run_state *state,
                         const char *changes)
{
    struct effect e = known ? count_effect(plan, state) : (struct effect){ 0 };

    hg_cells_print_skips(&plan->skips, true);
    if (*changes && known) {
        hg_info("changed since this run was planned: %s", changes);
        tell_effect(&e, rd->path);
    }
    if (e.gone)
        tell_removed(&e);
    if (known && plan->added && known->closed)
        hg_info("cells of the matrix that this run does not have: %zu; `hpcgrid run` with the "
                "matrix adds them",
                plan->added);
    else if (known && plan->added)
        hg_info("%s: %zu new cell%s", rd->path, plan->added, hg_text_s(plan->added));
}

/* Other cells stand in the places of those that a person wanted to continue. */
static int check_same_cells(const struct hg_matrix *m, const struct hg_plan *plan,
                            const struct hg_plan *known, const char *changes, struct hg_err *err)
{
    size_t before = count_removed(known);

    if (!known->closed || plan->removed <= before || !plan->added)
        return 0;
    hg_err_set(err, HG_E_INPUT,
               "the matrix has other cells than this run: %zu of %zu are gone, %zu are new (%s)",
               plan->removed - before, known->cells - before, plan->added, changes);
    hg_err_at(err, m->doc.file, NULL);
    return hg_err_hint(err,
                       "`hpcgrid run %s` continues with the new ones and keeps the results; or "
                       "undo the change",
                       m->doc.file);
}

/* An account that came from the shell is part of the run: it goes on with it from any other. */
static void note_account(const struct hg_matrix *m, struct hg_plan *plan)
{
    const char *account = getenv("SBATCH_ACCOUNT");

    if (account && m->site->account && strcmp(account, m->site->account) == 0)
        json_object_set_new(plan->site, "shell_account", hg_json_text(account));
}

static void tell_limits(const struct hg_matrix *m)
{
    struct hg_buf limits = HG_BUF_INIT;

    hg_auto_limits_append(m, &limits);
    if (limits.len)
        hg_info("%s", hg_buf_str(&limits));
    hg_buf_done(&limits);
}

static struct hg_plan *renew(const struct hg_rundir *rd, const struct hg_matrix *m,
                             const struct hg_selector *select, struct hg_plan *known,
                             struct hg_errs *errs)
{
    struct hg_buf changes = HG_BUF_INIT;
    struct hg_run_state *state = NULL;
    struct hg_err err = HG_ERR_INIT;
    struct hg_plan *plan = NULL;
    int rc = hg_state_load(rd->path, &state, &err);

    if (rc == 0 && known)
        mark_done(known, state);
    hg_auto_limits_forget(m);
    if (rc == 0)
        plan = hg_plan_make(m, select, known, errs);
    hg_changes_list(rd, m, known, &changes);
    rc = plan && known ? check_same_cells(m, plan, known, hg_buf_str(&changes), &err) : rc;
    if (rc == 0 && plan) {
        tell_changes(rd, plan, known, state, hg_buf_str(&changes));
        tell_limits(m);
        hg_changes_note_files(rd, plan);
        note_account(m, plan);
        rc = hg_plan_save(plan, m, rd->path, &err);
    }
    if (rc < 0) {
        hg_errs_add(errs, &err);
        hg_plan_free(plan);
        plan = NULL;
    }
    hg_run_state_free(state);
    hg_buf_done(&changes);
    return plan;
}

struct hg_plan *hg_runplan_make(const struct hg_rundir *rd, const struct hg_matrix *m,
                                const struct hg_selector *select, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_plan *known = NULL, *plan = NULL;

    if (load_known(rd, &known, &err) < 0)
        hg_errs_add(errs, &err);
    else
        plan = renew(rd, m, select, known, errs);
    hg_plan_free(known);
    return plan;
}

/* ---- A run that is continued by its name ---- */

/* A matrix of another name is not this run's (any more); one in a box was changed for it. */
static bool is_of_run(const struct hg_rundir *rd, const struct hg_plan *plan,
                      const struct hg_matrix *m)
{
    char *box = hg_rundir_path(rd, "box.json");
    bool is = strcmp(m->name, plan->name) == 0 && !hg_fs_exists(box) &&
              !json_object_get(plan->site, "rehearsal");

    free(box);
    return is;
}

static int correct(const struct hg_rundir *rd, struct hg_plan **plan, struct hg_errs *errs)
{
    const char *file = json_string_value(json_object_get((*plan)->workload, "matrix"));
    const char *site = json_string_value(json_object_get((*plan)->site, "given"));
    struct hg_buf changes = HG_BUF_INIT;
    struct hg_plan *now = NULL;
    struct hg_matrix *m;
    char *root;
    int rc = 0;

    if (!file || !hg_fs_exists(file)) /* the run's folder has a copy */
        return 0;
    m = hg_matrix_load(file, site, errs);
    if (!m) {
        hg_err_hint(&errs->items[errs->n - 1],
                    "the run's matrix was changed, and is not valid: correct it, then try again");
        return -1;
    }
    root = hg_measured_root(rd);
    hg_auto_limits_set(m, root);
    free(root);
    if (is_of_run(rd, *plan, m) && hg_changes_list(rd, m, *plan, &changes)) {
        (*plan)->closed = true;
        now = renew(rd, m, NULL, *plan, errs);
        rc = now ? 1 : -1;
    }
    if (now) {
        hg_plan_free(*plan);
        *plan = now;
    }
    hg_buf_done(&changes);
    hg_matrix_free(m);
    return rc;
}

int hg_runplan_correct(const struct hg_rundir *rd, struct hg_plan **plan, struct hg_errs *errs)
{
    const char *account = json_string_value(json_object_get((*plan)->site, "shell_account"));
    bool lacks = account && !getenv("SBATCH_ACCOUNT");
    int rc;

    if (lacks)
        setenv("SBATCH_ACCOUNT", account, 1);
    rc = correct(rd, plan, errs);
    if (lacks)
        unsetenv("SBATCH_ACCOUNT");
    return rc;
}
