/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/compact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/tar.h"
#include "base/vec.h"
#include "matrix/workload.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "rundir/attempt.h"
#include "rundir/attempts.h"
#include "rundir/collect.h"

#define PIECE ((size_t)64 * 1024)

/* After TERM a result is written at once and perhaps again, as long as Slurm lets the workload end. */
#define RECENT_S 300.0

const char *const hg_compact_reasons[HG_COMPACT_REASONS] = {
    [HG_COMPACT_OPEN] = "of cells that are not over",
    [HG_COMPACT_RESULT] = "without a result that counts",
    [HG_COMPACT_RECENT] = "that failed less than 5 minutes ago",
    [HG_COMPACT_FILES] = "with other files than hpcgrid's own",
    [HG_COMPACT_CHANGED] = "that changed meanwhile, or are packed with other content",
};

/* A group while its cells pass by. */
struct packer {
    const struct hg_rundir *rd;
    const struct hg_run_state *state;
    const char *run_key;
    struct hg_attempt_group group;
    int batch;
    size_t number; /* of the group */
    bool *wanted;  /* by attempt of the group: it goes into the pack */
    size_t n_wanted;
    bool all_over; /* no cell of it will run again */
    struct hg_compact_count *count;
    struct hg_err *err;
};

/* ---- What may be packed ---- */

/* One file of an attempt. */
struct file {
    char *name;
    struct stat st;
};

struct files {
    struct file *items;
    size_t n, cap;
    bool others; /* something else lies there, too */
};

static void files_done(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->items[i].name);
    HG_VEC_DONE(files);
}

/* What is there is listed, nothing is followed. */
static void list_files(const char *dir, struct files *files)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    struct stat st;

    if (!d) /* a link, or not readable */
        files->others = true;
    while (d && (entry = readdir(d))) {
        const char *name = entry->d_name;

        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (hg_workload_is_own_file(name) && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_size < (off_t)HG_TAR_SIZE_MAX)
            *HG_VEC_PUSH(files) = (struct file){ .name = hg_strdup(name), .st = st };
        else
            files->others = true;
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

/* ---- Which attempts ---- */

/* Is it a result that nobody writes again? */
static bool is_recent(const struct packer *p, const struct hg_attempt_files *f, const char *status)
{
    char *path = hg_attempt_path(&p->group, f, "result.json");
    struct stat st;
    bool recent = strcmp(status, "ok") != 0 &&
                  (stat(path, &st) < 0 || hg_clock_wall_s() - (double)st.st_mtim.tv_sec < RECENT_S);

    free(path);
    return recent;
}

/* HG_COMPACT_REASONS: nothing keeps it. */
static enum hg_compact_kept why_kept(struct packer *p, struct hg_attempt_files *f,
                                     const json_t *cell, bool over)
{
    struct files files = { 0 };
    char *dir, status[16];
    bool others;

    if (!over)
        return HG_COMPACT_OPEN;
    if (hg_collect_status(&p->group, f, p->run_key, cell, status, NULL) < 0)
        return HG_COMPACT_RESULT;
    if (is_recent(p, f, status))
        return HG_COMPACT_RECENT;
    dir = hg_attempt_path(&p->group, f, "");
    list_files(dir, &files);
    others = files.others;
    files_done(&files);
    free(dir);
    return others ? HG_COMPACT_FILES : HG_COMPACT_REASONS;
}

static bool has_good(struct packer *p, const struct hg_attempt_list *list, const json_t *cell)
{
    bool good = false;

    for (size_t i = 0; i < list->n && !good; i++) {
        char status[16];

        good = hg_collect_status(&p->group, &list->items[i], p->run_key, cell, status, NULL) == 0 &&
               strcmp(status, "ok") == 0;
    }
    return good;
}

static bool is_over(struct packer *p, size_t line, const struct hg_attempt_list *list,
                    const json_t *cell)
{
    const struct hg_run_cell *known =
        p->state ? hg_run_cell_find(p->state, p->batch, (uint32_t)line) : NULL;

    return p->state ? known && hg_cell_is_over(known) : has_good(p, list, cell);
}

static int flush(struct packer *p);

/* The first cell of the next group ends the one before. */
static int enter_group(struct packer *p, size_t line, const char *id, struct hg_attempt_list *list)
{
    bool same = p->wanted && p->number == line / HG_GROUP_LINES;

    if (!same && flush(p) < 0)
        return -1;
    if (hg_attempt_list(&p->group, p->batch, line, id, list, p->err) < 0)
        return -1;
    if (same)
        return 0;
    p->number = line / HG_GROUP_LINES;
    p->all_over = true;
    p->wanted = hg_alloc_zeroed(p->group.n, sizeof *p->wanted);
    return 0;
}

static int look_at_cell(size_t line, const json_t *record, void *context)
{
    struct packer *p = context;
    const char *id = json_string_value(json_object_get(record, "id"));
    const json_t *cell = json_object_get(record, "cell");
    struct hg_attempt_list list;
    bool over;

    if (enter_group(p, line, id ? id : "", &list) < 0)
        return -1;
    over = is_over(p, line, &list, cell);
    p->all_over &= over;
    for (size_t i = 0; i < list.n; i++) {
        struct hg_attempt_files *f = &list.items[i];
        enum hg_compact_kept kept;

        p->count->before += f->parts > 0;
        if (f->parts)
            continue;
        kept = why_kept(p, f, cell, over);
        if (kept < HG_COMPACT_REASONS) {
            p->count->kept[kept]++;
            continue;
        }
        p->wanted[f - p->group.items] = true;
        p->n_wanted++;
    }
    return 0;
}

/* ---- Writing a pack ---- */

static int put_header(int to, const struct hg_tar_file *file, struct hg_err *err)
{
    char block[HG_TAR_BLOCK];

    if (hg_tar_header(file, block, err) < 0)
        return -1;
    return hg_fs_write_all(to, block, sizeof block) < 0 ? hg_err_sys(err, "cannot write the pack")
                                                        : 0;
}

static int put_zeros(int to, size_t n, struct hg_err *err)
{
    static const char zeros[2 * HG_TAR_BLOCK];

    return hg_fs_write_all(to, zeros, n) < 0 ? hg_err_sys(err, "cannot write the pack") : 0;
}

/* Copy exactly so much. 1: there is less. */
static int copy(int from, off_t at, uint64_t size, int to, struct hg_err *err)
{
    static char piece[PIECE];

    while (size) {
        ssize_t n = pread(from, piece, size < PIECE ? (size_t)size : PIECE, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? hg_err_sys(err, "cannot read what is packed") : 1;
        if (hg_fs_write_all(to, piece, (size_t)n) < 0)
            return hg_err_sys(err, "cannot write the pack");
        at += n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* What is packed already goes over as it is. 1: the pack is damaged. */
static int put_packed(struct packer *p, int to)
{
    for (size_t i = 0; i < p->group.parts.n; i++) {
        const struct hg_tar_file *part = &p->group.parts.items[i];
        int rc = put_header(to, part, p->err);

        if (rc == 0)
            rc = copy(p->group.pack, (off_t)part->at, part->size, to, p->err);
        if (rc == 0)
            rc = put_zeros(to, hg_tar_padding(part->size), p->err);
        if (rc)
            return rc;
    }
    return 0;
}

/* 1: it is not as it was when it was listed. */
static int put_file(const char *dir, const char *attempt, const struct file *f, int to,
                    struct hg_err *err)
{
    struct hg_tar_file head = { .size = (uint64_t)f->st.st_size, .mtime_s = f->st.st_mtim.tv_sec };
    char *path = hg_fs_join(dir, f->name);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), rc;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = errno == ENOENT ? 1 : hg_err_sys(err, "cannot read %s", path);
        goto out;
    }
    snprintf(head.name, sizeof head.name, "%s/%s", attempt, f->name);
    rc = st.st_ino != f->st.st_ino || st.st_size != f->st.st_size;
    if (rc == 0)
        rc = put_header(to, &head, err);
    if (rc == 0)
        rc = copy(fd, 0, head.size, to, err);
    if (rc == 0)
        rc = put_zeros(to, hg_tar_padding(head.size), err);
out:
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* One that changes under our hands is left out: what of it is in the pack is taken back. */
static int put_attempt(struct packer *p, size_t i, int to)
{
    const struct hg_attempt_files *f = &p->group.items[i];
    char *dir = hg_attempt_path(&p->group, f, "");
    off_t begin = lseek(to, 0, SEEK_CUR);
    struct files files = { 0 };
    int rc;

    list_files(dir, &files);
    rc = files.others || !files.n;
    for (size_t k = 0; k < files.n && rc == 0; k++)
        rc = put_file(dir, strrchr(dir, '/') + 1, &files.items[k], to, p->err);
    if (rc == 1) {
        p->wanted[i] = false;
        p->n_wanted--;
        p->count->kept[HG_COMPACT_CHANGED]++;
        rc = ftruncate(to, begin) < 0 || lseek(to, begin, SEEK_SET) < 0
                 ? hg_err_sys(p->err, "cannot write the pack")
                 : 0;
    }
    files_done(&files);
    free(dir);
    return rc;
}

static int write_pack(struct packer *p, const char *path)
{
    struct hg_fs_part part = HG_FS_PART_INIT;
    struct stat st;
    int rc;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hg_err_set(p->err, HG_E_INPUT, "%s is not a regular file", path);
    rc = hg_fs_part_begin(path, 0600, &part, p->err);
    if (rc == 0)
        rc = put_packed(p, part.fd);
    if (rc == 1)
        rc = hg_err_set(p->err, HG_E_INPUT, "%s was cut short", path);
    for (size_t i = 0; i < p->group.n && rc == 0; i++)
        if (p->wanted[i])
            rc = put_attempt(p, i, part.fd);
    if (rc == 0)
        rc = put_zeros(part.fd, 2 * HG_TAR_BLOCK, p->err);
    if (rc == 0 && p->n_wanted)
        rc = hg_fs_part_end(&part, p->err);
    hg_fs_part_done(&part);
    p->count->packed += rc == 0 ? p->n_wanted : 0;
    p->count->packs += rc == 0 && p->n_wanted;
    return rc;
}

/* ---- Removing what is packed ---- */

/* Is the part of one file between two places the same as all of another? False if one cannot be read. */
static bool has_content(const struct hg_attempt_file *there, int here)
{
    static char a[PIECE], b[PIECE];
    off_t size = there->end - there->begin, at = 0;
    struct stat st;

    if (fstat(here, &st) < 0 || st.st_size != size)
        return false;
    while (at < size) {
        size_t most = size - at < (off_t)PIECE ? (size_t)(size - at) : PIECE;
        ssize_t n = pread(here, a, most, at);

        if (n <= 0 || pread(there->fd, b, (size_t)n, there->begin + at) != n ||
            memcmp(a, b, (size_t)n) != 0)
            return false;
        at += n;
    }
    return true;
}

/* Does the pack have this file, byte for byte? */
static bool is_packed(struct packer *p, const struct hg_attempt_files *f, const char *dir,
                      const struct file *file)
{
    struct hg_attempt_file there = { .fd = -1 };
    char *path = hg_fs_join(dir, file->name);
    int here = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool same = here >= 0 && hg_attempt_open(&p->group, f, file->name, &there, NULL) == 0 &&
                has_content(&there, here);

    if (here >= 0)
        close(here);
    if (there.fd >= 0)
        close(there.fd);
    free(path);
    return same;
}

/* A folder whose files are all in the pack; some may be gone already, where an earlier call was killed. */
static int remove_packed(struct packer *p, const struct hg_attempt_files *f)
{
    struct hg_attempt_files folder = *f;
    struct files files = { 0 };
    int rc = 0;
    bool all;
    char *dir;

    folder.parts = 0;
    dir = hg_attempt_path(&p->group, &folder, "");
    list_files(dir, &files);
    all = !files.others;
    for (size_t i = 0; i < files.n && all; i++)
        all = is_packed(p, f, dir, &files.items[i]);
    if (all)
        rc = hg_fs_remove_tree(dir, p->err);
    else
        p->count->kept[HG_COMPACT_CHANGED]++;
    files_done(&files);
    free(dir);
    return rc;
}

/* The group as it lies there now: first its pack, then the folders that it makes superfluous. */
static int remove_folders(struct packer *p, const char *dir)
{
    bool empty = p->all_over;

    for (size_t i = 0; i < p->group.n; i++) {
        const struct hg_attempt_files *f = &p->group.items[i];

        if (f->folder && f->parts && remove_packed(p, f) < 0)
            return -1;
        empty &= f->parts > 0;
    }
    if (empty) /* no job makes a folder in it any more */
        rmdir(dir);
    return 0;
}

static int flush_group(struct packer *p, const char *group)
{
    char *dir = hg_rundir_path(p->rd, "%s", group), *pack = hg_rundir_path(p->rd, "%s.tar", group);
    int rc = 0;
    struct stat st;

    if (lstat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) /* a link may lead out of the run */
        rc = hg_err_set(p->err, HG_E_INPUT, "%s is not a folder", dir);
    if (rc == 0 && p->n_wanted && p->group.walk.damaged)
        rc = hg_err_set(p->err, HG_E_INPUT, "%s is damaged at byte %llu: restore it first", pack,
                        (unsigned long long)p->group.walk.where);
    if (rc == 0 && p->n_wanted) {
        rc = write_pack(p, pack);
        hg_attempt_group_forget(&p->group);
    }
    if (rc == 0)
        rc = hg_attempt_group_read(&p->group, group, p->err);
    if (rc == 0 && p->group.n)
        rc = remove_folders(p, dir);
    free(dir);
    free(pack);
    return rc;
}

/* Pack the group whose cells have passed. */
static int flush(struct packer *p)
{
    char group[HG_GROUP_NAME_MAX];
    int rc = 0;

    hg_attempt_group_name(p->batch, p->number * HG_GROUP_LINES, group);
    if (p->wanted)
        rc = flush_group(p, group);
    free(p->wanted);
    p->wanted = NULL;
    p->n_wanted = 0;
    return rc;
}

/* ---- All of them ---- */

/* Packs that somebody who was killed has not finished. Nobody else is at work: the lock is ours. */
static int remove_unfinished(const struct hg_rundir *rd, struct hg_err *err)
{
    char *dir = hg_rundir_path(rd, "cells");
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = d || errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", dir);

    while (d && (entry = readdir(d)))
        if (strstr(entry->d_name, ".tar.tmp."))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
    free(dir);
    return rc;
}

int hg_compact_run(const struct hg_rundir *rd, const struct hg_run_state *state,
                   struct hg_compact_count *count, struct hg_err *err)
{
    struct packer p = {
        .rd = rd, .state = state, .group = { .rd = rd }, .count = count, .err = err
    };
    json_t *plan = hg_plan_read(rd->path, err);
    const json_t *batch;
    int rc = plan ? remove_unfinished(rd, err) : -1;
    size_t i;

    *count = (struct hg_compact_count){ 0 };
    p.run_key = json_string_value(json_object_get(plan, "run_key"));
    json_array_foreach(json_object_get(plan, "batches"), i, batch) {
        p.batch = (int)i + 1;
        if (rc == 0 && hg_plan_each_cell(rd->path, p.batch, look_at_cell, &p, err) != 0)
            rc = -1;
        if (rc == 0)
            rc = flush(&p);
    }
    free(p.wanted);
    hg_attempt_group_forget(&p.group);
    json_decref(plan);
    return rc;
}
