/* SPDX-License-Identifier: Apache-2.0 */
#include "node/save.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/seal.h"
#include "rundir/claim.h"

/* Memory that is set aside for the last result, in bytes: so many copies of its text, and some for paths and errors. */
#define RESERVE_COPIES 8
#define RESERVE_MORE ((size_t)32 << 10)

static const struct hg_outcome *at_end; /* of the attempt that has no final result yet */

size_t hg_save_reserve(const json_t *cell)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t len;

    hg_json_dump(cell, HG_JSON_INDENT, &text);
    len = 2 * text.len + HG_OUTCOME_LEAST; /* it is indented more in a result */
    hg_buf_done(&text);
    return len;
}

/* ---- The least result ---- */

/* Write it as a file of its own; when the disk is full or the quota is reached, over the claim. */
static json_t *save_least(const struct hg_outcome *o, const char *reason, int *rc)
{
    json_t *least = hg_outcome_least(o, reason);
    char *path = hg_fs_join(o->dir, "result.json");
    struct hg_buf text = HG_BUF_INIT;

    hg_seal_dump(least, HG_JSON_INDENT, &text);
    *rc = hg_fs_replace(path, text.data, text.len, 0600, NULL);
    if (*rc < 0)
        *rc = hg_claim_use(o->dir, text.data, text.len, "result.json", NULL);
    hg_buf_done(&text);
    free(path);
    return least;
}

static void save_out_of_memory(void)
{
    struct hg_outcome o;
    int rc;

    if (!at_end || !at_end->dir)
        return;
    o = *at_end;
    if (!o.ended) {
        o.end_s = hg_clock_wall_s();
        o.wall_s = o.end_s - o.start_s;
    }
    save_least(&o, "out of memory", &rc);
}

void hg_save_at_end(const struct hg_outcome *o)
{
    at_end = o;
    hg_alloc_at_end(save_out_of_memory,
                    RESERVE_COPIES * hg_save_reserve(json_object_get(o->line, "cell")) +
                        RESERVE_MORE);
}

void hg_save_not_at_end(void)
{
    at_end = NULL;
}

/* ---- The result ---- */

static int save(const struct hg_outcome *o, json_t **result, struct hg_err *err)
{
    char *path = hg_fs_join(o->dir, "result.json");
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    *result = hg_outcome_result(o);
    hg_seal_dump(*result, HG_JSON_INDENT, &text);
    rc = hg_fs_replace(path, text.data, text.len, 0600, err);
    hg_buf_done(&text);
    free(path);
    return rc;
}

void hg_save_early(const struct hg_outcome *o)
{
    json_t *result;

    save(o, &result, NULL);
    json_decref(result);
}

static void remove_file(const char *dir, const char *name, bool only_empty)
{
    char *path = hg_fs_join(dir, name);
    struct stat st;

    if (!only_empty || (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0))
        unlink(path);
    free(path);
}

/* The result is on the disk, and has the content of these files. A workload's result that does not count stays. */
static void tidy(const char *dir, const json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    const json_t *rank;
    char name[40];
    size_t i;

    json_array_foreach(json_object_get(result, "ranks"), i, rank) {
        snprintf(name, sizeof name, "rank.%lld.json",
                 (long long)json_integer_value(json_object_get(rank, "rank")));
        remove_file(dir, name, false);
    }
    if (status && strcmp(status, "ok") == 0)
        remove_file(dir, "workload.json", false);
    remove_file(dir, "out.log", true);
    remove_file(dir, "err.log", true);
}

int hg_save_final(const struct hg_outcome *o, json_t **result, struct hg_err *err)
{
    int rc = save(o, result, err), least_rc;

    if (rc < 0) {
        struct hg_err why = o->problem ? *o->problem : *err;

        hg_err_wrap(&why, o->problem ? "not started" : "the result is lost");
        json_decref(*result);
        *result = save_least(o, why.text, &least_rc);
        if (least_rc == 0)
            hg_err_wrap(err, "only an error is in its result");
    }
    hg_save_not_at_end();
    if (rc == 0)
        tidy(o->dir, *result);
    return rc;
}
