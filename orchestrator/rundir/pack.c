/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/tar.h"
#include "base/vec.h"
#include "matrix/workload.h"

#define PIECE ((size_t)64 * 1024)

/* ---- What is in a folder ---- */

/* One file of an attempt. */
struct file {
    char *name;
    struct stat st;
};

struct files {
    struct file *items;
    size_t n, cap;
    bool others; /* there are other files */
};

static void files_done(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->items[i].name);
    HG_VEC_DONE(files);
}

/* Links are not followed. */
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

bool hg_pack_can_take(const char *dir)
{
    struct files files = { 0 };
    bool can;

    list_files(dir, &files);
    can = !files.others;
    files_done(&files);
    return can;
}

/* ---- Writing a pack ---- */

static int put(int to, const char *bytes, size_t n, struct hg_err *err)
{
    return hg_fs_write_all(to, bytes, n) < 0 ? hg_err_sys(err, "cannot write the pack") : 0;
}

static int put_header(int to, const struct hg_tar_file *file, struct hg_err *err)
{
    char block[HG_TAR_BLOCK];

    return hg_tar_header(file, block, err) < 0 ? -1 : put(to, block, sizeof block, err);
}

static int put_zeros(int to, size_t n, struct hg_err *err)
{
    static const char zeros[2 * HG_TAR_BLOCK];

    return put(to, zeros, n, err);
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
        if (put(to, piece, (size_t)n, err) < 0)
            return -1;
        at += n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Copy the files that are packed already. 1: the pack is damaged. */
static int put_packed(const struct hg_attempt_group *g, int to, struct hg_err *err)
{
    for (size_t i = 0; i < g->parts.n; i++) {
        const struct hg_tar_file *part = &g->parts.items[i];
        int rc = put_header(to, part, err);

        if (rc == 0)
            rc = copy(g->pack, (off_t)part->at, part->size, to, err);
        if (rc == 0)
            rc = put_zeros(to, hg_tar_padding(part->size), err);
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

/* 1: it changed while it was written; what of it is in the pack is taken back. */
static int put_attempt(const struct hg_attempt_group *g, size_t i, int to, struct hg_err *err)
{
    char *dir = hg_attempt_path(g, &g->items[i], "");
    off_t begin = lseek(to, 0, SEEK_CUR);
    struct files files = { 0 };
    int rc;

    list_files(dir, &files);
    rc = files.others || !files.n;
    for (size_t k = 0; k < files.n && rc == 0; k++)
        rc = put_file(dir, strrchr(dir, '/') + 1, &files.items[k], to, err);
    if (rc == 1 && (ftruncate(to, begin) < 0 || lseek(to, begin, SEEK_SET) < 0))
        rc = hg_err_sys(err, "cannot write the pack");
    files_done(&files);
    free(dir);
    return rc;
}

static int put_wanted(const struct hg_attempt_group *g, const bool *wanted, int to, size_t *packed,
                      struct hg_err *err)
{
    for (size_t i = 0; i < g->n; i++) {
        int rc = wanted[i] ? put_attempt(g, i, to, err) : 1;

        if (rc < 0)
            return -1;
        *packed += rc == 0;
    }
    return put_zeros(to, 2 * HG_TAR_BLOCK, err);
}

int hg_pack_write(const struct hg_attempt_group *g, const bool *wanted, const char *path,
                  size_t *packed, struct hg_err *err)
{
    struct hg_fs_part part = HG_FS_PART_INIT;
    struct stat st;
    int rc;

    *packed = 0;
    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return hg_err_set(err, HG_E_INPUT, "%s is not a regular file", path);
    rc = hg_fs_part_begin(path, 0600, &part, err);
    if (rc == 0)
        rc = put_packed(g, part.fd, err);
    if (rc == 1)
        rc = hg_err_set(err, HG_E_INPUT, "%s was cut short", path);
    if (rc == 0)
        rc = put_wanted(g, wanted, part.fd, packed, err);
    if (rc == 0 && *packed)
        rc = hg_fs_part_end(&part, err);
    hg_fs_part_done(&part);
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
static bool is_packed(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                      const char *dir, const struct file *file)
{
    struct hg_attempt_file there = { .fd = -1 };
    char *path = hg_fs_join(dir, file->name);
    int here = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool same = here >= 0 && hg_attempt_open(g, f, file->name, &there, NULL) == 0 &&
                has_content(&there, here);

    if (here >= 0)
        close(here);
    if (there.fd >= 0)
        close(there.fd);
    free(path);
    return same;
}

int hg_pack_remove_folder(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                          struct hg_err *err)
{
    struct hg_attempt_files folder = *f;
    struct files files = { 0 };
    bool all;
    char *dir;
    int rc = 0;

    folder.parts = 0;
    dir = hg_attempt_path(g, &folder, "");
    list_files(dir, &files);
    all = !files.others;
    for (size_t i = 0; i < files.n && all; i++)
        all = is_packed(g, f, dir, &files.items[i]);
    if (all)
        rc = hg_fs_remove_tree(dir, err);
    files_done(&files);
    free(dir);
    return rc < 0 ? -1 : all;
}
