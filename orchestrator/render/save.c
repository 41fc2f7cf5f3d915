/* SPDX-License-Identifier: Apache-2.0 */
#include "render/save.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "analysis/build.h"
#include "render/many.h"
#include "render/renderers.h"

static int save_one(const struct hg_report *r, const struct hg_renderer *form, const char *dir,
                    const struct hg_page *page, struct hg_err *err)
{
    const struct hg_render_options options = { .page = page };
    struct hg_buf text = HG_BUF_INIT;
    char *path = hg_fs_join(dir, form->file);
    int rc;

    form->render(r, &options, &text);
    rc = hg_fs_replace(path, text.data, text.len, 0600, err);
    free(path);
    hg_buf_done(&text);
    return rc;
}

/* The folder lies in the run's own. */
static void make_page(const struct hg_report *r, const char *dir, struct hg_page *page)
{
    char *run = hg_fs_dirname(dir), *out = hg_fs_join(dir, "report.html");
    struct hg_buf command = HG_BUF_INIT;

    hg_page_init(page, r->n_sets);
    hg_buf_puts(&command, "hpcgrid report --format html ");
    hg_text_quote_if_needed(r->labels[0], &command);
    page->command = hg_buf_detach(&command);
    hg_page_set_run(page, 0, run, out);
    free(run);
    free(out);
}

int hg_report_save(const struct hg_report *r, const char *dir, struct hg_err *err)
{
    struct hg_page page;
    int rc = hg_fs_mkdirs(dir, 0700, err);

    make_page(r, dir, &page);
    for (size_t i = 0; hg_renderers[i] && rc == 0; i++)
        if (hg_renderers[i]->file)
            rc = save_one(r, hg_renderers[i], dir, &page, err);
    hg_page_done(&page);
    return rc < 0 ? hg_err_wrap(err, "cannot save the tables") : 0;
}

static size_t count_lines(const struct hg_buf *text)
{
    size_t n = 0;

    for (const char *p = hg_buf_str(text); (p = strchr(p, '\n')); p++)
        n++;
    return n;
}

int hg_report_run(const struct hg_results *set, const char *run, size_t width, struct hg_buf *out,
                  bool *complete, struct hg_errs *errs)
{
    const struct hg_render_options options = { .width = width, .screen = true };
    struct hg_report *r = hg_report_build(set, 1, NULL, errs);
    char *tables = hg_fs_join(run, "tables");
    struct hg_err err = HG_ERR_INIT;

    if (r) {
        hg_renderer_text.render(r, &options, out);
        *complete = hg_report_is_complete(r);
    }
    if (count_lines(out) > HG_REPORT_LINES_MAX) {
        hg_buf_clear(out);
        hg_report_summarize(r, run, out);
    }
    if (r)
        hg_report_save(r, tables, &err);
    free(tables);
    hg_report_free(r);
    return r ? hg_errs_add(errs, &err) : -1;
}

int hg_report_forget(const char *run, struct hg_err *err)
{
    int rc = 0;

    for (size_t i = 0; hg_renderers[i] && rc == 0; i++) {
        char *path;

        if (!hg_renderers[i]->file || hg_renderers[i]->tidy)
            continue;
        path = hg_str_printf("%s/tables/%s", run, hg_renderers[i]->file);
        rc = hg_fs_remove_tree(path, err);
        free(path);
    }
    return rc;
}
