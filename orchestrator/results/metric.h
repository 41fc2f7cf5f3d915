/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_METRIC_H
#define HG_RESULTS_METRIC_H

#include <stdbool.h>
#include <stddef.h>

/* Properties of a metric that follow from its name. */

/* Seconds and rates must be above zero to be used in a ratio. */
bool hg_metric_is_time(const char *metric); /* "..._s", "..._s.median" */
bool hg_metric_is_rate(const char *metric); /* "..._per_s" */

/* 1: the higher the better (a rate, an accuracy, F1), -1: the lower (a time, a loss, energy, bytes),
 * 0: the name does not say. */
int hg_metric_direction(const char *metric);

/* Does a name end with this, and is longer? */
bool hg_metric_has_suffix(const char *name, size_t len, const char *suffix);

#endif
