/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/runplan.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/cells.h"
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

static void tell_changes(const struct hg_rundir *rd, const struct hg_plan *plan, size_t before)
{
    hg_cells_print_skips(&plan->skips, true);
    if (plan->reshaped)
        hg_warn(
            "cells of this run that now request other resources, but not all of their batch: %zu; "
            "they keep what they had (--new starts a new run)",
            plan->reshaped);
    if (plan->renewed)
        hg_info("cells of this run that request other resources at their next submission: %zu",
                plan->renewed);
    if (plan->removed)
        hg_info(
            "cells of this run that the matrix has no more: %zu; they keep their results (--new "
            "starts a run without them)",
            plan->removed);
    if (before && plan->cells > before)
        hg_info("%s: %zu new cell%s", rd->path, plan->cells - before,
                hg_text_s(plan->cells - before));
}

struct hg_plan *hg_runplan_make(const struct hg_rundir *rd, const struct hg_matrix *m,
                                const struct hg_selector *select, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_plan *known = NULL, *plan = NULL;

    if (load_known(rd, &known, &err) < 0)
        goto fail;
    err = (struct hg_err)HG_ERR_INIT;
    plan = hg_plan_make(m, select, known, errs);
    if (!plan)
        goto fail;
    tell_changes(rd, plan, known ? known->cells : 0);
    if (hg_plan_save(plan, m, rd->path, &err) < 0)
        goto fail;
    hg_plan_free(known);
    return plan;
fail:
    hg_errs_add(errs, &err);
    hg_plan_free(plan);
    hg_plan_free(known);
    return NULL;
}
