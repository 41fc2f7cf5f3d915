/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/attempts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/vec.h"
#include "rundir/attempt.h"
#include "rundir/claim.h"

char *hg_attempt_path(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                      const char *name)
{
    char group[HG_GROUP_NAME_MAX];

    hg_attempt_group_name(g->batch, g->number * HG_GROUP_LINES, group);
    if (f->parts && !*name)
        return hg_rundir_path(g->rd, "%s.tar", group);
    if (f->parts)
        return hg_rundir_path(g->rd, "%s.tar:%s.%u.%u/%s", group, f->id, f->submission, f->restarts,
                              name);
    return hg_rundir_path(g->rd, "%s/%s.%u.%u%s%s", group, f->id, f->submission, f->restarts,
                          *name ? "/" : "", name);
}

/* ---- A group ---- */

static int compare(const void *pa, const void *pb)
{
    const struct hg_attempt_files *a = pa, *b = pb;
    int by = strcmp(a->id, b->id);

    if (by || a->submission == b->submission)
        return by ? by : (a->restarts > b->restarts) - (a->restarts < b->restarts);
    return a->submission < b->submission ? -1 : 1;
}

/* Add the attempt that has this name, of n bytes. NULL: it is not an attempt's name. */
static struct hg_attempt_files *add(struct hg_attempt_group *g, const char *name, size_t n)
{
    struct hg_attempt_files f = { 0 }, *slot;
    char text[HG_TAR_NAME_MAX];
    size_t id_len;

    if (n >= sizeof text)
        return NULL;
    memcpy(text, name, n);
    text[n] = '\0';
    if (!hg_attempt_name_parse(text, &id_len, &f.submission, &f.restarts))
        return NULL;
    f.id = hg_strndup(name, id_len);
    slot = HG_VEC_PUSH(g);
    *slot = f;
    return slot;
}

static int list_folder(struct hg_attempt_group *g, const char *dir, struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", dir);
    while ((errno = 0, entry = readdir(d))) {
        struct hg_attempt_files *f = add(g, entry->d_name, strlen(entry->d_name));

        if (f)
            f->folder = true;
    }
    if (errno) /* an attempt that was not listed may be running */
        rc = hg_err_sys(err, "cannot read folder %s", dir);
    closedir(d);
    return rc;
}

/* ---- Its pack ---- */

static int compare_parts(const void *pa, const void *pb)
{
    const struct hg_tar_file *a = pa, *b = pb;
    int by = strcmp(a->name, b->name);

    return by ? by : (a->at > b->at) - (a->at < b->at);
}

static int add_part(void *context, const struct hg_tar_file *file)
{
    struct hg_attempt_group *g = context;
    struct hg_tar_file *slot = HG_VEC_PUSH(&g->parts);

    *slot = *file;
    return 0;
}

/* Attempts, by the names of their files. */
static void add_packed(struct hg_attempt_group *g)
{
    const struct hg_tar_file *parts = g->parts.items;

    for (size_t i = 0, end; i < g->parts.n; i = end) {
        size_t n = strcspn(parts[i].name, "/") + 1;
        struct hg_attempt_files *f = parts[i].name[n - 1] ? add(g, parts[i].name, n - 1) : NULL;

        for (end = i + 1; end < g->parts.n && strncmp(parts[end].name, parts[i].name, n) == 0;)
            end++;
        if (f) {
            f->part = i;
            f->parts = end - i;
        } else {
            g->strange += end - i;
        }
    }
}

static int read_pack(struct hg_attempt_group *g, const char *path, struct hg_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return errno == ENOENT ? 0 : hg_err_sys(err, "cannot read %s", path);
    g->pack = fd;
    g->has_pack = true;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return hg_err_set(err, HG_E_INPUT, "cannot read %s: it is not a regular file", path);
    if (hg_tar_each(fd, path, add_part, g, &g->walk, err) < 0)
        return -1;
    if (g->parts.n)
        qsort(g->parts.items, g->parts.n, sizeof *g->parts.items, compare_parts);
    add_packed(g);
    return 0;
}

/* ---- The list of cells/ ---- */

static int compare_places(const void *pa, const void *pb)
{
    const struct hg_attempt_place *a = pa, *b = pb;

    if (a->batch != b->batch)
        return a->batch < b->batch ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->pack - b->pack;
}

static int list_places(struct hg_attempt_group *g, struct hg_err *err)
{
    char *path = hg_rundir_path(g->rd, "cells");
    DIR *d = opendir(path);
    struct hg_attempt_place place;
    struct dirent *entry;

    g->listed = d || errno == ENOENT;
    while (d && (errno = 0, entry = readdir(d)))
        if (hg_attempt_group_parse(entry->d_name, &place.batch, &place.number, &place.pack))
            *HG_VEC_PUSH(&g->places) = place;
    if (d && errno)
        g->listed = false;
    if (!g->listed)
        hg_err_sys(err, "cannot read folder %s", path);
    if (d)
        closedir(d);
    free(path);
    if (g->places.n)
        qsort(g->places.items, g->places.n, sizeof *g->places.items, compare_places);
    return g->listed ? 0 : -1;
}

static bool may_be_there(const struct hg_attempt_group *g, int batch, size_t number, bool pack)
{
    const struct hg_attempt_place place = { .batch = batch, .number = number, .pack = pack };

    return !g->listed || (g->places.n && bsearch(&place, g->places.items, g->places.n, sizeof place,
                                                 compare_places));
}

/* ---- Both ---- */

/* An attempt that is in the folder and in the pack is one. */
static void merge(struct hg_attempt_group *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n; i++) {
        struct hg_attempt_files *f = &g->items[i], *last = n ? &g->items[n - 1] : NULL;

        if (!last || compare(last, f) != 0) {
            g->items[n++] = *f;
            continue;
        }
        last->folder |= f->folder;
        if (f->parts) {
            last->part = f->part;
            last->parts = f->parts;
        }
        free(f->id);
    }
    g->n = n;
}

/* Forget the group, not the list of cells/. */
static void leave(struct hg_attempt_group *g)
{
    struct hg_attempt_group next = {
        .rd = g->rd, .quick = g->quick, .locked = g->locked, .listed = g->listed
    };

    memcpy(&next.places, &g->places, sizeof next.places);
    for (size_t i = 0; i < g->n; i++)
        free(g->items[i].id);
    HG_VEC_DONE(g);
    HG_VEC_DONE(&g->parts);
    if (g->has_pack)
        close(g->pack);
    *g = next;
}

void hg_attempt_group_forget(struct hg_attempt_group *g)
{
    leave(g);
    HG_VEC_DONE(&g->places);
    g->listed = false;
}

static int load(struct hg_attempt_group *g, int batch, size_t number, struct hg_err *err)
{
    char name[HG_GROUP_NAME_MAX], *dir, *pack;
    int rc;

    if (g->batch == batch && g->number == number)
        return 0;
    leave(g);
    if (g->locked && !g->listed && list_places(g, err) < 0)
        return -1;
    hg_attempt_group_name(batch, number * HG_GROUP_LINES, name);
    dir = hg_rundir_path(g->rd, "%s", name);
    pack = hg_rundir_path(g->rd, "%s.tar", name);
    /* the folder first: an attempt that is packed at this moment is seen twice, not never */
    rc = may_be_there(g, batch, number, false) ? list_folder(g, dir, err) : 0;
    if (rc == 0 && may_be_there(g, batch, number, true))
        rc = read_pack(g, pack, err);
    free(dir);
    free(pack);
    if (rc < 0) {
        leave(g);
        return -1;
    }
    if (g->n)
        qsort(g->items, g->n, sizeof *g->items, compare);
    merge(g);
    g->batch = batch;
    g->number = number;
    return 0;
}

int hg_attempt_group_read(struct hg_attempt_group *g, const char *name, struct hg_err *err)
{
    size_t number;
    bool pack;
    int batch;

    if (strncmp(name, "cells/", 6) != 0 ||
        !hg_attempt_group_parse(name + 6, &batch, &number, &pack))
        return hg_err_set(err, HG_E_INPUT, "%s is not a folder of attempts", name);
    return load(g, batch, number, err);
}

void hg_attempt_group_find(const struct hg_attempt_group *g, const char *id,
                           struct hg_attempt_list *list)
{
    size_t first = 0, end = g->n;

    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (strcmp(g->items[middle].id, id) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    *list = (struct hg_attempt_list){ 0 };
    while (first + list->n < g->n && strcmp(g->items[first + list->n].id, id) == 0)
        list->n++;
    list->items = list->n ? g->items + first : NULL;
}

int hg_attempt_list(struct hg_attempt_group *g, int batch, size_t line, const char *id,
                    struct hg_attempt_list *list, struct hg_err *err)
{
    *list = (struct hg_attempt_list){ 0 };
    if (load(g, batch, line / HG_GROUP_LINES, err) < 0)
        return -1;
    hg_attempt_group_find(g, id, list);
    return 0;
}

/* ---- An attempt's files ---- */

int hg_attempt_is_packed(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                         unsigned submission, unsigned restarts, struct hg_err *err)
{
    struct hg_attempt_group g = { .rd = rd };
    char name[HG_GROUP_NAME_MAX], *path;
    struct hg_attempt_files wanted = { .id = (char *)(uintptr_t)id,
                                       .submission = submission,
                                       .restarts = restarts };
    int rc;

    hg_attempt_group_name(batch, line, name);
    path = hg_rundir_path(rd, "%s.tar", name);
    rc = read_pack(&g, path, err);
    for (size_t i = 0; i < g.n && rc == 0; i++)
        rc = compare(&g.items[i], &wanted) == 0;
    hg_attempt_group_forget(&g);
    free(path);
    return rc;
}

static void look_at(struct hg_attempt_files *f, const char *name,
                    void (*each)(void *context, const char *name), void *context)
{
    f->claim |= strcmp(name, HG_CLAIM_FILE) == 0 || strcmp(name, HG_CLAIM_TAKEN) == 0;
    f->result |= strcmp(name, "result.json") == 0;
    if (each)
        each(context, name);
}

/* The name of a packed file in its attempt. */
static const char *part_name(const struct hg_attempt_group *g, size_t part)
{
    return strchr(g->parts.items[part].name, '/') + 1;
}

static int look_in_folder(struct hg_attempt_files *f, const char *dir,
                          void (*each)(void *context, const char *name), void *context,
                          struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", dir);
    while ((each || !(f->claim && f->result)) && (errno = 0, entry = readdir(d)))
        look_at(f, entry->d_name, each, context);
    if (errno)
        rc = hg_err_sys(err, "cannot read folder %s", dir);
    closedir(d);
    return rc;
}

int hg_attempt_look(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                    void (*each)(void *context, const char *name), void *context,
                    struct hg_err *err)
{
    char *dir = f->parts ? NULL : hg_attempt_path(g, f, "");
    int rc;

    f->claim = f->result = false;
    for (size_t i = f->part; i < f->part + f->parts; i++)
        look_at(f, part_name(g, i), each, context);
    rc = dir ? look_in_folder(f, dir, each, context, err) : 0;
    free(dir);
    return rc;
}

static int open_packed(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                       const char *name, struct hg_attempt_file *file, struct hg_err *err)
{
    const struct hg_tar_file *found = NULL;

    for (size_t i = f->part; i < f->part + f->parts;
         i++) /* of two of a name the last one, as tar(1) */
        if (strcmp(part_name(g, i), name) == 0)
            found = &g->parts.items[i];
    if (!found)
        return HG_ATTEMPT_NONE;
    *file = (struct hg_attempt_file){ .fd = fcntl(g->pack, F_DUPFD_CLOEXEC, 3),
                                      .begin = (off_t)found->at,
                                      .end = (off_t)(found->at + found->size) };
    return file->fd < 0 ? hg_err_sys(err, "cannot read %s", found->name) : 0;
}

int hg_attempt_open(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, struct hg_attempt_file *file, struct hg_err *err)
{
    char *path;
    struct stat st;
    int rc = 0;

    if (f->parts)
        return open_packed(g, f, name, file, err);
    path = hg_attempt_path(g, f, name);
    *file =
        (struct hg_attempt_file){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .end = -1 };
    if (file->fd < 0)
        rc = errno == ENOENT || errno == ENOTDIR ? HG_ATTEMPT_NONE
                                                 : hg_err_sys(err, "cannot read %s", path);
    else if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(file->fd);
        rc = hg_err_set(err, HG_E_INPUT, "cannot read %s: it is not a regular file", path);
    }
    free(path);
    return rc;
}

int hg_attempt_read(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, size_t max, struct hg_buf *out, struct hg_err *err)
{
    struct hg_attempt_file file;
    int rc = hg_attempt_open(g, f, name, &file, err);
    char *path;

    if (rc < 0)
        return rc;
    path = hg_attempt_path(g, f, name);
    if (file.end < 0) {
        rc = hg_fs_read_open(file.fd, path, max, out, err);
        free(path);
        return rc;
    }
    if ((size_t)(file.end - file.begin) > max)
        rc = hg_err_set(err, HG_E_INPUT, "%s is larger than %zu bytes", path, max);
    else
        rc = hg_tar_read_part(file.fd, path, (uint64_t)file.begin,
                              (uint64_t)(file.end - file.begin), out, err);
    close(file.fd);
    free(path);
    return rc;
}

void hg_attempt_read_tail(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                          const char *name, size_t max, struct hg_buf *out)
{
    struct hg_attempt_file file;
    off_t end, begin;
    ssize_t n;

    if (hg_attempt_open(g, f, name, &file, NULL) != 0)
        return;
    end = file.end < 0 ? lseek(file.fd, 0, SEEK_END) : file.end;
    begin = end - file.begin > (off_t)max ? end - (off_t)max : file.begin;
    hg_buf_reserve(out, (size_t)(end - begin) + 1);
    n = pread(file.fd, out->data + out->len, (size_t)(end - begin), begin);
    close(file.fd);
    out->len += n > 0 ? (size_t)n : 0;
    out->data[out->len] = '\0';
}

static bool has_folder(const struct hg_attempt_group *g, const struct hg_attempt_files *f)
{
    char *dir = hg_attempt_path(g, f, "");
    bool has = hg_fs_is_dir(dir);

    free(dir);
    return has;
}

int hg_attempt_read_result(const struct hg_attempt_group *g, struct hg_attempt_files *f, size_t max,
                           struct hg_buf *out, struct hg_err *err)
{
    int rc = hg_attempt_read(g, f, "result.json", max, out, err);
    char *claim;

    f->result = rc != HG_ATTEMPT_NONE;
    if (f->result)
        return rc;
    if (g->quick && !f->parts) {
        claim = hg_attempt_path(g, f, "claim.json");
        f->claim = hg_fs_exists(claim);
        free(claim);
        return rc;
    }
    if (hg_attempt_look(g, f, NULL, NULL, err) < 0)
        return -1;
    if (f->result)
        return hg_attempt_read(g, f, "result.json", max, out, err);
    return f->claim || f->parts || has_folder(g, f)
               ? rc
               : hg_err_set(err, HG_E_ENV,
                            "its folder is gone: was it packed just now? Run the command again");
}
