/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_LAWS_H
#define HG_ANALYSIS_LAWS_H

#include "analysis/builder.h"

/* Laws of scaling for one series. Whether a law or a prediction is shown is decided here, once, for every form of the report: has_law
 * and has_prediction, or why not. */

/* Fit the laws that suit its kind to the runs of its points and of their baseline, and predict the next step. Points with a footnote
 * that says that their times are not those of such devices (hg_point.off_law) are left out. */
void hg_laws_of_series(struct hg_builder *b, const struct hg_table *t, struct hg_series *s);

/* Say below a listing what was withheld of which series, and why. */
void hg_laws_note_withheld(const struct hg_table *t, struct hg_listing *l);

/* Add the listings "laws" (coefficients) and "predicted" (twice the devices), each if there is something to list. */
void hg_laws_list(const struct hg_report *r, struct hg_table *t);

#endif
