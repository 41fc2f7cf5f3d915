/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"

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

int hg_attempt_create(const char *path, const struct hg_buf *text, bool durable)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? -1 : 0;

    if (rc == 0 && (hg_fs_write_all(fd, text->data, text->len) < 0 || (durable && fsync(fd) < 0)))
        rc = -1;
    if (fd >= 0 && close(fd) < 0)
        rc = -1;
    return rc;
}

int hg_attempt_write(const char *path, const struct hg_buf *text, struct hg_err *err)
{
    char *part = hg_str_printf("%s.part", path);
    int rc = 0;

    unlink(part); /* of a launcher's second try */
    if (hg_attempt_create(part, text, false) < 0 || rename(part, path) < 0) {
        rc = hg_err_sys(err, "cannot write %s", path);
        unlink(part);
    }
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
