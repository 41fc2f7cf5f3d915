/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "box/files.h"
#include "box/keeper.h"
#include "box/orphans.h"
#include "box/ready.h"

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
    hg_box_ready_hold_interrupts(&before);
    rc = find_or_create(spec, &tools, box, &exists, err);
    if (rc == 0)
        rc = hg_box_ready_wait(&tools, box, exists, err);
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
