/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fsck_pass.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/vec.h"

#define KEPT_MAX 100   /* findings of one code */
#define STALE_S 3600.0 /* a younger temporary file may be in use */

/* ---- Findings ---- */

size_t hg_fsck_count(const struct hg_fsck_pass *c, const char *code)
{
    size_t n = 0;

    for (size_t i = 0; i < c->f->n; i++)
        n += strcmp(c->f->items[i].code, code) == 0;
    return n;
}

void hg_fsck_found(struct hg_fsck_pass *c, enum hg_severity severity, const char *code,
                   const char *file, size_t line, const char *next, const char *fmt, ...)
{
    struct hg_buf text = HG_BUF_INIT;
    va_list ap;

    for (size_t i = 0; i < c->f->n; i++) /* two checks may see it */
        if (strcmp(c->f->items[i].code, code) == 0 && c->f->items[i].line == line &&
            strcmp(c->f->items[i].file, file) == 0)
            return;
    c->f->by_severity[severity]++;
    if (hg_fsck_count(c, code) >= KEPT_MAX) {
        c->f->more++;
        return;
    }
    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    *HG_VEC_PUSH(c->f) = (struct hg_finding){ .severity = severity,
                                              .code = code,
                                              .file = hg_strdup(file),
                                              .line = line,
                                              .text = hg_buf_detach(&text),
                                              .next = hg_strdup(next) };
}

/* ---- Files ---- */

int hg_fsck_is_plain(struct hg_fsck_pass *c, const char *file)
{
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct stat st;
    bool there = lstat(path, &st) == 0;

    free(path);
    if (!there || S_ISREG(st.st_mode))
        return there;
    hg_fsck_found(c, HG_FSCK_ERROR, "file-type", file, 0, "put the file itself there",
                  "not a regular file%s",
                  S_ISLNK(st.st_mode) ? ": a link, which may lead out of the run" : "");
    return -1;
}

/* Others must not be able to write a run's files. */
static void check_access(struct hg_fsck_pass *c, const char *file, const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return;
    if (c->open && (st->st_mode & S_IWOTH))
        hg_fsck_found(c, HG_FSCK_WARNING, "mode", file, 0, "chmod o-w it",
                      "writable for everybody (mode %04o)", (unsigned)(st->st_mode & 07777));
    if (st->st_uid != c->owner)
        hg_fsck_found(c, HG_FSCK_WARNING, "owner", file, 0, "ask who has written into this run",
                      "belongs to user %u, the run to user %u", (unsigned)st->st_uid,
                      (unsigned)c->owner);
}

static bool ends_in_number(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

/* Names of files that are being written: not yet renamed. */
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

static void check_leftover(struct hg_fsck_pass *c, const char *file, const char *path,
                           const struct stat *st)
{
    size_t before = c->f->n;
    struct hg_finding *found;

    if (!S_ISREG(st->st_mode) || !is_temporary(strrchr(path, '/') + 1) ||
        hg_clock_wall_s() - (double)st->st_mtim.tv_sec < STALE_S)
        return;
    hg_fsck_found(c, HG_FSCK_NOTE, "leftover", file, 0, "`hpcgrid fsck --repair` removes it",
                  "left by a process that was killed while it wrote");
    found = c->f->n > before ? &c->f->items[before] : NULL;
    if (found)
        found->can_repair = true;
    if (c->repair && unlink(path) == 0) {
        c->f->by_severity[HG_FSCK_NOTE]--;
        if (found)
            found->repaired = true;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void visit(struct hg_fsck_pass *c, const char *dir, const char *name,
                  void (*each)(struct hg_fsck_pass *c, const char *file, const char *name,
                               const struct stat *st))
{
    char *file = *dir ? hg_str_printf("%s/%s", dir, name) : hg_strdup(name);
    char *path = hg_rundir_path(c->rd, "%s", file);
    struct stat st;

    if (lstat(path, &st) == 0) { /* else it was removed in the meantime */
        check_access(c, file, &st);
        check_leftover(c, file, path, &st);
        if (each)
            each(c, file, name, &st);
    }
    free(path);
    free(file);
}

void hg_fsck_each(struct hg_fsck_pass *c, const char *dir,
                  void (*each)(struct hg_fsck_pass *c, const char *file, const char *name,
                               const struct stat *st))
{
    char *path = hg_rundir_path(c->rd, "%s", dir);
    struct dirent **list = NULL;
    int n = scandir(path, &list, NULL, by_name);

    if (n < 0 && errno != ENOENT)
        hg_fsck_found(c, HG_FSCK_ERROR, "folder", dir, 0, "see who made it, and its mode",
                      "cannot be read: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        hg_bar_step();
        if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
            visit(c, dir, list[i]->d_name, each);
        free(list[i]);
    }
    free(list);
    free(path);
}
