/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_COMPARE_H
#define HG_ANALYSIS_COMPARE_H

#include "analysis/report.h"

/* Two result sets, cell by cell: is B faster, slower, the same, or is it unclear? render/compare.h writes it. */

enum hg_verdict_kind {
    HG_VERDICT_SAME,    /* the interval lies within the tolerance */
    HG_VERDICT_FASTER,  /* the interval lies above it */
    HG_VERDICT_SLOWER,  /* below it */
    HG_VERDICT_UNCLEAR, /* none of these: more runs would tell */
    HG_VERDICT_ONLY_A,  /* B has no such cell */
    HG_VERDICT_ONLY_B,
    HG_VERDICT_BROKEN, /* A has a good result, B's cells failed */
    HG_VERDICT_MENDED, /* the reverse */
    HG_VERDICT_NONE,   /* neither has a good result */
    HG_VERDICT_UNLIKE, /* refused (strict): not comparable */
    HG_VERDICTS
};

/* Is the metric a time or a rate, and not an accuracy or a loss? */
bool hg_compare_is_speed(const struct hg_report *r);

/* "faster"; "better" if the metric is not a speed. */
const char *hg_verdict_word(const struct hg_report *r, enum hg_verdict_kind verdict);

/* By the interval, or without one by the value alone: does the speed lie within the tolerance (a
 * fraction) around 1? */
enum hg_verdict_kind hg_verdict_judge(const struct hg_estimate *speed, double tolerance);

struct hg_comparison {
    const struct hg_table *table; /* one row of it; column 0 is A */
    size_t row;
    struct hg_point a, b;     /* of == 0: no such cell */
    struct hg_estimate speed; /* of B in units of A's: T_A / T_B; NaN: none */
    enum hg_verdict_kind verdict;
    bool sure; /* the verdict rests on an interval, not on single runs */
};

struct hg_compare {
    struct hg_report *report;
    struct {
        struct hg_comparison *items;
        size_t n, cap;
    } cells;
    size_t counts[HG_VERDICTS];
    struct hg_estimate overall; /* geometric mean of the speeds, interval over cells from n = 3 */
    enum hg_verdict_kind overall_verdict; /* NONE without a speed */
    double tolerance;
};

/* Compare sets[0] with sets[1]; `tolerance` is a fraction: 0.05 calls up to 5 % the same. Free with
 * hg_compare_free, before the sets. NULL with errs filled as hg_report_build does. */
struct hg_compare *hg_compare_build(const struct hg_results *sets,
                                    const struct hg_report_options *options, double tolerance,
                                    struct hg_errs *errs);
void hg_compare_free(struct hg_compare *c);

/* Nothing is slower, broken, missing or refused. */
bool hg_compare_is_good(const struct hg_compare *c);

/* 0 if it is known whether higher or lower values of the report's metric are better; else -1, with an error added. */
int hg_compare_needs_direction(const struct hg_report *r, struct hg_errs *errs);

#endif
