/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_ADAPTIVE_H
#define HG_ANALYSIS_ADAPTIVE_H

#include "analysis/builder.h"

/* Places whose runs were repeated until their interval was narrow: their intervals are wider than those of a fixed number of runs
 * (results/adaptive.h). */

/* The first set's rule that is adaptive; NULL if none is. */
const struct hg_repeats *hg_adaptive_find(const struct hg_builder *b);

/* The figures of a place, and of its baseline (NULL: none), if one of them was repeated so. The values that count are in b->room and
 * b->room_base. */
void hg_adaptive_fill(const struct hg_builder *b, const struct hg_configuration *c,
                      const struct hg_configuration *base, struct hg_point *p);

/* Why an interval is wider than the matrix wanted: "stopped at the maximum of 20 runs: " and "±7 %". False if it is not. */
bool hg_adaptive_note(const struct hg_builder *b, const struct hg_configuration *c,
                      const struct hg_point *p, struct hg_buf *head, struct hg_buf *value);

#endif
