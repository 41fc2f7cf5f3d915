/* SPDX-License-Identifier: Apache-2.0 */
#include "run/attempts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/vec.h"
#include "run/attempt.h"
#include "run/claim.h"

/* ---- Names ---- */

void hg_attempt_group_name(int batch, size_t line, char out[static HG_GROUP_NAME_MAX])
{
    snprintf(out, HG_GROUP_NAME_MAX, "cells/%d-%03zu", batch, line / HG_GROUP_LINES);
}

bool hg_attempt_group_parse(const char *name, int *batch, size_t *number)
{
    char again[HG_GROUP_NAME_MAX];

    if (sscanf(name, "%9d-%9zu", batch, number) != 2 || *batch < 1)
        return false;
    hg_attempt_group_name(*batch, *number * HG_GROUP_LINES, again);
    return strcmp(name, again + strlen("cells/")) == 0;
}

bool hg_attempt_name_parse(const char *name, size_t *id_len, unsigned *submission,
                           unsigned *restarts)
{
    const char *last = strrchr(name, '.'), *at = last;
    char id[128];

    while (at > name && *--at != '.')
        ;
    if (!last || at <= name || (size_t)(at - name) >= sizeof id ||
        !hg_attempt_parse(at + 1, submission, restarts))
        return false;
    *id_len = (size_t)(at - name);
    memcpy(id, name, *id_len);
    id[*id_len] = '\0';
    return hg_attempt_is_file_name(id);
}

static char *path_of(const struct hg_rundir *rd, const char *group, const char *id,
                     unsigned submission, unsigned restarts, const char *file)
{
    char name[HG_ATTEMPT_NAME_MAX];

    hg_attempt_name(submission, restarts, name);
    return hg_rundir_path(rd, "%s/%s.%s%s%s", group, id, name, *file ? "/" : "", file);
}

char *hg_attempt_dir(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                     unsigned submission, unsigned restarts)
{
    char group[HG_GROUP_NAME_MAX];

    hg_attempt_group_name(batch, line, group);
    return path_of(rd, group, id, submission, restarts, "");
}

char *hg_attempt_path(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                      const char *name)
{
    char group[HG_GROUP_NAME_MAX];

    hg_attempt_group_name(g->batch, g->number * HG_GROUP_LINES, group);
    return path_of(g->rd, group, f->id, f->submission, f->restarts, name);
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

static int add(struct hg_attempt_group *g, const char *name, struct hg_err *err)
{
    struct hg_attempt_files f = { 0 }, *slot;
    size_t id_len;

    if (!hg_attempt_name_parse(name, &id_len, &f.submission, &f.restarts))
        return 0;
    f.id = strndup(name, id_len);
    slot = f.id ? HG_VEC_PUSH(g) : NULL;
    if (slot)
        *slot = f;
    else
        free(f.id);
    return slot ? 0 : hg_err_oom(err);
}

static int list_folder(struct hg_attempt_group *g, const char *dir, struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return errno == ENOENT ? 0 : hg_err_sys(err, "cannot read folder %s", dir);
    while (rc == 0 && (entry = readdir(d)))
        rc = add(g, entry->d_name, err);
    closedir(d);
    return rc;
}

void hg_attempt_group_forget(struct hg_attempt_group *g)
{
    for (size_t i = 0; i < g->n; i++)
        free(g->items[i].id);
    HG_VEC_DONE(g);
    g->batch = 0;
}

static int load(struct hg_attempt_group *g, int batch, size_t number, struct hg_err *err)
{
    char name[HG_GROUP_NAME_MAX], *dir;
    int rc;

    if (g->batch == batch && g->number == number)
        return 0;
    hg_attempt_group_forget(g);
    hg_attempt_group_name(batch, number * HG_GROUP_LINES, name);
    dir = hg_rundir_path(g->rd, "%s", name);
    rc = dir ? list_folder(g, dir, err) : hg_err_oom(err);
    free(dir);
    if (rc < 0) {
        hg_attempt_group_forget(g);
        return -1;
    }
    if (g->n)
        qsort(g->items, g->n, sizeof *g->items, compare);
    g->batch = batch;
    g->number = number;
    return 0;
}

int hg_attempt_group_read(struct hg_attempt_group *g, const char *name, struct hg_err *err)
{
    const char *folder = strncmp(name, "cells/", 6) == 0 ? name + 6 : name;
    size_t number;
    int batch;

    if (!hg_attempt_group_parse(folder, &batch, &number))
        return hg_err_set(err, HG_E_INPUT, "%s is no folder of attempts", name);
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

void hg_attempt_look(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                     void (*each)(void *context, const char *name), void *context)
{
    char *dir = hg_attempt_path(g, f, "");
    DIR *d = dir ? opendir(dir) : NULL;
    struct dirent *entry;

    f->claim = f->result = false;
    while (d && (each || !(f->claim && f->result)) && (entry = readdir(d))) {
        f->claim |=
            strcmp(entry->d_name, HG_CLAIM_FILE) == 0 || strcmp(entry->d_name, HG_CLAIM_TAKEN) == 0;
        f->result |= strcmp(entry->d_name, "result.json") == 0;
        if (each)
            each(context, entry->d_name);
    }
    if (d)
        closedir(d);
    free(dir);
}

int hg_attempt_open(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, struct hg_err *err)
{
    char *path = hg_attempt_path(g, f, name);
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : hg_err_oom(err);
    struct stat st;

    if (path && fd < 0)
        fd = errno == ENOENT || errno == ENOTDIR ? HG_ATTEMPT_NONE
                                                 : hg_err_sys(err, "cannot read %s", path);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = hg_err_set(err, HG_E_INPUT, "cannot read %s: it is no regular file", path);
    }
    free(path);
    return fd;
}

int hg_attempt_read(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, size_t max, struct hg_buf *out, struct hg_err *err)
{
    int fd = hg_attempt_open(g, f, name, err), rc;
    char *path = fd >= 0 ? hg_attempt_path(g, f, name) : NULL;

    if (fd < 0)
        return fd;
    rc = hg_fs_read_open(fd, path ? path : name, max, out, err);
    free(path);
    return rc;
}

int hg_attempt_read_result(const struct hg_attempt_group *g, struct hg_attempt_files *f, size_t max,
                           struct hg_buf *out, struct hg_err *err)
{
    int rc = hg_attempt_read(g, f, "result.json", max, out, err);
    char *claim;

    f->result = rc != HG_ATTEMPT_NONE;
    if (f->result)
        return rc;
    if (g->quick) {
        claim = hg_attempt_path(g, f, "claim.json");
        f->claim = claim && hg_fs_exists(claim);
        free(claim);
        return rc;
    }
    hg_attempt_look(g, f, NULL, NULL);
    return f->result ? hg_attempt_read(g, f, "result.json", max, out, err) : rc;
}
