/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/session.h"
#include "run/collect.h"

static bool as_json;
static const char *reports;

static const struct hg_opt opts[] = {
    { HG_OPT_FLAG, 'j', "json", &as_json, NULL, "print the results as JSON", 0, 0 },
    { HG_OPT_STRING, 0, "reports", &reports, "DIR", "where runs are kept (reports)", 0, 0 },
    { 0 },
};

/* Without its journal (a plan that was submitted by hand) a run still has its results. */
static json_t *collect(const struct hg_rundir *rd, struct hg_collect_count *count,
                       struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    struct hg_run_state *state = hg_run_state_load(rd->path, &why);
    json_t *doc;

    if (!state && why.code != HG_E_NOTFOUND)
        hg_warn("%s: %s", rd->path, why.text);
    doc = hg_collect_run(rd, state ? hg_drive_verdict : NULL, state, count, err);
    hg_run_state_free(state);
    return doc;
}

static int save(const struct hg_rundir *rd, const json_t *doc, struct hg_err *err)
{
    char *tables = hg_rundir_path(rd, "tables");
    char *path = hg_rundir_path(rd, "tables/results.json");
    int rc = !tables || !path ? hg_err_oom(err) : hg_fs_mkdirs(tables, 0700, err);

    if (rc == 0)
        rc = hg_json_save(path, doc, err);
    free(tables);
    free(path);
    return rc;
}

/* Files that do not count, with the reason, on stderr. */
static void print_invalid(const json_t *doc)
{
    size_t i;
    json_t *entry;

    json_array_foreach(json_object_get(doc, "results"), i, entry) {
        const char *status = json_string_value(json_object_get(entry, "status"));
        const json_t *error = json_object_get(entry, "error");

        if (strcmp(status, "invalid") == 0)
            fprintf(stderr, "hpcgrid: warning: %s\n",
                    json_string_value(json_object_get(error, "message")));
    }
}

static void print_counts(const struct hg_rundir *rd, const struct hg_collect_count *n)
{
    if (rd->number)
        printf("%s/%03d", rd->name, rd->number);
    else
        printf("%s", rd->path);
    printf(": %zu of %zu %s a good result", n->ok, n->cells,
           n->cells == 1 ? "cell has" : "cells have");
    if (n->failed)
        printf(", %zu failed", n->failed);
    if (n->open)
        printf(", %zu not ended", n->open);
    putchar('\n');
    if (n->invalid)
        printf("%zu result file%s not count\n", n->invalid, n->invalid == 1 ? " does" : "s do");
    printf("saved in %s/tables/results.json\n", rd->path);
}

static void print_json(const json_t *doc)
{
    struct hg_buf out = HG_BUF_INIT;

    hg_json_dump(doc, HG_JSON_INDENT, &out);
    puts(hg_buf_str(&out));
    hg_buf_done(&out);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_collect_count count;
    struct hg_rundir rd = { 0 };
    json_t *doc = NULL;
    int rc = -1;

    (void)argc;
    if (hg_rundir_find(hg_cmd_reports(reports), argv[0], &rd, &err) < 0)
        goto out;
    doc = collect(&rd, &count, &err);
    if (!doc || save(&rd, doc, &err) < 0)
        goto out;
    print_invalid(doc);
    if (as_json)
        print_json(doc);
    else
        print_counts(&rd, &count);
    rc = count.ok == count.cells ? 0 : 1;
out:
    hg_errs_add(errs, &err);
    json_decref(doc);
    hg_rundir_done(&rd);
    return rc;
}

const struct hg_cmd hg_cmd_collect = {
    .name = "collect",
    .args = "RUN",
    .summary = "Read a run's results back and save them as one file.",
    .details = "RUN is a run's folder, NAME, NAME/002 or a matrix file. Results that are cut\n"
               "short, changed or of another run are reported and never counted. Exit code 1:\n"
               "some cells have no good result.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
