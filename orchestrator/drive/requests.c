/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of users to a run whose lock another process may hold. */
#include "drive/requests.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "drive/again.h"
#include "drive/news.h"
#include "plan/template.h"
#include "rundir/events.h"

/* A request is "cancel.<time>.<nonce>.json" (or hold, release, retry) in the run's folder: {"lines": {"<batch>": "0-9,12"}},
 * without lines the whole run and what it will get. They count in the order of their times. */
static const char *const kinds[] = { [HG_REQUEST_CANCEL] = "cancel",
                                     [HG_REQUEST_HOLD] = "hold",
                                     [HG_REQUEST_RELEASE] = "release",
                                     [HG_REQUEST_RETRY] = "retry" };
#define N_KINDS (sizeof kinds / sizeof *kinds)

/* The kind of a file's name; NULL if it is not a request. */
static const char *kind_of(const char *name)
{
    size_t n = strlen(name);

    for (size_t k = 0; k < N_KINDS && n > 5 && strcmp(name + n - 5, ".json") == 0; k++) {
        size_t len = strlen(kinds[k]);

        if (strncmp(name, kinds[k], len) == 0 && name[len] == '.' && n > len + 6)
            return kinds[k];
    }
    return NULL;
}

static int by_time(const void *pa, const void *pb)
{
    const char *a = *(char *const *)pa, *b = *(char *const *)pb;

    return strcmp(strchr(a, '.'), strchr(b, '.'));
}

/* The lines of each batch that picks says, as an object. */
static json_t *pick_lines(const struct hg_run_state *state,
                          bool (*picks)(void *context, int batch, uint32_t line), void *context)
{
    json_t *lines = json_object();

    for (size_t b = 0; b < state->batches.n; b++) {
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf text = HG_BUF_INIT;
        char name[24];

        for (size_t i = 0; i < state->batches.items[b].n; i++)
            if (!picks || picks(context, (int)b + 1, (uint32_t)i))
                hg_ranges_add(&set, (uint32_t)i);
        hg_ranges_format(&set, &text);
        snprintf(name, sizeof name, "%zu", b + 1);
        if (text.len)
            json_object_set_new(lines, name, json_string(hg_buf_str(&text)));
        hg_ranges_done(&set);
        hg_buf_done(&text);
    }
    return lines;
}

int hg_drive_request(const struct hg_rundir *rd, enum hg_request what,
                     const struct hg_run_state *state,
                     bool (*picks)(void *context, int batch, uint32_t line), void *context,
                     struct hg_err *err)
{
    bool whole = !picks && (what == HG_REQUEST_HOLD || what == HG_REQUEST_RELEASE);
    json_t *request = json_object();
    char nonce[17], *path;
    int rc;

    hg_text_random_hex(8, nonce);
    path = hg_rundir_path(rd, "%s.%020.0f.%s.json", kinds[what], hg_clock_wall_s() * 1e6, nonce);
    if (!whole)
        json_object_set_new(request, "lines", pick_lines(state, picks, context));
    rc = hg_json_save(path, request, err);
    json_decref(request);
    free(path);
    return rc;
}

/* Names of the requests in the folder, oldest first. */
static int list_requests(const char *run_dir, struct hg_words *names, struct hg_err *err)
{
    DIR *dir = opendir(run_dir);
    struct dirent *entry;

    if (!dir && errno == ENOENT)
        return hg_err_set(err, HG_E_ENV, "%s is not there any more: was it moved?", run_dir);
    if (!dir)
        return hg_err_sys(err, "cannot read %s", run_dir);
    while ((entry = readdir(dir)))
        if (kind_of(entry->d_name))
            hg_words_push(names, entry->d_name);
    closedir(dir);
    if (names->n)
        qsort(names->items, names->n, sizeof *names->items, by_time);
    return 0;
}

/* Where the records of requests go: to a driver's journal, or (d NULL) only to the state. */
struct target {
    struct hg_drive *d;
    struct hg_run_state *state;
};

/* The reference is taken. */
static int put_record(const struct target *t, const char *kind, json_t *members, struct hg_err *err)
{
    return t->d ? hg_drive_record(t->d, kind, members, err)
                : hg_run_state_apply(t->state, kind, members, err);
}

/* Does the run have these cells? A record of other cells would make its journal invalid. */
static bool is_of_run(const struct hg_run_state *state, int batch, const char *lines)
{
    struct hg_ranges set = HG_RANGES_INIT;
    bool fits =
        batch >= 1 && (size_t)batch <= state->batches.n && state->batches.items[batch - 1].n &&
        hg_ranges_parse(lines, (uint32_t)state->batches.items[batch - 1].n - 1, &set, NULL) == 0;

    hg_ranges_done(&set);
    return fits;
}

/* Cells of a batch that failed. */
struct failed {
    const struct hg_run_state *state;
    struct hg_ranges lines;
    int batch;
};

static bool is_failed(void *context, int batch, uint32_t line)
{
    const struct failed *f = context;

    return batch == f->batch && hg_ranges_has(&f->lines, line) &&
           hg_cell_is_bad(hg_run_cell_find(f->state, batch, line));
}

/* Only a driver lets cells run again: they may have been started by now. */
static int put_retry(const struct target *t, int batch, const char *lines, struct hg_err *err)
{
    struct failed f = { .batch = batch };
    int rc = 0;

    if (!t->d)
        return 0;
    f.state = t->d->state;
    if (hg_ranges_parse(lines, UINT32_MAX - 1, &f.lines, err) < 0 ||
        hg_drive_again(t->d, UINT32_MAX, is_failed, &f, err) < 0)
        rc = -1;
    hg_ranges_done(&f.lines);
    return rc;
}

static int put_lines(const struct target *t, const char *kind, int batch, const char *lines,
                     struct hg_err *err)
{
    return strcmp(kind, kinds[HG_REQUEST_RETRY]) == 0
               ? put_retry(t, batch, lines, err)
               : put_record(t, kind, json_pack("{s:i,s:s}", "batch", batch, "lines", lines), err);
}

static int each_record(const struct target *t, const char *kind, const json_t *request,
                       struct hg_err *err)
{
    const struct hg_run_state *state = t->d ? t->d->state : t->state;
    json_t *all = json_object_get(request, "lines"), *lines;
    const char *batch;

    if (!all &&
        (strcmp(kind, kinds[HG_REQUEST_HOLD]) == 0 || strcmp(kind, kinds[HG_REQUEST_RELEASE]) == 0))
        return put_record(t, kind, json_object(), err);
    json_object_foreach(all, batch, lines) {
        const char *text = json_string_value(lines);

        if (!text || !is_of_run(state, atoi(batch), text))
            hg_warn(
                "ignored a request to %s cells %.40s of batch %.20s: the run does not have them",
                kind, text ? text : "", batch);
        else if (put_lines(t, kind, atoi(batch), text, err) < 0)
            return -1;
    }
    return 0;
}

/* Put the records of every request, in order. A request that cannot be read is ignored. Those that are in the journal are
 * removed. */
static int each_request(const char *run_dir, const struct target *t, struct hg_err *err)
{
    struct hg_words names = HG_WORDS_INIT;
    int rc = list_requests(run_dir, &names, err);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *path = hg_fs_join(run_dir, names.items[i]);
        struct hg_json_doc doc = HG_JSON_DOC_INIT;
        struct hg_err why = HG_ERR_INIT;

        if (hg_json_load(path, &doc, &why) < 0 || !json_is_object(doc.root))
            hg_warn("%s: %s", path, *why.text ? why.text : "not a JSON object");
        else
            rc = each_record(t, kind_of(names.items[i]), doc.root, err);
        if (t->d && rc == 0)
            unlink(path);
        hg_json_doc_done(&doc);
        free(path);
    }
    hg_words_done(&names);
    return rc;
}

int hg_drive_read_requests(struct hg_drive *d, struct hg_err *err)
{
    return each_request(d->rd.path, &(struct target){ .d = d }, err);
}

int hg_drive_fold_requests(const char *run_dir, struct hg_run_state *state, struct hg_err *err)
{
    return each_request(run_dir, &(struct target){ .state = state }, err);
}
