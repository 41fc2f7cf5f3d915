/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/alloc.h"

#define PIECE ((size_t)64 * 1024)

/* A header, all of it text: numbers are octal digits. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type[1], link[100];
    char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct header) == HG_TAR_BLOCK, "a header is one block");

/* ---- Headers ---- */

static void put_octal(char *field, size_t width, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%0*" PRIo64, (int)width - 1, value);
    memcpy(field, text, width);
}

/* False: no digits, or something else behind them. */
static bool get_octal(const char *field, size_t width, uint64_t *value)
{
    size_t i = 0;

    for (*value = 0; i < width && field[i] >= '0' && field[i] <= '7'; i++)
        *value = *value * 8 + (uint64_t)(field[i] - '0');
    return i > 0 && (i == width || field[i] == '\0' || field[i] == ' ');
}

/* The sum of a header's bytes, those of the checksum taken as spaces. */
static uint64_t sum_of(const struct header *h)
{
    const unsigned char *bytes = (const unsigned char *)h;
    uint64_t sum = 0;

    for (size_t i = 0; i < sizeof *h; i++)
        sum += bytes[i];
    for (size_t i = 0; i < sizeof h->checksum; i++)
        sum += ' ' - (uint64_t)(unsigned char)h->checksum[i];
    return sum;
}

/* Where the part of a name that does not fit is cut off: 0: nowhere, it fits. */
static size_t cut_name(const char *name, size_t n)
{
    if (n <= sizeof((struct header *)0)->name)
        return 0;
    for (size_t i = n - sizeof((struct header *)0)->name - 1; i + 1 < n; i++)
        if (name[i] == '/' && i > 0 && i <= sizeof((struct header *)0)->prefix)
            return i;
    return SIZE_MAX;
}

int hg_tar_header(const struct hg_tar_file *file, char block[static HG_TAR_BLOCK],
                  struct hg_err *err)
{
    size_t n = strlen(file->name), cut = cut_name(file->name, n);
    struct header h;

    if (n == 0 || cut == SIZE_MAX)
        return hg_err_set(err, HG_E_INPUT, "%s: the name does not fit into an archive", file->name);
    if (file->size >= HG_TAR_SIZE_MAX)
        return hg_err_set(err, HG_E_INPUT,
                          "%s has %" PRIu64 " bytes, an archive takes less than 8 GiB", file->name,
                          file->size);
    memset(&h, 0, sizeof h);
    memcpy(h.prefix, file->name, cut);
    memcpy(h.name, file->name + cut + (cut > 0), n - cut - (cut > 0));
    put_octal(h.mode, sizeof h.mode, 0600);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.size, sizeof h.size, file->size);
    put_octal(h.mtime, sizeof h.mtime,
              file->mtime_s < 0 ? 0 : (uint64_t)file->mtime_s % HG_TAR_SIZE_MAX);
    h.type[0] = '0';
    memcpy(h.magic, "ustar", sizeof h.magic);
    memcpy(h.version, "00", sizeof h.version);
    put_octal(h.checksum, sizeof h.checksum - 1, sum_of(&h));
    h.checksum[7] = ' ';
    memcpy(block, &h, sizeof h);
    return 0;
}

/* Is the block the header of a plain file? */
static bool read_header(const struct header *h, struct hg_tar_file *file)
{
    uint64_t sum, mtime;

    if (memcmp(h->magic, "ustar", sizeof h->magic) != 0 || (h->type[0] != '0' && h->type[0]) ||
        !get_octal(h->checksum, sizeof h->checksum, &sum) || sum != sum_of(h) ||
        !get_octal(h->size, sizeof h->size, &file->size) ||
        !get_octal(h->mtime, sizeof h->mtime, &mtime) || !h->name[0])
        return false;
    snprintf(file->name, sizeof file->name, "%.155s%s%.100s", h->prefix, h->prefix[0] ? "/" : "",
             h->name);
    file->mtime_s = (int64_t)mtime;
    return true;
}

/* ---- Reading ---- */

/* The bytes that were read last: headers of small files are near each other. */
struct window {
    int fd;
    char data[PIECE];
    uint64_t at;
    size_t n;
};

/* The block at a place. NULL: the file ends before it does, or *failed. */
static const struct header *block_at(struct window *w, uint64_t at, bool *failed)
{
    ssize_t n;

    if (at < w->at || at + HG_TAR_BLOCK > w->at + w->n) {
        w->at = at;
        w->n = 0;
        while (w->n < HG_TAR_BLOCK &&
               ((n = pread(w->fd, w->data + w->n, PIECE - w->n, (off_t)(at + w->n))) > 0 ||
                (n < 0 && errno == EINTR)))
            w->n += n > 0 ? (size_t)n : 0;
        *failed = w->n < HG_TAR_BLOCK && n < 0;
    }
    return at + HG_TAR_BLOCK <= w->at + w->n ? (const void *)(w->data + (at - w->at)) : NULL;
}

static bool is_zero(const struct header *h)
{
    static const struct header zero;

    return memcmp(h, &zero, sizeof zero) == 0;
}

static void note_damage(struct hg_tar_walk *walk, uint64_t at)
{
    if (!walk->damaged++)
        walk->where = at;
}

static int walk_blocks(struct window *w, uint64_t size,
                       int (*each)(void *context, const struct hg_tar_file *file), void *context,
                       struct hg_tar_walk *walk)
{
    bool failed = false, lost = false;
    const struct header *h;
    uint64_t at = 0;
    int rc = 0;

    while (rc == 0 && (h = block_at(w, at, &failed))) {
        struct hg_tar_file file;
        bool is = read_header(h, &file);

        walk->ended = is_zero(h);
        if (walk->ended && !lost)
            break;
        file.at = at + HG_TAR_BLOCK;
        if (is && file.size > size - file.at) /* cut short */
            is = false;
        if (is) {
            walk->files++;
            rc = each(context, &file);
        } else if (!lost) {
            note_damage(walk, at);
        }
        lost = !is;
        at = is ? file.at + file.size + hg_tar_padding(file.size) : at + HG_TAR_BLOCK;
    }
    if (rc == 0 && !failed && !walk->ended && !lost)
        note_damage(walk, at);
    return failed ? -1 : rc;
}

int hg_tar_each(int fd, const char *path,
                int (*each)(void *context, const struct hg_tar_file *file), void *context,
                struct hg_tar_walk *walk, struct hg_err *err)
{
    struct window *w = hg_alloc(sizeof *w);
    struct stat st;
    int rc;

    *walk = (struct hg_tar_walk){ 0 };
    if (fstat(fd, &st) < 0) {
        free(w);
        return hg_err_sys(err, "cannot read %s", path);
    }
    w->fd = fd;
    w->at = w->n = 0;
    errno = 0;
    rc = walk_blocks(w, (uint64_t)st.st_size, each, context, walk);
    if (rc < 0 && errno && (!err || !err->code))
        hg_err_sys(err, "cannot read %s", path);
    free(w);
    return rc;
}

int hg_tar_read_part(int fd, const char *path, uint64_t at, uint64_t size, struct hg_buf *out,
                     struct hg_err *err)
{
    hg_buf_reserve(out, (size_t)size);
    while (size) {
        ssize_t n = pread(fd, out->data + out->len, (size_t)size, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return hg_err_sys(err, "cannot read %s", path);
        if (n == 0)
            return hg_err_set(err, HG_E_INPUT, "%s was cut short", path);
        out->len += (size_t)n;
        at += (uint64_t)n;
        size -= (uint64_t)n;
    }
    out->data[out->len] = '\0';
    return 0;
}

struct search {
    const char *name;
    struct hg_tar_file found;
};

static int compare_name(void *context, const struct hg_tar_file *file)
{
    struct search *s = context;

    if (strcmp(file->name, s->name) == 0)
        s->found = *file;
    return 0;
}

int hg_tar_read_named(const char *named, size_t max, struct hg_buf *out, struct hg_err *err)
{
    const char *colon = strrchr(named, ':');
    struct search s = { .name = colon ? colon + 1 : "" };
    char *path = colon ? hg_strndup(named, (size_t)(colon - named)) : NULL;
    int fd = path ? hg_fs_open_file(path, err) : -1, rc = -1;
    struct hg_tar_walk walk;

    if (!colon)
        hg_err_set(err, HG_E_INPUT, "%s is not a file of an archive", named);
    if (fd < 0 || hg_tar_each(fd, path, compare_name, &s, &walk, err) < 0)
        goto out;
    if (!s.found.at)
        hg_err_set(err, HG_E_INPUT, "%s has no file %s", path, s.name);
    else if (s.found.size > max)
        hg_err_set(err, HG_E_INPUT, "%s is larger than %zu bytes", named, max);
    else
        rc = hg_tar_read_part(fd, named, s.found.at, s.found.size, out, err);
out:
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}
