/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_TYPESET_STYLE_H
#define HG_TYPESET_STYLE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* How numbers are written for people, the same in every form of a report. */
struct hg_style {
    bool comma;     /* 1,5 instead of 1.5 */
    bool durations; /* times as 3m6.619s instead of 186.619 */
    bool from_set;  /* a result set asked for durations, no person: csv keeps seconds */
    int decimals, speedup_decimals; /* of the metric and of speedups, one more; 0: as suits them */
};
#define HG_STYLE_INIT \
    {                 \
        0             \
    }

/* Read "comma,durations": a list of point, comma, locale (what the environment's LC_NUMERIC says),
 * seconds, durations, decimals=N, speedup=N (0 to 9). Fails with USAGE for an unknown word, or ENV if the locale is not
 * installed. */
int hg_style_parse(const char *words, struct hg_style *style, struct hg_err *err);

/* The same for an option that may be NULL and does not go with --json. Returns 0, or -1 with errs filled. */
int hg_style_option(const char *words, bool json, struct hg_style *style, struct hg_errs *errs);

/* Append a number with `decimals`, "-" in front where negative; "–" for NaN, "∞" for infinity. All numbers for people are
 * rounded here: a half, as it is written in decimals, goes away from zero (59.425 is 59.43, though its double is below). */
void hg_number_append(const struct hg_style *style, double v, int decimals, struct hg_buf *out);

/* The same with `digits` significant digits, and an exponent if it is needed (printf's %.*g). */
void hg_digits_append(const struct hg_style *style, double v, int digits, struct hg_buf *out);

/* Append a time in seconds: "186.62", or with durations as the shell's `time` prints it, "3m6.62s".
 */
void hg_seconds_append(const struct hg_style *style, double s, int decimals, struct hg_buf *out);

/* The same with as many decimals as s has. */
void hg_seconds_append_exact(const struct hg_style *style, double s, struct hg_buf *out);

#endif
