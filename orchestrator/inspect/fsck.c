/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fsck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "inspect/fsck_pass.h"
#include "inspect/fsck_cells.h"
#include "inspect/fsck_plan.h"
#include "rundir/identity.h"
#include "rundir/lock.h"

const char *const hg_severity_names[HG_FSCK_ERROR + 1] = { "note", "warning", "error" };

/* ---- The run's folder ---- */

static bool is_named(const char *name, const char *before)
{
    return strncmp(name, before, strlen(before)) == 0;
}

static void check_lock(struct hg_fsck_pass *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;

    if (hg_fsck_is_plain(c, file) == 1 &&
        (hg_json_load(path, &doc, NULL) < 0 || !json_is_string(json_object_get(doc.root, "nonce"))))
        hg_fsck_found(c, HG_FSCK_ERROR, "lock", file, 0, "if no hpcgrid drives the run, remove it",
                      "not as hpcgrid writes it, so it is not known whether its holder is alive");
    hg_json_doc_done(&doc);
    free(path);
}

static void check_request(struct hg_fsck_pass *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err why = HG_ERR_INIT;

    if (hg_fsck_is_plain(c, file) == 1 && hg_json_load(path, &doc, &why) < 0)
        hg_fsck_found(c, HG_FSCK_WARNING, "request", file, 0,
                      "make it again: `hpcgrid cancel`, `hold`, `release` or `retry`",
                      "a request that cannot be read, and will not be carried out: %s", why.text);
    hg_json_doc_done(&doc);
    free(path);
}

static void check_top(struct hg_fsck_pass *c, const char *file, const char *name,
                      const struct stat *st)
{
    size_t n = strlen(name);

    (void)st;
    if (is_named(name, "lock.") && !strstr(name, ".tmp."))
        check_lock(c, file);
    else if ((is_named(name, "cancel.") || is_named(name, "hold.") || is_named(name, "release.") ||
              is_named(name, "retry.")) &&
             strcmp(name + n - 5, ".json") == 0)
        check_request(c, file);
}

/* A lock whose holder has died is taken over by the next command. */
static void check_holder(struct hg_fsck_pass *c)
{
    struct hg_lock_owner o = { 0 };
    char file[24];

    if (hg_fsck_count(c, "file-type") || hg_fsck_count(c, "lock"))
        return; /* something else must not be opened as a lock */
    if (hg_lock_find(c->rd->path, &o, NULL) != 0 || !o.number)
        return;
    snprintf(file, sizeof file, "lock.%u", o.number);
    hg_fsck_found(c, HG_FSCK_NOTE, "lock-dead", file, 0,
                  "the next command that drives the run takes it over",
                  "its holder, process %ld on %s (%s), has died", o.who.pid, o.who.host, o.command);
}

static void check_all(struct hg_fsck_pass *c)
{
    hg_fsck_each(c, "", check_top);
    check_holder(c);
    hg_fsck_plan(c);
    hg_fsck_journal(c);
    hg_fsck_cells(c);
    hg_fsck_each(c, "tables", NULL);
    hg_fsck_each(c, "logs", NULL);
}

int hg_fsck_run(const struct hg_rundir *rd, bool repair, struct hg_fsck *f, struct hg_err *err)
{
    struct hg_fsck_pass c = {
        .rd = rd, .f = f, .repair = repair, .ids = HG_MAP_INIT, .group = { .rd = rd }
    };
    struct hg_lock *lock = NULL;
    struct stat st;

    *f = (struct hg_fsck){ 0 };
    if (stat(rd->path, &st) < 0)
        return hg_err_sys(err, "cannot look at %s", rd->path);
    if (repair && hg_identity_check(rd->path, err) < 0)
        return -1;
    if (repair && !(lock = hg_lock_take(rd->path, "hpcgrid fsck --repair", false, 0, err)))
        return -1;
    c.owner = st.st_uid;
    c.open = st.st_mode & S_IXOTH;
    check_all(&c);
    hg_lock_release(lock);
    json_decref(c.plan);
    hg_run_state_free(c.state);
    hg_map_done(&c.ids);
    hg_names_free(c.names);
    hg_buf_done(&c.name);
    hg_attempt_group_forget(&c.group);
    return 0;
}

void hg_fsck_done(struct hg_fsck *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->items[i].file);
        free(f->items[i].text);
        free(f->items[i].next);
    }
    HG_VEC_DONE(f);
}
