/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "rundir/fold.h"

#define JOURNAL_MAX ((size_t)1 << 30)
#define CRC_PART (sizeof ",\"crc\":\"00000000\"}" - 1)

/* ---- One line ---- */

/* What ends a line of this JSON, which is without its closing brace. */
static void print_end(const char *line, size_t len, char out[static CRC_PART + 1])
{
    snprintf(out, CRC_PART + 1, ",\"crc\":\"%08" PRIx32 "\"}", hg_crc32c(0, line, len));
}

void hg_run_line_write(const json_t *record, struct hg_buf *out)
{
    size_t begin = out->len;
    char end[CRC_PART + 1];

    hg_json_dump(record, HG_JSON_COMPACT, out);
    out->len--; /* the closing brace goes behind the checksum */
    print_end(out->data + begin, out->len - begin, end);
    hg_buf_puts(out, end);
    hg_buf_puts(out, "\n");
}

/* A line's JSON if its checksum is right, else NULL. */
static json_t *decode_line(const char *line, size_t len)
{
    char end[CRC_PART + 1];

    if (len <= CRC_PART)
        return NULL;
    print_end(line, len - CRC_PART, end);
    return memcmp(line + len - CRC_PART, end, CRC_PART) == 0 ? json_loadb(line, len, 0, NULL)
                                                             : NULL;
}

bool hg_run_line_is_whole(const char *line, size_t len)
{
    json_t *record = decode_line(line, len);

    json_decref(record);
    return record != NULL;
}

/* ---- All of them ---- */

static int line_error(const char *path, size_t line, struct hg_err *err)
{
    hg_err_at(err, path, NULL);
    if (err) {
        err->line = (int)line;
        err->column = 1;
    }
    return -1;
}

static int damaged(const char *path, size_t line, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT, "the line is damaged: its checksum does not match");
    return line_error(path, line, err);
}

/* A write that was cut short leaves the front of a line. A whole line and something else that is
 * no newline is damage. */
static bool is_torn(const char *tail, size_t len)
{
    bool whole = len > 1 && hg_run_line_is_whole(tail, len - 1);

    return !whole && (!len || tail[0] == '{');
}

int hg_run_state_fold(struct hg_run_state *state, const char *path, const char *text, size_t len,
                      size_t *used, struct hg_err *err)
{
    size_t line = 0;

    *used = 0;
    while (*used < len) {
        const char *start = text + *used;
        const char *end = memchr(start, '\n', len - *used);
        json_t *record;
        int rc;

        line++;
        if (!end) {
            state->torn = is_torn(start, len - *used);
            return state->torn ? 0 : damaged(path, line, err);
        }
        record = decode_line(start, (size_t)(end - start));
        if (!record)
            return damaged(path, line, err);
        rc = hg_run_state_next(state, record, err);
        json_decref(record);
        if (rc < 0)
            return line_error(path, line, err);
        *used += (size_t)(end - start) + 1;
    }
    return 0;
}

int hg_run_state_read(struct hg_run_state *state, const char *path, size_t *used,
                      struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc = hg_fs_read(path, JOURNAL_MAX, &text, err);

    *used = 0;
    if (rc == 0)
        rc = hg_run_state_fold(state, path, hg_buf_str(&text), text.len, used, err);
    hg_buf_done(&text);
    return rc;
}

struct hg_run_state *hg_run_state_load(const char *run_dir, struct hg_err *err)
{
    char *path = hg_fs_join(run_dir, "events.jsonl");
    struct hg_run_state *state = hg_run_state_create();
    size_t used;
    int rc;

    if (hg_fs_exists(path))
        rc = hg_run_state_read(state, path, &used, err);
    else
        rc = hg_err_set(err, HG_E_NOTFOUND, "nothing was submitted in %s yet", run_dir);
    free(path);
    if (rc == 0)
        return state;
    hg_run_state_free(state);
    return NULL;
}
