/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/results.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/log.h"
#include "cmd/options.h"
#include "drive/overlay.h"
#include "rundir/collect.h"
#include "drive/drive.h"
#include "rundir/events.h"
#include "rundir/rundir.h"

struct adding {
    struct hg_results *set;
    struct hg_errs *errs;
};

static int add_entry(void *context, json_t *entry, char *file, struct hg_err *err)
{
    struct adding *a = context;

    (void)err; /* errs has it */
    hg_results_add(a->set, entry, file, a->errs);
    return 0;
}

int hg_cmd_run_results(const struct hg_rundir *rd, const struct hg_run_state *state,
                       struct hg_results *set, struct hg_errs *errs)
{
    union {
        const struct hg_run_state *in;
        void *out; /* hg_drive_verdict only reads it */
    } context = { .in = state };
    struct adding adding = { set, errs };
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = -1;

    doc.root = hg_collect_head(rd, &err);
    doc.file = hg_strdup(rd->path);
    if (doc.root && hg_results_begin(&doc, HG_RESULTS_TOLERANT, set, errs) == 0 &&
        hg_collect_each(rd, state ? hg_drive_verdict : NULL, context.out, add_entry, &adding, false,
                        NULL, &err) == 0)
        rc = hg_results_end(set, errs);
    hg_json_doc_done(&doc);
    return hg_errs_add(errs, &err) < 0 ? -1 : rc;
}

/* A run's results, collected from its folder. */
static int read_run(const char *word, const char *reports, struct hg_results *set, char **tables,
                    struct hg_errs *errs)
{
    struct hg_rundir rd = { 0 };
    struct hg_err err = HG_ERR_INIT, why = HG_ERR_INIT;
    struct hg_run_state *state = NULL;
    int rc;

    if (hg_rundir_find(hg_options_reports(reports), word, &rd, &err) < 0)
        return hg_errs_add(errs, &err);
    /* Without its journal a run still has its results; only what became of the rest is not known. */
    state = hg_run_state_load(rd.path, &why);
    if (!state && why.code != HG_E_NOTFOUND)
        hg_warn("%s: %s", rd.path, why.text);
    rc = hg_cmd_run_results(&rd, state, set, errs);
    hg_run_state_free(state);
    if (tables)
        *tables = hg_rundir_path(&rd, "tables");
    hg_rundir_done(&rd);
    return rc;
}

static bool is_matrix(const json_t *root)
{
    return json_object_get(root, "hpcgrid") && !json_object_get(root, "schema");
}

int hg_cmd_results(const char *word, const char *reports, struct hg_results *set, char **tables,
                   struct hg_errs *errs)
{
    struct hg_errs found = HG_ERRS_INIT;
    int rc;

    if (strcmp(word, "-") != 0 && (!hg_fs_exists(word) || hg_fs_is_dir(word)))
        return read_run(word, reports, set, tables, errs);
    rc = hg_results_load(word, set, &found);
    if (rc < 0 && is_matrix(set->doc.root)) {
        hg_results_done(set);
        rc = read_run(word, reports, set, tables, errs);
    } else {
        hg_errs_append(errs, &found);
    }
    hg_errs_done(&found);
    return rc;
}
