/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CONTRACT_REPEATS_H
#define HG_CONTRACT_REPEATS_H

#include <stdbool.h>

#include "base/fields.h"

/* "repeats" of a matrix: how many times every cell is run. */
struct hg_repeats {
    /* Adaptive: until the interval is narrower than ± this share (0.05); 0: a fixed number. */
    double until;
    long long min, max; /* runs; equal unless it is adaptive */
};

#define HG_REPEATS_MAX 100000

/* The members of the adaptive form. */
extern const struct hg_field hg_repeats_fields[];

/* Judge the member at the pointer: a number, or {"until", "min", "max"}. */
void hg_repeats_check(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      struct hg_errs *errs);

/* From the member of a file that was checked before; NULL: one run. */
struct hg_repeats hg_repeats_of(const json_t *value);

static inline bool hg_repeats_are_adaptive(const struct hg_repeats *r)
{
    return r->until > 0;
}

#endif
