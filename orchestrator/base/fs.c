/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"

double hg_fs_late_s(const char *path)
{
    static const long shared[] = { 0x6969 /* NFS */,      0x0bd00bd0 /* Lustre */,
                                   0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */,
                                   0x65735546 /* FUSE */, 0x00c36400 /* Ceph */,
                                   0x517b /* SMB */,      (long)0xff534d42 /* CIFS */ };
    const char *slash = strrchr(path, '/');
    struct statfs fs;

    if (statfs(path, &fs) < 0 && slash && slash > path) {
        char *folder = hg_strndup(path, (size_t)(slash - path));
        double late_s = hg_fs_late_s(folder);

        free(folder);
        return late_s;
    }
    if (statfs(path, &fs) < 0)
        return 60;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        if ((long)fs.f_type == shared[i])
            return 60;
    return 2;
}

static int open_reading(const char *path, int flags, struct stat *st, struct hg_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    if (fd < 0) {
        int sys = errno;
        char reason[HG_ERR_REASON_MAX];

        hg_err_set(err, sys == ENOENT || sys == ENOTDIR ? HG_E_INPUT : HG_E_ENV,
                   "cannot read %s: %s", path, hg_err_reason(sys, reason));
    } else if (fstat(fd, st) < 0) {
        hg_err_sys(err, "cannot read %s", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

static int refuse(int fd, const char *path, const char *why, struct hg_err *err)
{
    close(fd);
    return hg_err_set(err, HG_E_INPUT, "cannot read %s: it is %s", path, why);
}

int hg_fs_open_file(const char *path, struct hg_err *err)
{
    struct stat st;
    int fd = open_reading(path, O_NONBLOCK, &st, err);

    return fd < 0 || S_ISREG(st.st_mode) ? fd : refuse(fd, path, "not a regular file", err);
}

int hg_fs_check_file(const char *path, struct hg_err *err)
{
    int fd = hg_fs_open_file(path, err);

    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

/* What this process was given open, as `<(...)` of a shell: pipes are read there. */
static bool is_own(const char *path)
{
    return strncmp(path, "/dev/fd/", 8) == 0 || strcmp(path, "/dev/stdin") == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static int open_input(const char *path, struct hg_err *err)
{
    struct stat st;
    int fd;

    if (strcmp(path, "-") == 0)
        return dup(STDIN_FILENO);
    fd = open_reading(path, is_own(path) ? 0 : O_NONBLOCK, &st, err);
    if (fd < 0 || S_ISREG(st.st_mode) || (!S_ISDIR(st.st_mode) && is_own(path)))
        return fd;
    return refuse(fd, path,
                  S_ISDIR(st.st_mode)    ? "a directory"
                  : S_ISFIFO(st.st_mode) ? "a FIFO; \"-\" reads standard input"
                                         : "not a regular file",
                  err);
}

static void too_large(const char *path, size_t max, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT, "%s is larger than %zu bytes", path, max);
}

/* A file whose size is known is refused before it is read. */
int hg_fs_read_open(int fd, const char *path, size_t max, struct hg_buf *out, struct hg_err *err)
{
    size_t start = out->len;
    struct stat st;
    off_t left = 0; /* as far as it is known */
    int rc = -1;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        left = st.st_size - lseek(fd, 0, SEEK_CUR);
    if (left > (off_t)max) {
        too_large(path, max, err);
        goto out;
    }
    if (left > 0)
        hg_buf_reserve(out, (size_t)left + 1);
    for (;;) {
        ssize_t n;

        if (out->cap < out->len + 2)
            hg_buf_reserve(out, 65536);
        n = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            hg_err_sys(err, "cannot read %s", path);
            goto out;
        }
        if (n == 0)
            break;
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (out->len - start > max) {
            too_large(path, max, err);
            goto out;
        }
    }
    rc = 0;
out:
    close(fd);
    return rc;
}

int hg_fs_read(const char *path, size_t max, struct hg_buf *out, struct hg_err *err)
{
    int fd = open_input(path, err);

    return fd < 0 ? hg_err_sys(err, "cannot read %s", path)
                  : hg_fs_read_open(fd, path, max, out, err);
}

int hg_fs_read_file(const char *path, size_t max, struct hg_buf *out, struct hg_err *err)
{
    int fd = hg_fs_open_file(path, err);

    return fd < 0 ? -1 : hg_fs_read_open(fd, path, max, out, err);
}

void hg_fs_hold_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0) /* open takes the lowest number that is free: this one */
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int hg_fs_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Something to write into, not to put a file in the place of: a device, a pipe, a terminal. */
static bool is_sink(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int hg_fs_part_begin(const char *path, mode_t mode, struct hg_fs_part *part, struct hg_err *err)
{
    char *target = realpath(path, NULL); /* a link stays one */

    *part = (struct hg_fs_part){ .fd = -1, .path = target ? target : hg_strdup(path) };
    if (is_sink(path)) {
        part->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    } else {
        part->tmp = hg_str_printf("%s.tmp.%ld", part->path, (long)getpid());
        unlink(part->tmp); /* a leftover of a killed process with our pid */
        part->fd = open(part->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    }
    if (part->fd >= 0)
        return 0;
    hg_err_sys(err, "cannot write %s", path);
    hg_fs_part_done(part);
    return -1;
}

/* All is written: on the disk, under its own name. */
static int put_in_place(struct hg_fs_part *part, const char *dir, struct hg_err *err)
{
    int fd = part->fd;

    if (part->tmp && fsync(fd) < 0)
        return hg_err_sys(err, "cannot write %s", part->path);
    part->fd = -1;
    if (close(fd) < 0)
        return hg_err_sys(err, "cannot write %s", part->path);
    if (!part->tmp)
        return 0;
    if (rename(part->tmp, part->path) < 0)
        return hg_err_sys(err, "cannot replace %s", part->path);
    free(part->tmp);
    part->tmp = NULL;
    return hg_fs_sync_dir(dir, err);
}

int hg_fs_part_end(struct hg_fs_part *part, struct hg_err *err)
{
    char *dir = hg_fs_dirname(part->path);
    int rc = put_in_place(part, dir, err);

    hg_fs_part_done(part);
    free(dir);
    return rc;
}

void hg_fs_part_done(struct hg_fs_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    if (part->tmp)
        unlink(part->tmp);
    free(part->tmp);
    free(part->path);
    *part = (struct hg_fs_part)HG_FS_PART_INIT;
}

int hg_fs_replace(const char *path, const void *data, size_t len, mode_t mode, struct hg_err *err)
{
    struct hg_fs_part part;
    int rc = -1;

    if (hg_fs_part_begin(path, mode, &part, err) < 0)
        return -1;
    if (hg_fs_write_all(part.fd, data, len) < 0)
        hg_err_sys(err, "cannot write %s", path);
    else
        rc = hg_fs_part_end(&part, err);
    hg_fs_part_done(&part);
    return rc;
}

static const char *scratch_dir(void)
{
    const char *dir = getenv("TMPDIR");

    return dir && *dir ? dir : "/tmp";
}

int hg_fs_scratch_failed(struct hg_err *err)
{
    hg_err_sys(err, "temporary file in %s", scratch_dir());
    return hg_err_hint(err, "set TMPDIR to a folder with more room");
}

FILE *hg_fs_scratch(struct hg_err *err)
{
    char *path = hg_fs_join(scratch_dir(), "hpcgrid-XXXXXX");
    int fd = mkostemp(path, O_CLOEXEC);
    FILE *file;

    if (fd >= 0)
        unlink(path);
    file = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (!file)
        hg_fs_scratch_failed(err);
    if (!file && fd >= 0)
        close(fd);
    free(path);
    return file;
}

int hg_fs_check_output(const char *path, struct hg_err *err)
{
    char *dir = hg_fs_dirname(path);
    int rc = 0;

    if (hg_fs_is_dir(path))
        rc = hg_err_set(err, HG_E_ENV, "cannot write %s: it is a folder", path);
    else if (hg_fs_exists(dir) && !hg_fs_is_dir(dir))
        rc = hg_err_set(err, HG_E_ENV, "cannot write %s: %s is not a folder", path, dir);
    else if (is_sink(path))
        rc = access(path, W_OK) < 0 ? hg_err_sys(err, "cannot write %s", path) : 0;
    else if (access(dir, W_OK | X_OK) < 0)
        rc = hg_err_sys(err, "cannot write %s in folder %s", path, dir);
    free(dir);
    return rc;
}

int hg_fs_check_creatable(const char *path, struct hg_err *err)
{
    char *dir = hg_fs_dirname(path);
    int rc = hg_fs_exists(dir) ? hg_fs_check_output(path, err) : hg_fs_check_creatable(dir, err);

    free(dir);
    return rc;
}

int hg_fs_mkdirs(const char *path, mode_t mode, struct hg_err *err)
{
    char part[PATH_MAX];

    if (strlen(path) >= sizeof part)
        return hg_err_set(err, HG_E_INPUT, "path too long: %.60s...", path);
    for (size_t i = 1;; i++) {
        bool end = path[i] == '\0';

        if (!end && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return hg_err_sys(err, "cannot create folder %s", part);
        if (end)
            break;
    }
    if (!hg_fs_is_dir(path))
        return hg_err_set(err, HG_E_ENV, "cannot create folder %s: a file has that name", path);
    return 0;
}

static int remove_at(int dirfd, const char *name)
{
    DIR *dir = NULL;
    struct dirent *entry;
    int rc = -1;
    int fd;

    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return -1;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (remove_at(fd, entry->d_name) < 0)
            goto out;
    }
    rc = unlinkat(dirfd, name, AT_REMOVEDIR);
    if (rc < 0 && errno == ENOENT)
        rc = 0;
out:
    closedir(dir);
    return rc;
}

int hg_fs_remove_tree(const char *path, struct hg_err *err)
{
    if (remove_at(AT_FDCWD, path) < 0)
        return hg_err_sys(err, "cannot remove %s", path);
    return 0;
}

int hg_fs_sync_dir(const char *path, struct hg_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0)
        return hg_err_sys(err, "cannot open folder %s", path);
    if (fsync(fd) < 0 && errno != EINVAL) /* EINVAL: a file system without it */
        rc = hg_err_sys(err, "cannot sync folder %s", path);
    close(fd);
    return rc;
}

bool hg_fs_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

bool hg_fs_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Resolve "." and ".." by text; the path is absolute. */
static void squeeze(char *path)
{
    char *out = path;

    for (const char *in = path; *in;) {
        const char *end;
        size_t n;

        while (*in == '/')
            in++;
        end = strchrnul(in, '/');
        n = (size_t)(end - in);
        if (n == 2 && in[0] == '.' && in[1] == '.') {
            while (out > path && *--out != '/')
                ;
        } else if (n && !(n == 1 && in[0] == '.')) {
            *out++ = '/';
            memmove(out, in, n);
            out += n;
        }
        in = end;
    }
    if (out == path)
        *out++ = '/';
    *out = '\0';
}

char *hg_fs_absolute(const char *path, struct hg_err *err)
{
    char *real = realpath(path, NULL);
    char cwd[PATH_MAX];

    if (real)
        return real;
    if (path[0] == '/') {
        real = hg_strdup(path);
    } else {
        if (!getcwd(cwd, sizeof cwd)) {
            hg_err_sys(err, "cannot find the working directory");
            return NULL;
        }
        real = hg_str_printf("%s/%s", cwd, path);
    }
    squeeze(real);
    return real;
}

char *hg_fs_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);

    if (name[0] == '/')
        return hg_strdup(name);
    return hg_str_printf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

const char *hg_fs_basename(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

char *hg_fs_dirname(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return hg_strdup(".");
    if (slash == path)
        return hg_strdup("/");
    return hg_strndup(path, (size_t)(slash - path));
}

char *hg_fs_self(struct hg_err *err)
{
    char *path = realpath("/proc/self/exe", NULL);

    if (!path)
        hg_err_sys(err, "cannot find the running program");
    return path;
}

static char *if_executable(char *path)
{
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *hg_fs_find_beside(const char *const *places)
{
    char *self = hg_fs_self(NULL), *dir = self ? hg_fs_dirname(self) : NULL, *found = NULL;

    for (; dir && *places && !found; places++)
        found = if_executable(hg_fs_join(dir, *places));
    free(self);
    free(dir);
    return found;
}

char *hg_fs_find_program(const char *name, const char *path)
{
    char *all = hg_strdup(path ? path : "/usr/bin"), *save = NULL, *found = NULL;

    for (char *dir = strtok_r(all, ":", &save); dir && !found; dir = strtok_r(NULL, ":", &save))
        found = if_executable(hg_fs_join(dir, name));
    free(all);
    return found;
}
