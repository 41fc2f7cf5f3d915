/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "matrix/compile.h"
#include "matrix/placeholders.h"
#include "matrix/report.h"

static char *folder_of(const char *path, struct hg_err *err)
{
    char *absolute = hg_fs_absolute(strcmp(path, "-") == 0 ? "./-" : path, err);
    char *dir = absolute ? hg_fs_dirname(absolute) : NULL;

    free(absolute);
    return dir;
}

static void decode(struct hg_matrix *m, const char *site, struct hg_errs *errs)
{
    m->repeats = 1;
    hg_json_decode(&m->doc, m->doc.root, "", hg_matrix_fields, true, m, errs);
    m->has_shuffle = json_object_get(m->doc.root, "shuffle") != NULL;
    m->site = site ? hg_site_find(site, errs)
                   : hg_site_from_value(&m->doc, m->site_json, "/site", m->dir, errs);
    if (m->workload_json)
        hg_workload_decode(&m->doc, m->workload_json, &m->workload, errs);
    /* Cells, report and placeholders are judged even when a member elsewhere is wrong: all problems
     * are reported. */
    if (m->site && (m->workload.program || m->workload.words)) {
        m->grid = hg_grid_compile(m, errs);
        hg_report_check(m, errs);
        hg_placeholders_check(m, errs);
    }
}

struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_matrix *m = hg_alloc_zeroed(1, sizeof *m);
    struct hg_err err = HG_ERR_INIT;

    m->dir = folder_of(path, &err);
    if (m->dir && hg_json_load(path, &m->doc, &err) == 0)
        decode(m, site, errs);
    hg_errs_add(errs, &err);
    if (errs->n + errs->dropped == before)
        return m;
    hg_matrix_free(m);
    return NULL;
}

void hg_matrix_free(struct hg_matrix *m)
{
    if (!m)
        return;
    hg_grid_free(m->grid);
    hg_site_free(m->site);
    hg_workload_done(&m->workload);
    hg_json_release(hg_matrix_fields, m);
    free(m->dir);
    hg_json_doc_done(&m->doc);
    free(m);
}
