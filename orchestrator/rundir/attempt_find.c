/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/attempt_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rundir/resultfile.h"

static void take_result(const json_t *result, struct hg_attempt *a)
{
    const char *message =
        json_string_value(json_object_get(json_object_get(result, "error"), "message"));

    a->done = true;
    snprintf(a->status, sizeof a->status, "%s",
             json_string_value(json_object_get(result, "status")));
    snprintf(a->error, sizeof a->error, "%s", message ? message : "");
    a->wall_s = json_number_value(json_object_get(result, "wall_s"));
}

/* ended: it has a result that nobody writes again. */
static void take_claim(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                       bool ended, struct hg_attempt *a)
{
    char *dir = hg_attempt_path(g, f, "");

    a->open = hg_claim_read(dir, &a->claim) && !a->claim.taken && !ended;
    a->left = a->claim.left;
    free(dir);
}

/* A bad result is none. One that cannot be read may be good: nothing can be said of its cell. */
static int take_attempt(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                        const char *run_key, struct hg_attempt *a, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    json_t *result = hg_resultfile_read(g, f, run_key, NULL, false, &why);

    *a = (struct hg_attempt){ .submission = f->submission,
                              .restarts = f->restarts,
                              .claimed = f->claim || f->result };
    if (result)
        take_result(result, a);
    else if (why.code != HG_E_NOTFOUND)
        snprintf(a->error, sizeof a->error, "%.255s", why.text);
    if (!g->quick && (!result || strcmp(a->status, "ok") != 0))
        take_claim(g, f, f->result && !json_is_true(json_object_get(result, "ending")), a);
    json_decref(result);
    if (why.code != HG_E_ENV)
        return 0;
    if (err)
        *err = why;
    return -1;
}

static bool is_ok(const struct hg_attempt *a)
{
    return a->done && strcmp(a->status, "ok") == 0;
}

static bool is_better(const struct hg_attempt *a, const struct hg_attempt *than)
{
    bool ok = is_ok(a), than_ok = is_ok(than);

    if (ok != than_ok)
        return ok;
    if (a->done != than->done)
        return a->done;
    if (a->claimed != than->claimed)
        return a->claimed;
    return true; /* they come oldest first */
}

int hg_attempt_find(struct hg_attempt_group *g, int batch, size_t line, const char *cell_id,
                    unsigned submission, const char *run_key, struct hg_attempt *a,
                    struct hg_err *err)
{
    struct hg_attempt_list list;
    struct hg_claim claim = { 0 };
    bool open = false, left = false;
    int rc = hg_attempt_list(g, batch, line, cell_id, &list, err);

    *a = (struct hg_attempt){ 0 };
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        struct hg_attempt other;

        rc = take_attempt(g, &list.items[i], run_key, &other, err);
        if (rc < 0)
            break;
        left = other.claimed ? other.left : left;
        if (other.open) { /* the newest */
            open = true;
            claim = other.claim;
        }
        if ((!submission || list.items[i].submission == submission || is_ok(&other)) &&
            is_better(&other, a))
            *a = other;
    }
    a->open = open;
    a->claim = claim;
    a->left = left;
    for (size_t i = 0; rc == 0 && i < list.n; i++)
        a->superseded |= (list.items[i].claim || list.items[i].result) &&
                         list.items[i].submission == a->submission &&
                         list.items[i].restarts > a->restarts;
    return rc;
}
