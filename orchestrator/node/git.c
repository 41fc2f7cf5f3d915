/* SPDX-License-Identifier: Apache-2.0 */
/* The index of git, versions 2 to 4: https://git-scm.com/docs/index-format. As with core.checkStat=minimal, a file is unchanged if size
 * and time of modification are those of the index. */
#include "node/git.h"

#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/proc.h"

#define INDEX_MAX ((size_t)256 << 20) /* bytes: some two million files */
#define OID 20                        /* bytes of the name of a content */

/* ---- Where it is ---- */

/* First line of a file below dir, without its newline. Yours; NULL if there is none. */
static char *first_line(const char *dir, const char *name)
{
    char *path = hg_fs_join(dir, name);
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;

    if (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
    } else {
        free(line);
        line = NULL;
    }
    if (f)
        fclose(f);
    free(path);
    return line;
}

/* The folder that the file .git of a linked work tree or of a submodule names: "gitdir: PATH". */
static char *linked_folder(const char *root)
{
    char *line = first_line(root, ".git");
    char *folder = line && strncmp(line, "gitdir: ", 8) == 0 ? hg_fs_join(root, line + 8) : NULL;

    free(line);
    return folder;
}

void hg_git_find(const char *dir, struct hg_git *g)
{
    char *at = hg_strdup(dir);

    *g = (struct hg_git){ 0 };
    while (at && !g->folder) {
        char *git = hg_fs_join(at, ".git");
        char *up = strcmp(at, "/") == 0 ? NULL : hg_fs_dirname(at);

        g->folder = hg_fs_is_dir(git)   ? hg_strdup(git)
                    : hg_fs_exists(git) ? linked_folder(at)
                                        : NULL;
        if (g->folder)
            g->root = hg_strdup(at);
        free(git);
        free(at);
        at = up;
    }
    free(at);
}

void hg_git_done(struct hg_git *g)
{
    free(g->root);
    free(g->folder);
    *g = (struct hg_git){ 0 };
}

/* ---- The revision ---- */

static char *packed_ref(const char *git, const char *ref)
{
    char *path = hg_fs_join(git, "packed-refs");
    FILE *f = fopen(path, "re");
    char *line = NULL, *found = NULL;
    size_t cap = 0;

    while (f && !found && getline(&line, &cap, f) > 0) {
        char *space = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (space && strcmp(space + 1, ref) == 0)
            found = hg_strndup(line, (size_t)(space - line));
    }
    if (f)
        fclose(f);
    free(line);
    free(path);
    return found;
}

char *hg_git_revision(const struct hg_git *g)
{
    char *head = g->folder ? first_line(g->folder, "HEAD") : NULL;
    char *common, *shared, *revision;

    if (!head || strncmp(head, "ref: ", 5) != 0) /* none, or a detached head */
        return head;
    common = first_line(g->folder, "commondir"); /* branches of a linked work tree live there */
    shared = common ? hg_fs_join(g->folder, common) : hg_strdup(g->folder);
    revision = first_line(shared, head + 5);
    if (!revision)
        revision = packed_ref(shared, head + 5);
    free(shared);
    free(common);
    free(head);
    return revision;
}

/* ---- The index ---- */

struct reader {
    const unsigned char *at, *end; /* end: of the entries and extensions */
    unsigned version;
    struct hg_buf name; /* of the last entry: version 4 leaves out what two names share */
    struct timespec written;
};

struct entry {
    unsigned mode, flags; /* flags & 0x3000: in a merge that is not resolved */
    uint32_t mtime_s, mtime_ns, size;
    const unsigned char *oid;
    bool absent_on_purpose; /* left out by a sparse checkout */
};

static uint32_t be32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return be32toh(v);
}

/* How many bytes of the last name to drop, of version 4; false at the end. */
static bool read_drop(const unsigned char **at, const unsigned char *end, size_t *drop)
{
    const unsigned char *p = *at;

    if (p == end)
        return false;
    *drop = *p & 127;
    while (*p++ & 128) {
        if (p == end || *drop > INDEX_MAX)
            return false;
        *drop = ((*drop + 1) << 7) + (*p & 127);
    }
    *at = p;
    return true;
}

/* The next entry; its name is r->name. False if the index is not what it should be. */
static bool next_entry(struct reader *r, struct entry *e)
{
    const unsigned char *p = r->at, *name = p + 62, *nul;
    size_t drop = r->name.len;

    if (r->end - p < 64)
        return false;
    *e = (struct entry){ .mtime_s = be32(p + 8),
                         .mtime_ns = be32(p + 12),
                         .mode = be32(p + 24),
                         .size = be32(p + 36),
                         .oid = p + 40,
                         .flags = (unsigned)p[60] << 8 | p[61] };
    if (r->version >= 3 && e->flags & 0x4000) { /* more flags */
        e->absent_on_purpose = p[62] & 0x40;
        name += 2;
    }
    if (r->version == 4 && !read_drop(&name, r->end, &drop))
        return false;
    nul = memchr(name, 0, (size_t)(r->end - name));
    if (!nul || drop > r->name.len)
        return false;
    r->name.len -= drop;
    hg_buf_append(&r->name, name, (size_t)(nul - name));
    r->at = r->version == 4 ? nul + 1 : p + ((size_t)(nul - p + 8) & ~(size_t)7);
    return r->at <= r->end;
}

/* A split index holds only what changed: such a one is not read. */
static bool is_whole(const struct reader *r)
{
    const unsigned char *p = r->at;

    for (; r->end - p >= 8; p += 8 + be32(p + 4)) {
        if (memcmp(p, "link", 4) == 0)
            return false;
        if (be32(p + 4) > (size_t)(r->end - p) - 8)
            break;
    }
    return true;
}

/* ---- One file ---- */

enum found { GONE, THERE, LATE };

/* Name of a content as git makes it: SHA-1 of "blob SIZE\0CONTENT". */
static enum found name_file(int fd, off_t size, double end_s, unsigned char oid[static OID])
{
    char head[40], chunk[65536];
    struct hg_sha1 sha;
    ssize_t n;

    hg_sha1_begin(&sha);
    hg_sha1_add(&sha, head, (size_t)snprintf(head, sizeof head, "blob %lld", (long long)size) + 1);
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && hg_clock_mono_s() <= end_s)
        hg_sha1_add(&sha, chunk, (size_t)n);
    hg_sha1_end(&sha, oid);
    return n > 0 ? LATE : n == 0 ? THERE : GONE;
}

bool hg_git_name_file(const char *path, double limit_s, char hex[static 41])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    unsigned char oid[OID];
    struct stat st;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                name_file(fd, st.st_size, hg_clock_mono_s() + limit_s, oid) == THERE;

    for (size_t i = 0; i < OID && good; i++)
        snprintf(hex + 2 * i, 3, "%02x", oid[i]);
    if (fd >= 0)
        close(fd);
    return good;
}

static enum found name_link(int root, const char *name, unsigned char oid[static OID])
{
    char text[PATH_MAX + 40], target[PATH_MAX];
    ssize_t n = readlinkat(root, name, target, sizeof target);
    int head = snprintf(text, 40, "blob %zd", n) + 1;
    struct hg_sha1 sha;

    if (n < 0)
        return GONE;
    memcpy(text + head, target, (size_t)n);
    hg_sha1_begin(&sha);
    hg_sha1_add(&sha, text, (size_t)head + (size_t)n);
    hg_sha1_end(&sha, oid);
    return THERE;
}

static bool is_untouched(const struct reader *r, const struct entry *e, const struct stat *st)
{
    bool same = (uint32_t)st->st_size == e->size && (uint32_t)st->st_mtim.tv_sec == e->mtime_s &&
                (!e->mtime_ns || (uint32_t)st->st_mtim.tv_nsec == e->mtime_ns);
    /* written after the index was, within the same tick of the clock? */
    bool late = st->st_mtim.tv_sec > r->written.tv_sec ||
                (st->st_mtim.tv_sec == r->written.tv_sec &&
                 (!e->mtime_ns || st->st_mtim.tv_nsec >= r->written.tv_nsec));

    return same && !late;
}

/* The content that the file has now. GONE: also if it is no file any more. */
static enum found look_at_file(int root, const struct reader *r, const struct entry *e,
                               double end_s, unsigned char oid[static OID])
{
    const char *name = hg_buf_str(&r->name);
    unsigned kind = e->mode & S_IFMT;
    enum found found;
    struct stat st;
    int fd;

    memcpy(oid, e->oid, OID);
    if (e->absent_on_purpose || (kind != S_IFREG && kind != S_IFLNK)) /* a submodule: its commit */
        return THERE;
    if (fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & S_IFMT) != kind)
        return GONE;
    if (is_untouched(r, e, &st))
        return THERE;
    if (kind == S_IFLNK)
        return name_link(root, name, oid);
    fd = openat(root, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return GONE;
    found = name_file(fd, st.st_size, end_s, oid);
    close(fd);
    return found;
}

/* ---- All of them ---- */

static bool is_omitted(const char *const *omit, const char *name)
{
    for (; *omit; omit++) {
        size_t n = strlen(*omit);

        if (strncmp(*omit, name, n) == 0 && (name[n] == '\0' || name[n] == '/'))
            return true;
    }
    return false;
}

/* False: an entry cannot be read, or the time is over. */
static bool look_at_all(int root, struct reader *r, const char *const *omit, double end_s,
                        struct hg_git_tree *tree, struct hg_buf *sum)
{
    for (; tree->seen < tree->files; tree->seen++) {
        unsigned char oid[OID];
        enum found found;
        struct entry e;

        if (!next_entry(r, &e) || hg_clock_mono_s() > end_s)
            return false;
        if (is_omitted(omit, hg_buf_str(&r->name)))
            continue;
        found = look_at_file(root, r, &e, end_s, oid);
        if (found == LATE)
            return false;
        tree->changed |= found == GONE || memcmp(oid, e.oid, OID) != 0 || e.flags & 0x3000;
        if (found == GONE) /* as if it were not tracked any more */
            continue;
        hg_buf_append(sum, hg_buf_str(&r->name), r->name.len + 1);
        hg_buf_append(sum, oid, OID);
    }
    return is_whole(r);
}

static bool open_index(const struct hg_git *g, struct hg_buf *text, struct reader *r)
{
    char *path = hg_fs_join(g->folder, "index");
    struct stat st;
    const unsigned char *p;
    bool good = stat(path, &st) == 0 && hg_fs_read_file(path, INDEX_MAX, text, NULL) == 0;

    free(path);
    if (!good || text->len < 12 + OID || memcmp(text->data, "DIRC", 4) != 0)
        return false;
    p = (const unsigned char *)text->data;
    *r = (struct reader){
        .at = p + 12, .end = p + text->len - OID, .version = be32(p + 4), .written = st.st_mtim
    };
    return r->version >= 2 && r->version <= 4;
}

void hg_git_look(const struct hg_git *g, const char *const *omit, double limit_s,
                 struct hg_git_tree *tree)
{
    double end_s = hg_clock_mono_s() + limit_s;
    struct hg_buf text = HG_BUF_INIT, sum = HG_BUF_INIT;
    struct reader r = { 0 };
    int root = g->root ? open(g->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    *tree = (struct hg_git_tree){ 0 };
    if (root >= 0 && open_index(g, &text, &r)) {
        tree->files = be32(r.at - 4);
        tree->known = look_at_all(root, &r, omit, end_s, tree, &sum);
    }
    if (tree->known)
        hg_hash128_hex(hg_buf_str(&sum), sum.len, tree->hash);
    if (root >= 0)
        close(root);
    hg_buf_done(&r.name);
    hg_buf_done(&text);
    hg_buf_done(&sum);
}

/* The commit's files are packed, so that git has to be asked. */
int hg_git_is_staged(const struct hg_git *g, const char *const *omit, double limit_s)
{
    const char *argv[20] = { "git",         "-C",    g->root,      "--git-dir", g->folder,
                             "--work-tree", g->root, "diff-index", "--cached",  "--quiet",
                             "HEAD",        "--",    "." };
    char *paths[4] = { NULL };
    int status, n = 0, rc;

    for (; omit[n] && n < 3; n++)
        argv[13 + n] = paths[n] = hg_str_printf(":(exclude,top,literal)%s", omit[n]);
    rc = hg_proc_capture(argv, limit_s, NULL, NULL, &status, NULL);
    while (n--)
        free(paths[n]);
    if (rc < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return -1;
    return WEXITSTATUS(status);
}
