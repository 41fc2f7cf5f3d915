/* SPDX-License-Identifier: Apache-2.0 */
#include "report/save.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

static int save_one(const struct hg_report *r, const struct hg_renderer *renderer, const char *dir,
                    const char *name, struct hg_err *err)
{
    const struct hg_render_options options = { .width = 0 };
    struct hg_buf text = HG_BUF_INIT;
    char *path = hg_fs_join(dir, name);
    int rc;

    renderer->render(r, &options, &text);
    rc = text.failed || !path ? hg_err_oom(err)
                              : hg_fs_replace(path, text.data, text.len, 0644, err);
    free(path);
    hg_buf_done(&text);
    return rc;
}

int hg_report_save(const struct hg_report *r, const char *dir, struct hg_err *err)
{
    if (hg_fs_mkdirs(dir, 0755, err) < 0 ||
        save_one(r, &hg_renderer_text, dir, "report.txt", err) < 0 ||
        save_one(r, &hg_renderer_md, dir, "report.md", err) < 0 ||
        save_one(r, &hg_renderer_csv, dir, "results.csv", err) < 0 ||
        save_one(r, &hg_renderer_json, dir, "report.json", err) < 0)
        return hg_err_wrap(err, "cannot save the tables");
    return 0;
}

int hg_report_run(json_t *collected, const char *tables, size_t width, struct hg_buf *out,
                  bool *complete, struct hg_errs *errs)
{
    struct hg_json_doc doc = { .root = collected };
    struct hg_results set = HG_RESULTS_INIT;
    const struct hg_render_options options = { .width = width };
    struct hg_report *r = NULL;
    struct hg_err err = HG_ERR_INIT;
    int rc = -1;

    if (hg_results_decode(&doc, HG_RESULTS_TOLERANT, &set, errs) < 0 ||
        !(r = hg_report_build(&set, 1, NULL, errs)))
        goto out;
    hg_renderer_text.render(r, &options, out);
    *complete = hg_report_is_complete(r);
    if (out->failed)
        hg_err_oom(&err);
    else
        hg_report_save(r, tables, &err);
    rc = hg_errs_add(errs, &err);
out:
    hg_report_free(r);
    hg_results_done(&set);
    return rc;
}
