/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_COPIES_H
#define HG_ANALYSIS_COPIES_H

#include "analysis/builder.h"

/* Times and rates with so many digits that they do not repeat by chance. Two sets may have runs in common. */

/* Do two runs of a configuration agree to the last digit? */
bool hg_copies_within(const struct hg_builder *b, const struct hg_configuration *c);

/* Does a run of one configuration agree with one of another? Both have results. */
bool hg_copies_between(const struct hg_builder *b, const struct hg_configuration *c,
                       const struct hg_configuration *other);

/* Which points of a table have a run that agrees with one of another point of the same set (but for its baseline: that is asked above).
 * One for each point; free it. */
bool *hg_copies_of_places(const struct hg_builder *b, const struct hg_table *t);

#endif
