/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/lock.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"

#define TRIES 100 /* lost races with other takers, not waits */

struct hg_lock {
    char *dir, *path;
    struct hg_lock_owner owner;
    dev_t dev;
    ino_t ino;
};

/* ---- Who is who ---- */

static void describe_self(const char *command, struct hg_lock_owner *me)
{
    *me = (struct hg_lock_owner){ .since_s = hg_clock_wall_s() };
    hg_owner_self(&me->who);
    hg_text_random_hex(16, me->nonce);
    snprintf(me->command, sizeof me->command, "%s", command);
}

/* One that hpcgrid did not write has no nonce: a person decides. */
static bool is_dead(const struct hg_lock_owner *owner)
{
    return owner->nonce[0] && hg_owner_life(&owner->who) == HG_OWNER_DEAD;
}

/* ---- The files ---- */

static json_t *encode_owner(const struct hg_lock_owner *o)
{
    json_t *json = json_pack("{s:I,s:s,s:f,s:o}", "number", (json_int_t)o->number, "nonce",
                             o->nonce, "since", o->since_s, "command", hg_json_text(o->command));

    hg_owner_encode(&o->who, json);
    return json;
}

static void copy_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

/* 1: read, 0: removed in the meantime. An unreadable lock has an empty owner, who is not dead. */
static int read_owner(const char *dir, uint32_t number, struct hg_lock_owner *o)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_str_printf("%s/lock.%u", dir, number);
    bool there = hg_fs_exists(path);

    *o = (struct hg_lock_owner){ .number = number };
    if (there && hg_json_load(path, &doc, NULL) == 0) {
        hg_owner_decode(doc.root, &o->who);
        o->since_s = json_number_value(json_object_get(doc.root, "since"));
        copy_text(doc.root, "nonce", o->nonce, sizeof o->nonce);
        copy_text(doc.root, "command", o->command, sizeof o->command);
    } else if (there) {
        there = hg_fs_exists(path);
    }
    hg_json_doc_done(&doc);
    free(path);
    return there;
}

static uint32_t number_of(const char *name)
{
    char *end;
    unsigned long v;

    if (strncmp(name, "lock.", 5) != 0 || name[5] < '1' || name[5] > '9')
        return 0;
    v = strtoul(name + 5, &end, 10);
    return *end || v > UINT32_MAX ? 0 : (uint32_t)v;
}

/* The highest number among the lock files, 0 if there are none. Those with a number less than `old` are removed. */
static int scan(const char *dir, uint32_t *highest, uint32_t old, struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;

    *highest = 0;
    if (!d)
        return hg_err_sys(err, "cannot read %s", dir);
    while ((entry = readdir(d))) {
        uint32_t number = number_of(entry->d_name);

        if (number > *highest)
            *highest = number;
        if (number && number < old)
            unlinkat(dirfd(d), entry->d_name, 0);
    }
    closedir(d);
    return 0;
}

/* 1: the lock is ours now, 0: the name was taken, -1: err set. */
static int link_lock(struct hg_lock *lock, struct hg_err *err)
{
    char *tmp = hg_str_printf("%s/.lock-%s", lock->dir, lock->owner.nonce);
    json_t *json = encode_owner(&lock->owner);
    struct hg_buf text = HG_BUF_INIT;
    struct stat made = { 0 };
    int rc;

    free(lock->path);
    lock->path = hg_str_printf("%s/lock.%u", lock->dir, lock->owner.number);
    hg_json_dump(json, HG_JSON_COMPACT, &text);
    hg_buf_puts(&text, "\n");
    rc = hg_owner_link(tmp, lock->path, &text, 0600, &made, err);
    lock->dev = made.st_dev;
    lock->ino = made.st_ino;
    json_decref(json);
    hg_buf_done(&text);
    free(tmp);
    return rc < 0 ? -1 : !rc;
}

static int held_error(const char *dir, const struct hg_lock_owner *o, struct hg_err *err)
{
    char since[21];

    hg_clock_format_utc(o->since_s, since);
    if (!o->nonce[0])
        hg_err_set(err, HG_E_ENV, "%s/lock.%u is not a lock that hpcgrid wrote", dir, o->number);
    else
        hg_err_set(err, HG_E_ENV, "%s is being driven by process %ld on %s since %s (%s)", dir,
                   o->who.pid, o->who.host, since, o->command);
    return hg_err_hint(err, "`hpcgrid status` needs no lock; if that process is gone for good, "
                            "`hpcgrid resume --steal` takes over");
}

/* 1: ours, 0: lost a race: try again, -1: err set. */
static int try_take(struct hg_lock *lock, bool steal, uint32_t above, struct hg_err *err)
{
    struct hg_lock_owner other;
    uint32_t highest, after;
    int rc;

    if (scan(lock->dir, &highest, 0, err) < 0)
        return -1;
    if (highest && read_owner(lock->dir, highest, &other) && !steal && !is_dead(&other))
        return held_error(lock->dir, &other, err);
    lock->owner.number = (highest > above ? highest : above) + 1;
    rc = link_lock(lock, err);
    if (rc <= 0)
        return rc;
    if (scan(lock->dir, &after, lock->owner.number, err) < 0 || after > lock->owner.number) {
        unlink(lock->path);
        return err && err->code ? -1 : 0;
    }
    return 1;
}

static void lock_free(struct hg_lock *lock)
{
    free(lock->path);
    free(lock->dir);
    free(lock);
}

struct hg_lock *hg_lock_take(const char *run_dir, const char *command, bool steal, uint32_t above,
                             struct hg_err *err)
{
    struct hg_lock *lock = hg_alloc_zeroed(1, sizeof *lock);
    int rc = 0;

    lock->dir = hg_strdup(run_dir);
    for (int i = 0; i < TRIES && rc == 0; i++) {
        describe_self(command, &lock->owner);
        rc = try_take(lock, steal, above, err);
    }
    if (rc == 1)
        return lock;
    if (rc == 0)
        hg_err_set(err, HG_E_ENV, "%s: too many processes try to take its lock", run_dir);
    lock_free(lock);
    return NULL;
}

uint32_t hg_lock_number(const struct hg_lock *lock)
{
    return lock->owner.number;
}

static bool is_ours(const struct hg_lock *lock)
{
    struct stat st;

    return stat(lock->path, &st) == 0 && st.st_dev == lock->dev && st.st_ino == lock->ino;
}

int hg_lock_check(void *context, struct hg_err *err)
{
    struct hg_lock *lock = context;
    char *next = hg_str_printf("%s/lock.%u", lock->dir, lock->owner.number + 1);
    bool stolen = hg_fs_exists(next) || !is_ours(lock);

    free(next);
    if (stolen && !hg_fs_exists(lock->dir))
        return hg_err_set(err, HG_E_ENV, "%s is not there any more: was it moved?", lock->dir);
    if (stolen)
        return hg_err_set(err, HG_E_ENV, "%s was taken over by another process", lock->dir);
    return 0;
}

void hg_lock_release(struct hg_lock *lock)
{
    if (!lock)
        return;
    if (is_ours(lock))
        unlink(lock->path);
    lock_free(lock);
}

int hg_lock_find(const char *run_dir, struct hg_lock_owner *owner, struct hg_err *err)
{
    uint32_t highest;

    if (scan(run_dir, &highest, 0, err) < 0)
        return -1;
    return highest && read_owner(run_dir, highest, owner) && !is_dead(owner);
}
