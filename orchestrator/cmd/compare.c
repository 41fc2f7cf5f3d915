/* SPDX-License-Identifier: Apache-2.0 */
#include "render/compare.h"

#include <stdio.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/results.h"

static const char *metric, *better, *where, *reports, *numbers;
static double tolerance = 5;
static bool as_json, strict;

static const struct hg_opt opts[] = {
    HG_OPTION_JSON(&as_json),
    { HG_OPT_STRING, 'm', "metric", &metric, "KEY", "result to compare: train_s, samples_per_s", 0,
      0 },
    { HG_OPT_STRING, 0, "better", &better, "WAY", "higher: the metric is a rate; lower: a time", 0,
      0 },
    HG_OPTION_WHERE(&where),
    HG_OPTION_TOLERANCE(&tolerance),
    { HG_OPT_FLAG, 0, "strict", &strict, NULL, "no verdict if the results are not comparable", 0,
      0 },
    HG_OPTION_REPORTS(&reports),
    HG_OPTION_NUMBERS(&numbers),
    { 0 },
};

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_report_options o = {
        .metric = metric, .better = better, .where = where, .strict = strict
    };
    struct hg_results sets[2];
    struct hg_compare *c = NULL;
    struct hg_buf text = HG_BUF_INIT;
    int rc = hg_style_option(numbers, as_json, &o.style, errs);

    (void)argc;
    sets[0] = sets[1] = (struct hg_results)HG_RESULTS_INIT;
    for (size_t i = 0; i < 2; i++)
        if (hg_cmd_results(argv[i], reports, &sets[i], NULL, errs) < 0)
            rc = -1;
    if (rc == 0 && (c = hg_compare_build(sets, &o, tolerance / 100, errs))) {
        if (as_json)
            hg_compare_json(c, &text);
        else
            hg_compare_text(c, &text);
        fputs(hg_buf_str(&text), stdout);
        rc = !hg_compare_is_good(c);
    } else {
        rc = -1;
    }
    hg_buf_done(&text);
    hg_compare_free(c);
    hg_results_done(&sets[0]);
    hg_results_done(&sets[1]);
    return rc;
}

const struct hg_cmd hg_cmd_compare = {
    .name = "compare",
    .args = "A B",
    .summary = "Compare two runs cell by cell: faster, slower or unchanged.",
    .details = "A and B are named as for `hpcgrid report`. The verdict on a cell uses the 95 %\n"
               "interval of the ratio if both sides have three results; with fewer it uses the\n"
               "values alone and carries a question mark. Exit code 1: something is slower, or\n"
               "failed or missing in B, or rejected.",
    .opts = opts,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
