/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_RANGES_H
#define HG_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Ascending sets of numbers, written as Slurm writes array indices: "0-9,12". */
struct hg_range {
    uint32_t first, last; /* both included */
};

struct hg_ranges {
    struct hg_range *items;
    size_t n, cap;
};
#define HG_RANGES_INIT \
    {                  \
        0              \
    }

/* Parse a set ("" is the empty one); "0-8:4" is read, too. Numbers must ascend and be at most max.
 * Returns 0, or -1 with err set (INPUT) and the set empty. */
int hg_ranges_parse(const char *text, uint32_t max, struct hg_ranges *set, struct hg_err *err);

/* Add a number above all others (an equal one is fine). */
void hg_ranges_add(struct hg_ranges *set, uint32_t value);

bool hg_ranges_has(const struct hg_ranges *set, uint32_t value);

uint64_t hg_ranges_count(const struct hg_ranges *set);

/* Append the text. */
void hg_ranges_format(const struct hg_ranges *set, struct hg_buf *out);

void hg_ranges_done(struct hg_ranges *set);

#endif
