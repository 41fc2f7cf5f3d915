/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "box/boxes.h"
#include "cmd/signals.h"
#include "plan/files.h"
#include "rundir/identity.h"

#define TRIES 3
#define STEP_MAX_S 60.0 /* between two requests to a scheduler that is away */

static int open_executor(struct hg_scheduler *s, const json_t *site, struct hg_err *err)
{
    s->executor = &hg_executor_slurm;
    s->session = s->executor->open(site, HG_SCHEDULER_DEADLINE_S, err);
    return s->session ? 0 : -1;
}

int hg_scheduler_reach(struct hg_scheduler *s, const json_t *site, bool box, struct hg_err *err)
{
    if (open_executor(s, site, err) < 0)
        return -1;
    if (hg_scheduler_ask(s, err) == 0)
        return 0;
    if (box && !getenv("SLURM_CONF"))
        hg_err_hint(err,
                    "this matrix is for a box: `hpcgrid run --box` starts one on this machine");
    return -1;
}

static bool was_rehearsed(const struct hg_rundir *rd)
{
    json_t *plan = hg_plan_read(rd->path, &(struct hg_err)HG_ERR_INIT);
    bool was = json_object_get(json_object_get(plan, "site"), "rehearsal");

    json_decref(plan);
    return was;
}

int hg_scheduler_open(struct hg_scheduler *s, const struct hg_rundir *rd, struct hg_err *err)
{
    char *path = hg_rundir_path(rd, "site.json");
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    int rc;

    *s = (struct hg_scheduler){ 0 };
    hg_json_load(path, &doc, NULL);
    rc = hg_runbox_use(rd, s->box, err);
    s->box_is_gone = !*s->box && was_rehearsed(rd);
    if (rc == 0)
        rc = open_executor(s, doc.root, err);
    hg_json_doc_done(&doc);
    free(path);
    return rc;
}

int hg_scheduler_ask(struct hg_scheduler *s, struct hg_err *err)
{
    double start = hg_clock_mono_s();
    struct hg_executor_limits limits;

    for (int i = 0; i < TRIES; i++) { /* an agent that died is started again */
        *err = (struct hg_err)HG_ERR_INIT;
        if (s->executor->limits(s->session, &limits, err) == 0) {
            snprintf(s->cluster, sizeof s->cluster, "%s", limits.cluster);
            return 0;
        }
        if (err->code != HG_E_AGAIN || hg_clock_mono_s() - start > HG_SCHEDULER_DEADLINE_S / 4)
            break;
    }
    if (s->box_is_gone && !getenv("SLURM_CONF"))
        hg_err_hint(err, "its box is gone; `hpcgrid run --box MATRIX` continues a rehearsal");
    return -1;
}

int hg_scheduler_wait(struct hg_scheduler *s, const struct hg_rundir *rd, struct hg_err *err)
{
    double step_s = 1;
    bool said = false;
    int rc;

    /* what is missing on this machine does not come by waiting */
    while ((rc = hg_scheduler_ask(s, err)) < 0 && s->executor->facts(s->session)->away &&
           !hg_signals_stop) {
        if (!said)
            hg_warn("Slurm does not answer (%s); jobs continue; waiting (Ctrl-C stops this)",
                    err->text);
        said = true;
        hg_clock_sleep_s(step_s);
        step_s = step_s * 2 < STEP_MAX_S ? step_s * 2 : STEP_MAX_S;
    }
    if (rc == 0 && said)
        hg_info("Slurm answers again");
    if (rc == 0 || !said || !hg_signals_stop)
        return rc;
    hg_info("stopped; to continue: hpcgrid resume %s", rd->path);
    return 1;
}

int hg_scheduler_check_cluster(struct hg_scheduler *s, const struct hg_rundir *rd,
                               const struct hg_run_state *state, struct hg_err *err)
{
    if (!*state->cluster || hg_scheduler_ask(s, &(struct hg_err)HG_ERR_INIT) < 0)
        return 0;
    return hg_identity_check_cluster(rd->path, state, s->cluster, err);
}

bool hg_scheduler_is_private(const struct hg_scheduler *s)
{
    const char *conf = getenv("SLURM_CONF");
    struct hg_boxes boxes = { 0 };
    bool is = *s->box;

    if (!is && conf && hg_boxes_list(&boxes, NULL) == 0)
        for (size_t i = 0; i < boxes.n; i++)
            is = is || strcmp(boxes.items[i].conf, conf) == 0;
    hg_boxes_done(&boxes);
    return is;
}

void hg_scheduler_close(struct hg_scheduler *s)
{
    if (s->session)
        s->executor->close(s->session);
    s->session = NULL;
}
