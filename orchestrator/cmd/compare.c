/* SPDX-License-Identifier: Apache-2.0 */
#include "render/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/results.h"

#define SEPARATOR "vs" /* between the runs of A and those of B */

static const char *metric, *better, *where, *reports, *numbers, *format, *baseline_run;
static double tolerance = 5, between = HG_BETWEEN_DEFAULT * 100;
static bool as_json, strict;

static const struct hg_opt opts[] = {
    HG_OPTION_FORM(&format, HG_VERDICT_FORMS),
    HG_OPTION_JSON(&as_json),
    { HG_OPT_STRING, 'm', "metric", &metric, "KEY", "result to compare: train_s, samples_per_s", 0,
      0 },
    { HG_OPT_STRING, 0, "better", &better, "WAY", "one of higher lower: which way is better", 0,
      0 },
    HG_OPTION_WHERE(&where),
    HG_OPTION_TOLERANCE(&tolerance),
    HG_OPTION_BETWEEN(&between),
    HG_OPTION_TEXT(0, "baseline-run", &baseline_run, "RUN", "it is A, all operands are B"),
    { HG_OPT_FLAG, 0, "strict", &strict, NULL, "no verdict if the results are not comparable", 0,
      0 },
    HG_OPTION_REPORTS(&reports),
    HG_OPTION_NUMBERS(&numbers),
    { 0 },
};

/* What the operands are: runs of A, then runs of B. */
struct sides {
    const char **words;
    size_t n, n_a;
};

/* "A B", "A A vs B B", or with --baseline-run "B..." */
static int read_sides(int argc, char **argv, struct sides *s, struct hg_errs *errs)
{
    struct hg_err *err;

    s->n = s->n_a = 0;
    if (baseline_run)
        s->words[s->n++] = baseline_run;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], SEPARATOR) == 0 && !s->n_a && s->n && !baseline_run)
            s->n_a = s->n;
        else
            s->words[s->n++] = argv[i];
    }
    if (baseline_run || (s->n == 2 && !s->n_a))
        s->n_a = 1;
    if (s->n_a && s->n_a < s->n)
        return 0;
    err = hg_errs_next(errs);
    hg_err_set(err, HG_E_USAGE, "it is not clear which of the %zu operands are A and which are B",
               s->n);
    return hg_err_hint(err, "A B, A1 A2 vs B1 B2, or --baseline-run A B1 B2");
}

static int run_sides(const struct sides *s, const struct hg_report_options *o,
                     enum hg_verdict_form form, struct hg_errs *errs)
{
    const struct hg_compare_options how = { tolerance / 100, between / 100 };
    struct hg_results *sets = hg_alloc((s->n + 1) * sizeof *sets);
    struct hg_compare *c = NULL;
    struct hg_buf text = HG_BUF_INIT;
    int rc = 0;

    for (size_t i = 0; i < s->n; i++) {
        sets[i] = (struct hg_results)HG_RESULTS_INIT;
        if (hg_cmd_results(s->words[i], reports, &sets[i], NULL, errs) < 0)
            rc = -1;
    }
    if (rc == 0 && (c = hg_compare_build(sets, s->n, s->n_a, o, &how, errs))) {
        hg_compare_write(c, form, &text);
        fputs(hg_buf_str(&text), stdout);
        rc = !hg_compare_is_good(c);
    } else {
        rc = -1;
    }
    hg_buf_done(&text);
    hg_compare_free(c);
    for (size_t i = 0; i < s->n; i++)
        hg_results_done(&sets[i]);
    free(sets);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_report_options o = {
        .metric = metric, .better = better, .where = where, .strict = strict
    };
    struct sides sides = { .words = hg_alloc(((size_t)argc + 1) * sizeof *sides.words) };
    enum hg_verdict_form form;
    int rc = -1;

    if (hg_verdict_form(format, as_json, &form, errs) == 0 &&
        hg_style_option(numbers, form == HG_FORM_JSON, &o.style, errs) == 0 &&
        read_sides(argc, argv, &sides, errs) == 0)
        rc = run_sides(&sides, &o, form, errs);
    free(sides.words);
    return rc;
}

const struct hg_cmd hg_cmd_compare = {
    .name = "compare",
    .args = "A [A...] [vs] B [B...]",
    .summary = "Compare runs cell by cell: faster, slower or unchanged.",
    .details = "A and B are named as for `hpcgrid report`; several runs of a side are separated\n"
               "from those of the other by the word vs. A cell is faster or slower if that is\n"
               "beyond the tolerance, chance and what whole runs differ by (--between, or as\n"
               "several runs show), with at most 5 % false ones. \"?\": fewer than three results.\n"
               "Exit code 1: something, or all together, is slower, or failed or missing in B.",
    .opts = opts,
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
