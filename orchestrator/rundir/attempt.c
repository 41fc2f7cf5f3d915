/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/attempt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"

void hg_attempt_name(unsigned submission, unsigned restarts, char out[static HG_ATTEMPT_NAME_MAX])
{
    snprintf(out, HG_ATTEMPT_NAME_MAX, "%u.%u", submission, restarts);
}

bool hg_attempt_parse(const char *name, unsigned *submission, unsigned *restarts)
{
    char again[HG_ATTEMPT_NAME_MAX];

    if (sscanf(name, "%9u.%9u", submission, restarts) != 2)
        return false;
    hg_attempt_name(*submission, *restarts, again);
    return strcmp(name, again) == 0;
}

bool hg_attempt_is_file_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    return n >= 1 && n < 128 && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

void hg_attempt_group_name(int batch, size_t line, char out[static HG_GROUP_NAME_MAX])
{
    snprintf(out, HG_GROUP_NAME_MAX, "cells/%d-%03zu", batch, line / HG_GROUP_LINES);
}

bool hg_attempt_group_parse(const char *name, int *batch, size_t *number, bool *pack)
{
    char again[HG_GROUP_NAME_MAX];
    const char *tail;

    if (sscanf(name, "%9d-%9zu", batch, number) != 2 || *batch < 1)
        return false;
    hg_attempt_group_name(*batch, *number * HG_GROUP_LINES, again);
    tail = strncmp(name, again + 6, strlen(again + 6)) == 0 ? name + strlen(again + 6) : "?";
    *pack = strcmp(tail, ".tar") == 0;
    return *pack || !*tail;
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

char *hg_attempt_dir(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                     unsigned submission, unsigned restarts)
{
    char group[HG_GROUP_NAME_MAX];

    hg_attempt_group_name(batch, line, group);
    return hg_rundir_path(rd, "%s/%s.%u.%u", group, id, submission, restarts);
}

int hg_attempt_write(const char *path, const struct hg_buf *text, struct hg_err *err)
{
    char *part = hg_str_printf("%s.part", path);
    int fd, rc = 0;

    unlink(part); /* of a launcher's second try */
    fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || hg_fs_write_all(fd, text->data, text->len) < 0 || rename(part, path) < 0) {
        rc = hg_err_sys(err, "cannot write %s", path);
        unlink(part);
    }
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = hg_err_sys(err, "cannot write %s", path);
    free(part);
    return rc;
}

int hg_attempt_write_json(const char *path, const json_t *value, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    hg_json_dump(value, HG_JSON_INDENT, &text);
    hg_buf_puts(&text, "\n");
    rc = hg_attempt_write(path, &text, err);
    hg_buf_done(&text);
    return rc;
}
