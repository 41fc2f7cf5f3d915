/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_PLACES_H
#define HG_ANALYSIS_PLACES_H

#include "analysis/report.h"

/* Places of a table as rows of a listing. */

/* Add the keys of rows and columns as the first columns. */
void hg_place_columns(const struct hg_report *r, struct hg_listing *l);

/* Append the values of these keys at a place. */
void hg_place_values(const struct hg_report *r, const struct hg_table *t, size_t point,
                     struct hg_listing *l);

/* Append the value of one key, a number as a number. */
void hg_place_value(const struct hg_report *r, struct hg_listing *l, uint32_t value);

/* Append a value of the metric: seconds if it is a time. */
void hg_place_metric(const struct hg_report *r, struct hg_listing *l, double v, int decimals);

#endif
