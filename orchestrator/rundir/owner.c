/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"

static void read_word(const char *path, char *out, size_t size)
{
    struct hg_buf text = HG_BUF_INIT;

    out[0] = '\0';
    if (hg_fs_read(path, 4096, &text, NULL) == 0)
        snprintf(out, size, "%.*s", (int)strcspn(hg_buf_str(&text), "\n"), hg_buf_str(&text));
    hg_buf_done(&text);
}

/* Start of a process in ticks since boot. 0: there is none, or it has died and only waits to be reaped. */
static unsigned long long process_start(long pid)
{
    char path[40], stat[1024];
    unsigned long long ticks = 0;
    const char *p;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    read_word(path, stat, sizeof stat);
    p = strrchr(stat, ')'); /* the name in parentheses may hold anything */
    if (p && (strncmp(p, ") Z", 3) == 0 || strncmp(p, ") X", 3) == 0))
        return 0;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    if (p)
        ticks = strtoull(p + 1, NULL, 10);
    return ticks;
}

void hg_owner_self(struct hg_owner *me)
{
    ssize_t n;

    *me = (struct hg_owner){ .pid = (long)getpid() };
    me->start_ticks = process_start(me->pid);
    gethostname(me->host, sizeof me->host - 1);
    read_word("/etc/machine-id", me->machine, sizeof me->machine);
    read_word("/proc/sys/kernel/random/boot_id", me->boot, sizeof me->boot);
    n = readlink("/proc/self/ns/pid", me->pid_space, sizeof me->pid_space - 1);
    me->pid_space[n > 0 ? n : 0] = '\0';
}

enum hg_owner_life hg_owner_life(const struct hg_owner *owner)
{
    struct hg_owner me;

    hg_owner_self(&me);
    if (!owner->boot[0])
        return HG_OWNER_UNKNOWN;
    if (strcmp(owner->boot, me.boot) !=
        0) /* of another machine, or of this one before its last boot */
        return me.machine[0] && strcmp(owner->machine, me.machine) == 0 &&
                       strcmp(owner->host, me.host) == 0
                   ? HG_OWNER_DEAD
                   : HG_OWNER_UNKNOWN;
    if (strcmp(owner->pid_space, me.pid_space) != 0)
        return HG_OWNER_UNKNOWN;
    return process_start(owner->pid) == owner->start_ticks ? HG_OWNER_ALIVE : HG_OWNER_DEAD;
}

void hg_owner_encode(const struct hg_owner *o, json_t *object)
{
    json_object_set_new(object, "host", hg_json_text(o->host));
    json_object_set_new(object, "pid", json_integer(o->pid));
    json_object_set_new(object, "start", json_integer((json_int_t)o->start_ticks));
    json_object_set_new(object, "machine", hg_json_text(o->machine));
    json_object_set_new(object, "boot", hg_json_text(o->boot));
    json_object_set_new(object, "pid_space", hg_json_text(o->pid_space));
}

static void copy_text(const json_t *object, const char *name, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    snprintf(out, size, "%s", text ? text : "");
}

void hg_owner_decode(const json_t *object, struct hg_owner *o)
{
    *o = (struct hg_owner){
        .pid = (long)json_integer_value(json_object_get(object, "pid")),
        .start_ticks = (unsigned long long)json_integer_value(json_object_get(object, "start")),
    };
    copy_text(object, "host", o->host, sizeof o->host);
    copy_text(object, "machine", o->machine, sizeof o->machine);
    copy_text(object, "boot", o->boot, sizeof o->boot);
    copy_text(object, "pid_space", o->pid_space, sizeof o->pid_space);
}

/* Does the name lead to this open file? Its count of links may be remembered from before: opening asks the file server. */
static bool is_same(const char *path, int fd)
{
    int other = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat a, b;
    bool same = other >= 0 && fstat(other, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
                a.st_ino == b.st_ino;

    if (other >= 0)
        close(other);
    return same;
}

int hg_owner_link(const char *tmp, const char *path, const struct hg_buf *text, mode_t mode,
                  struct stat *made, struct hg_err *err)
{
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode), rc = 0, sys;

    if (fd < 0)
        return hg_err_sys(err, "cannot write %s", tmp);
    if (hg_fs_write_all(fd, text->data, text->len) < 0 || fsync(fd) < 0) {
        rc = hg_err_sys(err, "cannot write %s", tmp);
        goto out;
    }
    sys = link(tmp, path) < 0 ? errno : 0;
    if (fstat(fd, made) == 0 && sys && is_same(path, fd)) /* a file server's answer got lost */
        sys = 0;
    errno = sys;
    if (sys)
        rc = sys == EEXIST ? 1 : hg_err_sys(err, "cannot create %s", path);
out:
    close(fd);
    unlink(tmp);
    return rc;
}
