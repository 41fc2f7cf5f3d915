/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_DIFFERENCES_H
#define HG_ANALYSIS_DIFFERENCES_H

#include "analysis/report.h"

/* In what the runs behind two figures differ, so that their ratio is no speedup: all runs of one side with all of the other. The footnotes
 * of a report, of `compare` and of `history` are made of this. */

/* The runs behind a figure, only those that count. */
struct hg_side {
    const struct hg_result **runs;
    size_t n;
};

enum hg_difference_kind {
    HG_DIFFERENCE_INPUT, /* what they computed */
    HG_DIFFERENCE_ENV,   /* what they ran on */
    HG_DIFFERENCE_END,   /* what came out: "final_loss", "score" */
};

struct hg_difference {
    enum hg_difference_kind kind;
    const char *key;
    const json_t *mine, *theirs; /* NULL: that side does not say */
};

/* Call `see` with every difference between the two, some more than once. */
void hg_differences_each(const struct hg_report *r, const struct hg_side *own,
                         const struct hg_side *base,
                         void (*see)(void *context, const struct hg_difference *d), void *context);

/* The same among the runs of one side. */
void hg_differences_within(const struct hg_report *r, const struct hg_side *own,
                           void (*see)(void *context, const struct hg_difference *d),
                           void *context);

/* How many times the samples of the base the results count, per sample that their cells ask for; NaN: as many, or unknown. */
double hg_differences_samples(const struct hg_report *r, const struct hg_side *own,
                              const struct hg_side *base);

/* Append "bf16", "unknown". */
void hg_differences_value(const json_t *value, struct hg_buf *out);

#endif
