/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "box/boxes.h"
#include "box/daemons.h"
#include "box/files.h"
#include "box/keeper.h"
#include "box/tools.h"

#define IDLE_S 120.0 /* nodes are idle after 2 to 3 s on an idle machine */
#define HEAL_AGAIN_S 0.5
#define HEALS 3 /* for daemons that die one after another */

/* ---- Ctrl-C while a box comes up ---- */

static const int interrupts[] = { SIGINT, SIGTERM, SIGHUP };

/* Keep SIGINT, SIGTERM and SIGHUP back until a box is whole or gone. Restore *before with sigprocmask. */
static void hold_interrupts(sigset_t *before)
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

/* Wait until all nodes of a box are idle; may_heal: dead daemons are started again. A daemon that was just killed may look alive at
 * first, so more may be dead than was found before. */
static int wait_ready(const struct hg_box_tools *tools, struct hg_box *box, bool may_heal,
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

#define PORT_TRIES 3 /* another process may take a port between the check and slurmctld's bind */

/* ---- down ---- */

static int clear(const struct hg_box *box, struct hg_err *err)
{
    struct hg_box_process keeper = hg_box_record_keeper(box->record);
    bool now = hg_box_record_is_of_this_boot(box->record);

    if (now && hg_box_process_alive(keeper))
        hg_box_keeper_stop(keeper);
    hg_box_orphans_stop(box->dir, now ? box->record : NULL);
    return hg_fs_remove_tree(box->dir, err);
}

int hg_box_down(const char *name, struct hg_err *err)
{
    struct hg_box box;
    int lock, rc;

    if (hg_boxes_find(name, &box, err) < 0)
        return -1;
    hg_box_done(&box);
    if (hg_boxes_lock(&lock, err) < 0)
        return -1;
    rc = hg_boxes_find(name, &box, err);
    if (rc == 0) {
        rc = clear(&box, err);
        hg_box_done(&box);
    }
    hg_boxes_unlock(lock);
    return rc;
}

/* ---- up ---- */

static int check_spec(const struct hg_box_spec *spec, struct hg_err *err)
{
    size_t n = hg_box_nodes_count(spec);

    if (hg_boxes_check_name(spec->name, err) < 0)
        return -1;
    if (!n || n > HG_BOX_NODES_MAX)
        return hg_err_set(err, HG_E_USAGE, "a box has 1 to %d nodes, not %zu", HG_BOX_NODES_MAX, n);
    return 0;
}

static int create(const struct hg_box_spec *spec, const struct hg_box_tools *tools, const char *dir,
                  struct hg_err *err)
{
    struct hg_box_setup setup = { .spec = spec, .tools = tools, .dir = dir };
    int rc = -1;

    if (hg_box_tools_check_place(err) < 0 ||
        hg_box_ports_choose(hg_box_nodes_count(spec), &setup.ports, err) < 0)
        return -1;
    if (mkdir(dir, 0755) < 0)
        return hg_err_sys(err, "cannot make %s", dir);
    if (chmod(dir, 0755) < 0) {
        hg_err_sys(err, "cannot change the mode of %s", dir);
    } else if (hg_box_files_write(spec, dir, &setup.ports, tools->version, err) == 0) {
        json_t *record = hg_box_record_make(spec, &setup.ports);

        rc = hg_box_keeper_start(&setup, record, err);
        json_decref(record);
    }
    if (rc < 0) { /* a keeper that was killed has left what it started */
        hg_box_orphans_stop(dir, NULL);
        hg_fs_remove_tree(dir, &(struct hg_err)HG_ERR_INIT);
    }
    return rc;
}

/* Then another process took the port first. */
static bool lost_the_port(const struct hg_err *err)
{
    return strstr(err->hint, "Address already in use") != NULL;
}

static int create_somewhere(const struct hg_box_spec *spec, const struct hg_box_tools *tools,
                            const char *dir, struct hg_err *err)
{
    for (int i = 1;; i++) {
        struct hg_err this = HG_ERR_INIT;

        if (create(spec, tools, dir, &this) == 0)
            return 0;
        if (i == PORT_TRIES || !lost_the_port(&this)) {
            *err = this;
            return -1;
        }
    }
}

/* With the lock held: leave a box that lives, clear one that does not. *exists: it is there. */
static int prepare(const struct hg_box_spec *spec, bool *exists, struct hg_err *err)
{
    struct hg_err none = HG_ERR_INIT;
    struct hg_box box;
    int rc = 0;

    *exists = false;
    if (hg_boxes_find(spec->name, &box, &none) < 0)
        return 0;
    if (box.state == HG_BOX_LOST) {
        rc = clear(&box, err);
    } else if (!spec->any && !hg_box_record_fits(box.record, spec)) {
        hg_err_set(err, HG_E_INPUT, "box \"%s\" is up with other nodes or settings", spec->name);
        rc = hg_err_hint(err, "`hpcgrid box down %s` first, or give this one another --name",
                         spec->name);
    } else {
        *exists = true;
    }
    hg_box_done(&box);
    return rc;
}

/* The box is there, if not all of it is ready. */
static int find_or_create(const struct hg_box_spec *spec, const struct hg_box_tools *tools,
                          struct hg_box *box, bool *exists, struct hg_err *err)
{
    char *dir = hg_boxes_dir(spec->name);
    int lock, rc = -1;

    if (hg_boxes_lock(&lock, err) == 0) {
        if (prepare(spec, exists, err) == 0 &&
            (*exists || create_somewhere(spec, tools, dir, err) == 0))
            rc = hg_boxes_find(spec->name, box, err);
        hg_boxes_unlock(lock);
    }
    free(dir);
    return rc;
}

/* Clear a box that did not come up, unless there is another in its place meanwhile. */
static void give_up(const struct hg_box *box)
{
    const json_t *keeper = json_object_get(box->record, "keeper");
    struct hg_err none = HG_ERR_INIT;
    struct hg_box now;
    int lock;

    if (hg_boxes_lock(&lock, &none) < 0)
        return;
    if (hg_boxes_find(box->name, &now, &none) == 0) {
        if (hg_json_equal(json_object_get(now.record, "keeper"), keeper))
            clear(&now, &none);
        hg_box_done(&now);
    }
    hg_boxes_unlock(lock);
}

int hg_box_up(const struct hg_box_spec *spec, struct hg_box *box, bool *started, struct hg_err *err)
{
    struct hg_box_tools tools = { 0 };
    bool exists = false;
    sigset_t before;
    int rc;

    *box = (struct hg_box){ 0 };
    if (check_spec(spec, err) < 0 || hg_box_tools_find(&tools, spec->accounting, err) < 0)
        return -1;
    hold_interrupts(&before);
    rc = find_or_create(spec, &tools, box, &exists, err);
    if (rc == 0)
        rc = wait_ready(&tools, box, exists, err);
    if (rc < 0 && !exists && box->name)
        give_up(box);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (started)
        *started = rc == 0 && !exists;
    if (rc < 0)
        hg_box_done(box);
    hg_box_tools_done(&tools);
    return rc;
}
