/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fsck.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jsonmem.h"
#include "base/vec.h"
#include "inspect/fsck_parts.h"
#include "rundir/identity.h"
#include "rundir/lock.h"

#define KEPT_MAX 100   /* findings of one code */
#define STALE_S 3600.0 /* a temporary file that is younger may be somebody's */

const char *const hg_severity_names[HG_FSCK_ERROR + 1] = { "note", "warning", "error" };

/* ---- Findings ---- */

static size_t count_of(const struct hg_fsck *f, const char *code)
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->items[i].code, code) == 0;
    return n;
}

int hg_fsck_find(struct hg_check *c, struct hg_found found, const char *fmt, ...)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_finding made, *slot;
    va_list ap;

    for (size_t i = 0; i < c->f->n; i++) /* two checks may see it */
        if (strcmp(c->f->items[i].code, found.code) == 0 && c->f->items[i].line == found.line &&
            strcmp(c->f->items[i].file, found.file) == 0)
            return 0;
    c->f->by_severity[found.severity]++;
    if (count_of(c->f, found.code) >= KEPT_MAX) {
        c->f->more++;
        return 0;
    }
    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    made = (struct hg_finding){ .severity = found.severity,
                                .code = found.code,
                                .file = hg_strdup(found.file),
                                .line = found.line,
                                .text = hg_buf_detach(&text),
                                .next = hg_strdup(found.next ? found.next : "") };
    slot = made.file && made.text && made.next ? HG_VEC_PUSH(c->f) : NULL;
    if (slot) {
        *slot = made;
        return 0;
    }
    free(made.file);
    free(made.text);
    free(made.next);
    return hg_err_oom(c->err);
}

void hg_fsck_removable(struct hg_check *c)
{
    struct hg_finding *last = c->f->n ? &c->f->items[c->f->n - 1] : NULL;
    char *path = last ? hg_rundir_path(c->rd, "%s", last->file) : NULL;

    if (last)
        last->can_repair = true;
    if (path && c->repair && unlink(path) == 0) {
        last->repaired = true;
        c->f->by_severity[last->severity]--;
    }
    free(path);
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

/* ---- Folders ---- */

int hg_fsck_is_plain(struct hg_check *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct stat st;
    int rc = 1;

    if (!path)
        return hg_err_oom(c->err);
    if (lstat(path, &st) < 0)
        rc = 0;
    else if (!S_ISREG(st.st_mode))
        rc = hg_fsck_find(c,
                          (struct hg_found){ HG_FSCK_ERROR, "file-type", file, 0,
                                             "put the file itself there" },
                          "not a regular file%s",
                          S_ISLNK(st.st_mode) ? ": a link, which may lead out of the run" : "") < 0
                 ? -1
                 : -2;
    free(path);
    return rc;
}

/* Others must not be able to write what is believed. */
static int check_access(struct hg_check *c, const char *file, const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return 0;
    if (c->open && (st->st_mode & S_IWOTH) &&
        hg_fsck_find(c, (struct hg_found){ HG_FSCK_WARNING, "mode", file, 0, "chmod o-w it" },
                     "everybody may write it (mode %04o)", (unsigned)(st->st_mode & 07777)) < 0)
        return -1;
    if (st->st_uid != c->owner)
        return hg_fsck_find(c,
                            (struct hg_found){ HG_FSCK_WARNING, "owner", file, 0,
                                               "ask who has written into this run" },
                            "belongs to user %u, the run to user %u", (unsigned)st->st_uid,
                            (unsigned)c->owner);
    return 0;
}

static bool ends_in_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Names of files on their way: written, not yet renamed. */
static bool is_temporary(const char *name)
{
    static const char *const ours[] = { "cell.json.part", "workload.json.part",
                                        "result.json.part" };
    const char *tmp = strstr(name, ".tmp.");
    unsigned rank;
    int end = 0;

    if ((tmp && ends_in_number(tmp + 5)) || strncmp(name, ".lock-", 6) == 0 ||
        strncmp(name, ".claim.", 7) == 0)
        return true;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return sscanf(name, "rank.%9u.json.part%n", &rank, &end) == 1 && end && !name[end];
}

static int check_leftover(struct hg_check *c, const char *file, const char *name,
                          const struct stat *st)
{
    if (!S_ISREG(st->st_mode) || !is_temporary(name) ||
        hg_clock_wall_s() - (double)st->st_mtim.tv_sec < STALE_S)
        return 0;
    if (hg_fsck_find(c,
                     (struct hg_found){ HG_FSCK_NOTE, "leftover", file, 0,
                                        "`hpcgrid fsck --repair` removes it" },
                     "left by a process that was killed while it wrote") < 0)
        return -1;
    hg_fsck_removable(c);
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visit(struct hg_check *c, const char *dir, const char *name,
                 int (*each)(struct hg_check *c, const char *file, const char *name,
                             const struct stat *st))
{
    char *file = *dir ? hg_str_printf("%s/%s", dir, name) : hg_strdup(name);
    char *path = file ? hg_rundir_path(c->rd, "%s", file) : NULL;
    struct stat st;
    int rc = path ? 0 : hg_err_oom(c->err);

    if (path && lstat(path, &st) == 0) { /* else it has gone meanwhile */
        rc = check_access(c, file, &st);
        if (rc == 0)
            rc = check_leftover(c, file, name, &st);
        if (rc == 0 && each)
            rc = each(c, file, name, &st);
    }
    free(path);
    free(file);
    return rc;
}

int hg_fsck_each(struct hg_check *c, const char *dir,
                 int (*each)(struct hg_check *c, const char *file, const char *name,
                             const struct stat *st))
{
    char *path = hg_rundir_path(c->rd, "%s", dir);
    struct dirent **list = NULL;
    int n = path ? scandir(path, &list, NULL, by_name) : -1;
    int rc = path ? 0 : hg_err_oom(c->err);

    if (path && n < 0 && errno != ENOENT)
        rc = hg_fsck_find(
            c,
            (struct hg_found){ HG_FSCK_ERROR, "folder", dir, 0, "see who made it, and its mode" },
            "cannot be read: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        if (rc == 0 && strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
            rc = visit(c, dir, list[i]->d_name, each);
        free(list[i]);
    }
    free(list);
    free(path);
    return rc;
}

/* ---- The run's folder ---- */

static bool is_named(const char *name, const char *before)
{
    return strncmp(name, before, strlen(before)) == 0;
}

static int check_lock(struct hg_check *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    int rc = hg_fsck_is_plain(c, file);

    if (path && rc == 1 &&
        (hg_json_load(path, &doc, NULL) < 0 || !json_is_string(json_object_get(doc.root, "nonce"))))
        rc = hg_fsck_find(
            c,
            (struct hg_found){ HG_FSCK_ERROR, "lock", file, 0,
                               "if no hpcgrid drives the run, remove it" },
            "not as hpcgrid writes it, so that nobody can tell whether its holder lives");
    hg_json_doc_done(&doc);
    free(path);
    return rc == -1 ? -1 : 0;
}

static int check_request(struct hg_check *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err why = HG_ERR_INIT;
    int rc = hg_fsck_is_plain(c, file);

    if (path && rc == 1 && hg_json_load(path, &doc, &why) < 0)
        rc = hg_fsck_find(c,
                          (struct hg_found){ HG_FSCK_WARNING, "request", file, 0,
                                             "ask again: `hpcgrid cancel`, `hold` or `release`" },
                          "a request that cannot be read, and will not be carried out: %s",
                          why.text);
    hg_json_doc_done(&doc);
    free(path);
    return rc == -1 ? -1 : 0;
}

static int check_top(struct hg_check *c, const char *file, const char *name, const struct stat *st)
{
    (void)st;
    if (is_named(name, "lock."))
        return strstr(name, ".tmp.") ? 0 : check_lock(c, file);
    if ((is_named(name, "cancel.") || is_named(name, "hold.") || is_named(name, "release.")) &&
        strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".json") == 0)
        return check_request(c, file);
    return 0;
}

/* A lock whose holder has died is taken over by the next command. */
static int check_holder(struct hg_check *c, const struct hg_lock_owner *o)
{
    char file[24];

    snprintf(file, sizeof file, "lock.%u", o->number);
    return hg_fsck_find(c,
                        (struct hg_found){ HG_FSCK_NOTE, "lock-dead", file, 0,
                                           "the next command that drives the run takes it over" },
                        "its holder, process %ld on %s (%s), has died", o->who.pid, o->who.host,
                        o->command);
}

static int check_folder(struct hg_check *c)
{
    struct hg_lock_owner owner = { 0 };
    int held;

    if (hg_fsck_each(c, "", check_top) < 0)
        return -1;
    if (count_of(c->f, "file-type") || count_of(c->f, "lock"))
        return 0; /* a lock that is none must not be opened */
    held = hg_lock_find(c->rd->path, &owner, NULL);
    return held == 0 && owner.number ? check_holder(c, &owner) : 0;
}

static int check_all(struct hg_check *c)
{
    static int (*const checks[])(struct hg_check *) = { check_folder, hg_fsck_plan, hg_fsck_journal,
                                                        hg_fsck_cells };

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (checks[i](c) < 0)
            return -1;
    return hg_fsck_each(c, "tables", NULL) < 0 || hg_fsck_each(c, "logs", NULL) < 0 ? -1 : 0;
}

int hg_fsck_run(const struct hg_rundir *rd, bool repair, struct hg_fsck *f, struct hg_err *err)
{
    struct hg_check c = {
        .rd = rd, .f = f, .repair = repair, .ids = HG_MAP_INIT, .group = { .rd = rd }, .err = err
    };
    size_t shortages = hg_json_shortages() + hg_err_shortages();
    struct hg_lock *lock = NULL;
    struct stat st;
    int rc = -1;

    *f = (struct hg_fsck){ 0 };
    if (stat(rd->path, &st) < 0)
        return hg_err_sys(err, "cannot look at %s", rd->path);
    if (repair && hg_identity_check(rd->path, err) < 0)
        return -1;
    c.owner = st.st_uid;
    c.open = st.st_mode & S_IXOTH;
    if (!repair || (lock = hg_lock_take(rd->path, "hpcgrid fsck --repair", false, 0, err)))
        rc = check_all(&c);
    if (rc == 0 && hg_json_shortages() + hg_err_shortages() != shortages) /* it may not be so */
        rc = hg_err_oom(err);
    hg_lock_release(lock);
    json_decref(c.plan);
    hg_run_state_free(c.state);
    hg_map_done(&c.ids);
    hg_attempt_group_forget(&c.group);
    return rc;
}
