/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_COMPARE_H
#define HG_ANALYSIS_COMPARE_H

#include "analysis/report.h"
#include "results/contrast.h"

/* Two sides, cell by cell: is B faster, slower, the same, or is it unclear? Each side is one result set or several, runs of the same
 * thing. render/compare.h writes it. */

enum hg_verdict_kind {
    HG_VERDICT_SAME,   /* the interval lies within the tolerance */
    HG_VERDICT_FASTER, /* beyond it: adjusted p-value of results/contrast.h */
    HG_VERDICT_SLOWER,
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

struct hg_comparison {
    const struct hg_table *table; /* one row of it */
    size_t row;
    struct hg_point a,
        b; /* of == 0: no such cell; value: geometric mean, of runs if there are several */
    struct hg_estimate speed; /* of B in units of A's: T_A / T_B; NaN: none */
    double p;                 /* adjusted, of the verdict; NaN: none */
    enum hg_verdict_kind verdict;
    bool sure;   /* three results on both sides: it has an interval of its own */
    bool chance; /* beyond the tolerance, but not by more than chance and the runs explain */
};

struct hg_compare {
    struct hg_report *report;
    size_t n_a; /* the first sets are A, the others B */
    struct {
        struct hg_comparison *items;
        size_t n, cap;
    } cells;
    size_t counts[HG_VERDICTS];
    size_t by_chance;                     /* cells that are marked so */
    struct hg_estimate overall;           /* geometric mean of the speeds */
    enum hg_verdict_kind overall_verdict; /* NONE without a speed */
    double overall_p;
    double tolerance;
    double between; /* standard deviation between runs, a fraction, that the verdicts rest on */
    struct hg_variance seen; /* what several runs on a side show of it; df 0: one each */
};

struct hg_compare_options {
    double tolerance; /* a fraction: 0.05 calls up to 5 % the same */
    double between;   /* assumed standard deviation between runs, a fraction */
};

/* Compare sets[0..n_a] with sets[n_a..n_sets], one at least on each side. Free with hg_compare_free, before the sets. NULL with errs
 * filled as hg_report_build does. */
struct hg_compare *hg_compare_build(const struct hg_results *sets, size_t n_sets, size_t n_a,
                                    const struct hg_report_options *options,
                                    const struct hg_compare_options *how, struct hg_errs *errs);
void hg_compare_free(struct hg_compare *c);

/* Nothing is slower, alone or overall, broken, missing or refused. */
bool hg_compare_is_good(const struct hg_compare *c);

/* 0 if it is known whether higher or lower values of the report's metric are better; else -1, with an error added. */
int hg_compare_needs_direction(const struct hg_report *r, struct hg_errs *errs);

#endif
