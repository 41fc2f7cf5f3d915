/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid export: results as one table for other programs. */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/build.h"
#include "cmd/cmd.h"
#include "cmd/many.h"
#include "cmd/options.h"
#include "cmd/results.h"
#include "render/exporter.h"

static const struct hg_exporter *const exporters[] = {
#ifdef HG_SQLITE
    &hg_exporter_sqlite,
#endif
    NULL
};

static const char *format, *out_path, *where, *reports;

static const struct hg_opt opts[] = {
    HG_OPTION_TEXT('o', "out", &out_path, "FILE", "the file to write; it is replaced as a whole"),
    HG_OPTION_TEXT('f', "format", &format, "FORMAT", "sqlite (default)"),
    HG_OPTION_WHERE(&where),
    HG_OPTION_REPORTS(&reports),
    { 0 },
};

static const struct hg_exporter *find_exporter(struct hg_err *err)
{
    static const char *const known[] = { "sqlite" };
    const char *name = format ? format : known[0];

    for (const struct hg_exporter *const *e = exporters; *e; e++)
        if (strcmp((*e)->name, name) == 0)
            return *e;
    if (strcmp(name, known[0]) == 0) {
        hg_err_set(err, HG_E_ENV, "this hpcgrid was built without SQLite");
        hg_err_hint(err, "install libsqlite3-dev and build it again, or use `hpcgrid report "
                         "--format csv`");
    } else {
        hg_err_set(err, HG_E_USAGE, "--format: unknown format \"%s\"", name);
        hg_text_suggest(err, name, known, 1);
    }
    return NULL;
}

/* The sets that were named. */
struct input {
    struct hg_results *items;
    size_t n, cap;
};

static int write_sets(int argc, char **argv, const struct hg_report_options *o, hg_lines_put_fn put,
                      void *context, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_report *r = NULL;
    struct input in = { 0 };
    int rc = 0;

    for (int i = 0; i < argc; i++) {
        struct hg_results *set = HG_VEC_PUSH(&in);

        *set = (struct hg_results)HG_RESULTS_INIT;
        if (hg_cmd_results(argv[i], reports, set, NULL, errs) < 0)
            rc = -1;
    }
    if (rc == 0 && !(r = hg_report_build(in.items, in.n, o, errs)))
        rc = -1;
    if (rc == 0 && (rc = hg_report_write_lines(r, NULL, put, context, &err)) < 0)
        hg_errs_add(errs, &err);
    hg_report_free(r);
    for (size_t i = 0; i < in.n; i++)
        hg_results_done(&in.items[i]);
    HG_VEC_DONE(&in);
    return rc;
}

/* Results of one set that are too many for memory are written one by one. */
static int write_lines(int argc, char **argv, hg_lines_put_fn put, void *context,
                       struct hg_errs *errs)
{
    const struct hg_report_options o = { .where = where, .json_lines = true };
    struct hg_err err = HG_ERR_INIT;
    struct hg_many *m = argc == 1 ? hg_cmd_many(argv[0], reports, &o, false, &err) : NULL;
    int rc;

    if (!m && !err.code)
        return write_sets(argc, argv, &o, put, context, errs);
    rc = m ? hg_many_write(m, put, context, &err) : -1;
    hg_many_free(m);
    return hg_errs_add(errs, &err) < 0 ? -1 : rc;
}

static int export(const struct hg_exporter *e, int argc, char **argv, struct hg_errs *errs)
{
    struct hg_fs_part part = HG_FS_PART_INIT;
    struct hg_export *x = NULL;
    struct hg_err err = HG_ERR_INIT;
    int rc = -1;

    if (hg_fs_check_output(out_path, &err) < 0 || hg_fs_part_begin(out_path, 0644, &part, &err) < 0)
        goto out;
    if (!part.tmp) {
        hg_err_set(&err, HG_E_USAGE, "--out: %s is not a regular file", out_path);
        goto out;
    }
    x = e->begin(part.tmp, &err);
    if (!x || write_lines(argc, argv, e->put, x, errs) < 0 || e->end(x, &err) < 0)
        goto out;
    rc = hg_fs_part_end(&part, &err);
out:
    e->drop(x);
    hg_fs_part_done(&part);
    return hg_errs_add(errs, &err) < 0 ? -1 : rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    const struct hg_exporter *e = find_exporter(&err);

    if (e && !(out_path && *out_path)) {
        hg_err_set(&err, HG_E_USAGE, "--out FILE is needed");
        e = NULL;
    }
    return e ? export(e, argc, argv, errs) : hg_errs_add(errs, &err);
}

const struct hg_cmd hg_cmd_export = {
    .name = "export",
    .args = "RUN|FILE...",
    .summary = "Write all results as one table of a database.",
    .details = "One row for each attempt, columns named and ordered as in report --format csv,\n"
               "with types. The table is called results; \"counts\" is 1 where reports use it.",
    .opts = opts,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
