/* SPDX-License-Identifier: Apache-2.0 */
#include "render/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/pictures.h"
#include "cmd/results.h"
#include "plot/track.h"
#include "rundir/rundir.h"

static const char *metric, *better, *where, *reports, *numbers, *format, *baseline_run, *plot;
static double tolerance = 5, between = HG_BETWEEN_DEFAULT * 100;
static long last;
static bool as_json, strict;

static const struct hg_opt opts[] = {
    HG_OPTION_FORM(&format, HG_VERDICT_FORMS),
    HG_OPTION_JSON(&as_json),
    { HG_OPT_INT, 'n', "last", &last, "N", "only the newest N sets", 2, 1000000 },
    { HG_OPT_STRING, 'm', "metric", &metric, "KEY", "result to follow: train_s, eval.f1", 0, 0 },
    { HG_OPT_STRING, 0, "better", &better, "WAY", "one of higher lower: which way is better", 0,
      0 },
    HG_OPTION_WHERE(&where),
    HG_OPTION_TOLERANCE(&tolerance),
    HG_OPTION_BETWEEN(&between),
    { HG_OPT_FLAG, 0, "strict", &strict, NULL, "no verdict if the results are not comparable", 0,
      0 },
    HG_OPTION_TEXT(0, "plot", &plot, "FILE", "draw it over time: FILE.svg, .png, .pdf, .gp"),
    HG_OPTION_TEXT(0, "baseline-run", &baseline_run, "RUN", "judge the newest by this run"),
    { HG_OPT_STRING, HG_OPT_RARE, "reports", &reports, "DIR", HG_OPTION_REPORTS_HELP, 0, 0 },
    HG_OPTION_NUMBERS(&numbers),
    { 0 },
};

struct sets {
    struct hg_results *items;
    size_t n, cap;
};

static int read_one(const char *word, struct sets *sets, struct hg_errs *errs)
{
    struct hg_results *set = HG_VEC_PUSH(sets);

    *set = (struct hg_results)HG_RESULTS_INIT;
    return hg_cmd_results(word, reports, set, NULL, errs);
}

/* All runs of a name, oldest first; numbers without a folder were deleted. */
static int read_runs(const char *name, struct sets *sets, struct hg_errs *errs)
{
    struct hg_rundir newest = { 0 };
    struct hg_err err = HG_ERR_INIT;
    int rc = 0, first = 1;

    if (hg_rundir_find(hg_options_reports(reports), name, &newest, &err) < 0)
        return hg_errs_add(errs, &err);
    if (last && newest.number > last)
        first = newest.number - (int)last + 1;
    for (int i = first; i <= newest.number && rc == 0; i++) {
        char *word = hg_str_printf("%s/%03d", newest.name, i);
        char *path = hg_str_printf("%.*s/%03d", (int)(strrchr(newest.path, '/') - newest.path),
                                   newest.path, i);

        if (i == newest.number || hg_fs_is_dir(path))
            rc = read_one(word, sets, errs);
        free(word);
        free(path);
    }
    hg_rundir_done(&newest);
    return rc;
}

static int read_all(int argc, char **argv, struct sets *sets, struct hg_errs *errs)
{
    int rc = 0, first = last && argc > last ? argc - (int)last : 0;

    if (argc == 1 && strcmp(argv[0], "-") != 0 && !hg_fs_exists(argv[0]) && !strchr(argv[0], '/'))
        rc = read_runs(argv[0], sets, errs);
    else
        for (int i = first; i < argc; i++)
            if (read_one(argv[i], sets, errs) < 0)
                rc = -1;
    if (rc == 0 && sets->n < 2) {
        rc = hg_err_set(hg_errs_next(errs), HG_E_INPUT,
                        "a history needs at least two sets of results");
        hg_err_hint(&errs->items[errs->n - 1], "name several, or a NAME with several runs");
    }
    return rc;
}

/* Is it the set that a user calls so: "nightly/003" or "003"? */
static bool is_called(const struct hg_results *set, const char *name)
{
    char *full = hg_str_printf("%s/%s", set->name, set->run);
    bool same = strcmp(full, name) == 0 || (*set->run && strcmp(set->run, name) == 0);

    free(full);
    return same;
}

/* The set that --baseline-run names; one that is not among them comes first. */
static int find_baseline(struct sets *sets, size_t *baseline, struct hg_errs *errs)
{
    struct hg_results set;

    *baseline = SIZE_MAX;
    for (size_t i = 0; baseline_run && i < sets->n; i++)
        if (is_called(&sets->items[i], baseline_run))
            *baseline = i;
    if (!baseline_run || *baseline != SIZE_MAX)
        return 0;
    if (read_one(baseline_run, sets, errs) < 0)
        return -1;
    set = sets->items[sets->n - 1];
    memmove(sets->items + 1, sets->items, (sets->n - 1) * sizeof set);
    sets->items[0] = set;
    *baseline = 0;
    for (size_t i = 1; i < sets->n; i++) /* a file may hold a run that is there already */
        if (*set.run && strcmp(set.name, sets->items[i].name) == 0 &&
            strcmp(set.run, sets->items[i].run) == 0)
            *baseline = i;
    if (*baseline == 0)
        return 0;
    hg_results_done(&sets->items[0]);
    memmove(sets->items, sets->items + 1, --sets->n * sizeof set);
    --*baseline;
    return 0;
}

static int draw(const struct hg_history *h, struct hg_errs *errs)
{
    struct hg_plots plots = { 0 };
    struct hg_err err = HG_ERR_INIT;

    hg_plot_tracks(h, &plots);
    hg_pictures_write(&plots, plot, &err);
    hg_plots_done(&plots);
    return hg_errs_add(errs, &err);
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const struct hg_compare_options how = { tolerance / 100, between / 100 };
    struct hg_report_options o = {
        .metric = metric, .better = better, .where = where, .strict = strict
    };
    struct sets sets = { 0 };
    struct hg_history *h = NULL;
    struct hg_buf text = HG_BUF_INIT;
    enum hg_verdict_form form;
    size_t baseline;
    int rc = -1;

    if (hg_verdict_form(format, as_json, &form, errs) == 0 &&
        hg_style_option(numbers, form == HG_FORM_JSON, &o.style, errs) == 0 &&
        read_all(argc, argv, &sets, errs) == 0 && find_baseline(&sets, &baseline, errs) == 0 &&
        (h = hg_history_build(sets.items, sets.n, &o, &how, baseline, errs))) {
        hg_history_write(h, form, &text);
        fputs(hg_buf_str(&text), stdout);
        rc = plot && draw(h, errs) < 0 ? -1 : !hg_history_is_good(h);
    }
    hg_buf_done(&text);
    hg_history_free(h);
    for (size_t i = 0; i < sets.n; i++)
        hg_results_done(&sets.items[i]);
    HG_VEC_DONE(&sets);
    return rc;
}

const struct hg_cmd hg_cmd_history = {
    .name = "history",
    .args = "NAME|RUN|FILE...",
    .summary = "Follow a matrix's cells over several runs: what changed when.",
    .details = "NAME means all its runs, oldest first. A change is beyond the tolerance, chance\n"
               "and what whole runs differ by; at most 5 % of the cells with one are false. HTML\n"
               "has a plot. Exit code 1: the last change of a cell was for the worse (or the\n"
               "newest is worse than --baseline-run), or it failed, is missing or rejected.",
    .opts = opts,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
