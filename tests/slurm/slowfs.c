/* SPDX-License-Identifier: Apache-2.0 */
/* slowfs BACKING MOUNT: a shared folder as slow file servers make it. What it does follows BACKING.slow, one word and its values a line:
 *
 *   late S          names made on another machine appear after S seconds
 *   attr S          a machine may see a file's attributes of S seconds ago, until it opens or changes the file
 *   lost N          the next N calls of link(2) succeed, and their replies get lost: the repeated request finds the name taken
 *   fail OP E N TEXT   the next N calls of OP (write, fsync, open, create, rename, link, mkdir, readdir) end with errno E, where the path
 *                   contains TEXT
 *
 * A machine is the SLURMD_NODENAME of the process that calls, so one mount serves the driver and all nodes of a box. The file is read
 * at every call, and counts begin anew when it is written. One thread: no locks. */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RULES_MAX 16
#define PATH_ROOM 4096

static int root;
static char rules_path[PATH_ROOM];
static unsigned used[RULES_MAX]; /* of each line's count, since the file was written */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *at(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* ---- Which machine asks ---- */

static const char *machine(void)
{
    static char name[64];
    char path[64], text[65536];
    FILE *f;
    size_t n;

    name[0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/environ", (int)fuse_get_context()->pid);
    f = fopen(path, "re");
    n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    for (char *p = text; p < text + n; p += strlen(p) + 1)
        if (strncmp(p, "SLURMD_NODENAME=", 16) == 0)
            snprintf(name, sizeof name, "%s", p + 16);
    return name;
}

/* ---- What is wrong now ---- */

/* Seconds of the word ("late", "attr"); 0: none. */
static double seconds_of(const char *word)
{
    char line[256], name[32];
    double s = 0, found = 0;
    FILE *f = fopen(rules_path, "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%31s %lf", name, &s) == 2 && strcmp(name, word) == 0)
            found = s;
    if (f)
        fclose(f);
    return found;
}

/* Does a line with a count apply to this call? */
static bool applies(const char *word, const char *op, const char *path, int *error)
{
    char line[256], name[32], what[32], text[64];
    unsigned count, i = 0;
    bool yes = false;
    FILE *f = fopen(rules_path, "re");
    static struct timespec written;
    struct stat st;

    if (f && fstat(fileno(f), &st) == 0 && memcmp(&written, &st.st_mtim, sizeof written) != 0) {
        written = st.st_mtim;
        memset(used, 0, sizeof used);
    }
    for (; f && !yes && i < RULES_MAX && fgets(line, sizeof line, f); i++) {
        *error = 0;
        what[0] = text[0] = '\0';
        if (sscanf(line, "%31s", name) != 1 || strcmp(name, word) != 0)
            continue;
        if (!*op ? sscanf(line, "%*s %u", &count) == 1
                 : sscanf(line, "%*s %31s %d %u %63s", what, error, &count, text) == 4)
            yes = strcmp(what, op) == 0 && strstr(path, text) && used[i] < count && ++used[i];
    }
    if (f)
        fclose(f);
    return yes;
}

static int failure(const char *op, const char *path)
{
    int error;

    return applies("fail", op, path, &error) ? -error : 0;
}

/* ---- Names: who knows them ---- */

static struct seen {
    struct seen *next;
    char machine[64];
    double from_s; /* the machine sees it from then on */
    char path[];
} * names[4096];

static struct seen **slot(const char *path)
{
    unsigned h = 5381;

    for (const char *p = path; *p; p++)
        h = h * 33 + (unsigned char)*p;
    return &names[h % 4096];
}

/* When this machine begins to see the name. */
static void show(const char *path, double from_s)
{
    const char *who = machine();
    struct seen **head = slot(path), *s = *head;

    while (s && (strcmp(s->path, path) != 0 || strcmp(s->machine, who) != 0))
        s = s->next;
    if (!s) {
        s = calloc(1, sizeof *s + strlen(path) + 1);
        if (!s)
            abort();
        strcpy(s->path, path);
        strcpy(s->machine, who);
        s->next = *head;
        *head = s;
        s->from_s = from_s;
    }
    if (from_s < s->from_s)
        s->from_s = from_s;
}

static bool is_hidden(const char *path, const struct stat *st)
{
    const char *who = machine();
    struct seen *s = *slot(path);
    double late_s = seconds_of("late");

    if (!late_s || !path[1])
        return false;
    while (s && (strcmp(s->path, path) != 0 || strcmp(s->machine, who) != 0))
        s = s->next;
    if (s)
        return now_s() < s->from_s;
    show(path, (double)st->st_ctim.tv_sec + (double)st->st_ctim.tv_nsec * 1e-9 + late_s);
    return is_hidden(path, st);
}

/* ---- Attributes, as each machine remembers them ---- */

static struct memory {
    struct memory *next;
    char machine[64];
    ino_t ino;
    double at_s;
    struct stat st;
} * memories[4096];

/* Remember these; what is older than they are is forgotten. */
static void remember(const struct stat *st)
{
    const char *who = machine();
    struct memory **head = &memories[st->st_ino % 4096], *m = *head;

    while (m && (m->ino != st->st_ino || strcmp(m->machine, who) != 0))
        m = m->next;
    if (!m) {
        m = calloc(1, sizeof *m);
        if (!m)
            abort();
        m->ino = st->st_ino;
        strcpy(m->machine, who);
        m->next = *head;
        *head = m;
    }
    m->at_s = now_s();
    m->st = *st;
}

static void recall(struct stat *st)
{
    const char *who = machine();
    const struct memory *m = memories[st->st_ino % 4096];

    while (m && (m->ino != st->st_ino || strcmp(m->machine, who) != 0))
        m = m->next;
    if (m && now_s() - m->at_s < seconds_of("attr"))
        *st = m->st;
    else
        remember(st);
}

/* This machine changed it, or opened it. */
static void refresh(const char *path, const struct fuse_file_info *fi)
{
    struct stat st;

    if (fi ? fstat((int)fi->fh, &st) == 0 : fstatat(root, at(path), &st, AT_SYMLINK_NOFOLLOW) == 0)
        remember(&st);
}

/* The end of a call that makes a name. */
static int made(const char *path, int rc)
{
    if (rc < 0 && errno != EEXIST)
        return -errno;
    show(path, 0);
    if (rc < 0)
        return -EEXIST;
    refresh(path, NULL);
    return 0;
}

/* ---- The calls ---- */

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
    (void)conn;
    cfg->use_ino = 1;
    cfg->hard_remove = 1;
    cfg->entry_timeout = cfg->attr_timeout = cfg->negative_timeout = 0;
    return NULL;
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    if (fi ? fstat((int)fi->fh, st) < 0 : fstatat(root, at(path), st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!fi && is_hidden(path, st))
        return -ENOENT;
    if (!S_ISDIR(st->st_mode))
        recall(st);
    return 0;
}

static int fs_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    int fd = failure("readdir", path), rc = fd;
    DIR *d;
    struct dirent *entry;

    (void)offset;
    (void)fi;
    (void)flags;
    if (rc < 0)
        return rc;
    fd = openat(root, at(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return -errno;
    while ((entry = readdir(d))) {
        char name[PATH_ROOM];
        struct stat st;

        snprintf(name, sizeof name, "%s/%s", path[1] ? path : "", entry->d_name);
        if (fstatat(root, at(name), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            (entry->d_name[0] == '.' || !is_hidden(name, &st)))
            fill(buf, entry->d_name, &st, 0, 0);
    }
    closedir(d);
    return 0;
}

static int opened(const char *path, int fd, struct fuse_file_info *fi)
{
    if (fd < 0)
        return -errno;
    fi->fh = (uint64_t)fd;
    fi->direct_io = 1;
    refresh(path, fi);
    return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
    int rc = failure("open", path);

    return rc < 0 ? rc : opened(path, openat(root, at(path), fi->flags | O_CLOEXEC), fi);
}

static int fs_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    int rc = failure("create", path);

    if (rc < 0)
        return rc;
    rc = opened(path, openat(root, at(path), fi->flags | O_CREAT | O_CLOEXEC, mode), fi);
    if (rc == 0 || rc == -EEXIST)
        show(path, 0);
    return rc;
}

static int fs_read(const char *path, char *buf, size_t n, off_t offset, struct fuse_file_info *fi)
{
    ssize_t got = pread((int)fi->fh, buf, n, offset);

    (void)path;
    return got < 0 ? -errno : (int)got;
}

static int fs_write(const char *path, const char *buf, size_t n, off_t offset,
                    struct fuse_file_info *fi)
{
    int rc = failure("write", path);
    ssize_t put;

    if (rc < 0)
        return rc;
    put = pwrite((int)fi->fh, buf, n,
                 offset); /* an O_APPEND file grows at its end, whatever the offset */
    if (put < 0)
        return -errno;
    refresh(path, fi);
    return (int)put;
}

static int fs_fsync(const char *path, int data, struct fuse_file_info *fi)
{
    (void)data;
    (void)fi;
    return failure("fsync", path);
}

static int fs_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    close((int)fi->fh);
    return 0;
}

static int fs_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    int fd = fi ? (int)fi->fh : openat(root, at(path), O_WRONLY | O_CLOEXEC), rc;

    rc = fd < 0 || ftruncate(fd, size) < 0 ? -errno : 0;
    if (fd >= 0 && !fi)
        close(fd);
    refresh(path, fi);
    return rc;
}

static int fs_mkdir(const char *path, mode_t mode)
{
    int rc = failure("mkdir", path);

    return rc < 0 ? rc : made(path, mkdirat(root, at(path), mode));
}

static int fs_symlink(const char *to, const char *path)
{
    return made(path, symlinkat(to, root, at(path)));
}

static int fs_readlink(const char *path, char *buf, size_t size)
{
    ssize_t n = readlinkat(root, at(path), buf, size - 1);

    if (n < 0)
        return -errno;
    buf[n] = '\0';
    return 0;
}

static int fs_link(const char *from, const char *to)
{
    int rc = failure("link", to), none;

    if (rc < 0)
        return rc;
    rc = linkat(root, at(from), root, at(to), 0);
    if (rc == 0 && applies("lost", "", to, &none)) {
        show(to, 0); /* what the machine remembers of the file itself stays */
        return -EEXIST;
    }
    return made(to, rc);
}

static int fs_rename(const char *from, const char *to, unsigned flags)
{
    int rc = failure("rename", to);

    return rc < 0 ? rc : made(to, renameat2(root, at(from), root, at(to), flags));
}

static int fs_unlink(const char *path)
{
    return unlinkat(root, at(path), 0) < 0 ? -errno : 0;
}

static int fs_rmdir(const char *path)
{
    return unlinkat(root, at(path), AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int fs_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    int rc = fchmodat(root, at(path), mode, 0) < 0 ? -errno : 0;

    refresh(path, fi);
    return rc;
}

static int fs_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
    int rc = utimensat(root, at(path), times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

    refresh(path, fi);
    return rc;
}

static int fs_statfs(const char *path, struct statvfs *st)
{
    (void)path;
    return fstatvfs(root, st) < 0 ? -errno : 0;
}

static const struct fuse_operations calls = {
    .init = fs_init,
    .getattr = fs_getattr,
    .readdir = fs_readdir,
    .open = fs_open,
    .create = fs_create,
    .read = fs_read,
    .write = fs_write,
    .fsync = fs_fsync,
    .fsyncdir = fs_fsync,
    .release = fs_release,
    .truncate = fs_truncate,
    .mkdir = fs_mkdir,
    .symlink = fs_symlink,
    .link = fs_link,
    .readlink = fs_readlink,
    .rename = fs_rename,
    .unlink = fs_unlink,
    .rmdir = fs_rmdir,
    .chmod = fs_chmod,
    .utimens = fs_utimens,
    .statfs = fs_statfs,
};

int main(int argc, char **argv)
{
    char single[] = "-s", front[] = "-f";
    char *words[] = { argv[0], single, front, argc == 3 ? argv[2] : NULL, NULL };

    if (argc != 3 || (root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        fprintf(stderr, "usage: slowfs BACKING MOUNT\n");
        return 2;
    }
    snprintf(rules_path, sizeof rules_path, "%s.slow", argv[1]);
    umask(0);
    return fuse_main(4, words, &calls, NULL);
}
