/* SPDX-License-Identifier: Apache-2.0 */
#include "box/ready.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/proc.h"
#include "box/daemons.h"
#include "box/keeper.h"

#define IDLE_S 120.0 /* nodes are idle after 2 to 3 s on an idle machine */
#define HEAL_AGAIN_S 0.5
#define HEALS 3 /* for daemons that die one after another */

/* ---- Ctrl-C while a box comes up ---- */

static const int interrupts[] = { SIGINT, SIGTERM, SIGHUP };

void hg_box_ready_hold_interrupts(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        sigaddset(&set, interrupts[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

/* Did one come? One that the caller ignores does not count; it is kept back all the same. */
static bool was_interrupted(void)
{
    sigset_t pending;

    sigpending(&pending);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++) {
        struct sigaction action;

        if (sigismember(&pending, interrupts[i]) && sigaction(interrupts[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            return true;
    }
    return false;
}

/* ---- waiting for nodes ---- */

/* Nodes that are not ready yet, as "a100-1 down*, ..."; "" when all are; "?" when slurmctld does
 * not say. */
static int ask_nodes(const struct hg_box_tools *tools, const struct hg_box *box, struct hg_buf *bad,
                     struct hg_err *err)
{
    static const char *const ready[] = { "idle", "mixed", "allocated", "completing" };
    char *conf = hg_str_printf("SLURM_CONF=%s", box->conf);
    const char *const argv[] = { "env", "-i",  conf, tools->sinfo, "-h", "-N",
                                 "-p",  "box", "-o", "%N %T",      NULL };
    struct hg_buf out = HG_BUF_INIT;
    int status = 0, rc = hg_proc_capture(argv, 30, &out, NULL, &status, err);
    char *save = NULL;

    if (rc < 0)
        hg_err_wrap(err, "box \"%s\": sinfo", box->name);
    hg_buf_clear(bad);
    if (rc == 0 && (status || !out.len))
        hg_buf_puts(bad, "?");
    for (char *line = rc == 0 && out.len ? strtok_r(out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        const char *state = strchr(line, ' ');
        bool ok = false;

        for (size_t i = 0; state && i < sizeof ready / sizeof *ready; i++)
            ok = ok || strcmp(state + 1, ready[i]) == 0;
        if (!ok)
            hg_buf_printf(bad, "%s%s", bad->len ? ", " : "", line);
    }
    hg_buf_done(&out);
    free(conf);
    return rc;
}

/* The end of the log of the first daemon that is not running, or of the first node that is not
 * ready. */
static void hint_log(const struct hg_box *box, const char *bad, struct hg_err *err)
{
    const char *dead = hg_box_record_dead(box->record);
    struct hg_buf tail = HG_BUF_INIT;
    char name[112];

    if (dead)
        snprintf(name, sizeof name, "%s", dead);
    else
        snprintf(name, sizeof name, "slurmd-%.*s", (int)strcspn(bad, " ,"), bad);
    hg_box_daemons_log(box->dir, name, &tail);
    hg_err_hint(err, "end of %s.log:\n%s", name, hg_buf_str(&tail));
    hg_buf_done(&tail);
}

static int wait_idle(const struct hg_box_tools *tools, const struct hg_box *box, struct hg_err *err)
{
    double end = hg_clock_mono_s() + IDLE_S;
    struct hg_buf bad = HG_BUF_INIT;
    int rc;

    for (;;) {
        rc = ask_nodes(tools, box, &bad, err);
        if (rc < 0 || !bad.len)
            break;
        if (was_interrupted()) {
            rc = hg_err_set(err, HG_E_ENV, "interrupted before the nodes of box \"%s\" were ready",
                            box->name);
            break;
        }
        if (!hg_fs_is_dir(box->dir)) {
            rc = hg_err_set(err, HG_E_ENV, "box \"%s\" was taken down before its nodes were ready",
                            box->name);
            break;
        }
        if (hg_clock_mono_s() > end || hg_box_record_state(box->record) != HG_BOX_UP) {
            const char *dead = hg_box_record_dead(box->record);

            rc = dead ? hg_err_set(err, HG_E_ENV, "box \"%s\": %s ended", box->name, dead)
                      : hg_err_set(err, HG_E_ENV, "box \"%s\": nodes are not ready: %s", box->name,
                                   hg_buf_str(&bad));
            hint_log(box, hg_buf_str(&bad), err);
            break;
        }
        hg_clock_sleep_s(0.1);
    }
    hg_buf_done(&bad);
    return rc;
}

/* Let the keeper of a degraded box start what is dead, and wait until every daemon has a living process again. It is requested more
 * than once: a daemon that was just killed looks dead here before its parent has collected it. */
static int heal(struct hg_box *box, struct hg_err *err)
{
    struct hg_box_process keeper = hg_box_record_keeper(box->record);
    double end = hg_clock_mono_s() + IDLE_S, again = 0;

    for (;;) {
        if (hg_clock_mono_s() >= again) {
            hg_box_keeper_heal(keeper);
            again = hg_clock_mono_s() + HEAL_AGAIN_S;
        }
        json_decref(box->record);
        box->record = hg_box_record_load(box->dir);
        box->state = hg_box_record_state(box->record);
        if (box->state == HG_BOX_UP)
            return 0;
        if (box->state == HG_BOX_LOST || hg_clock_mono_s() > end || was_interrupted()) {
            hg_err_set(err, HG_E_ENV, "box \"%s\" cannot be repaired", box->name);
            hint_log(box, "", err);
            return -1;
        }
        hg_clock_sleep_s(0.05);
    }
}

/* A daemon that was just killed may look alive at first, so more may be dead than was found before. */
int hg_box_ready_wait(const struct hg_box_tools *tools, struct hg_box *box, bool may_heal,
                      struct hg_err *err)
{
    for (int i = 1;; i++) {
        struct hg_err this = HG_ERR_INIT;
        int rc = 0;

        if (may_heal && box->state == HG_BOX_DEGRADED)
            rc = heal(box, &this);
        if (rc == 0)
            rc = wait_idle(tools, box, &this);
        if (rc == 0)
            return 0;
        box->state = hg_box_record_state(box->record);
        if (!may_heal || i == HEALS || box->state != HG_BOX_DEGRADED) {
            *err = this;
            return -1;
        }
    }
}
