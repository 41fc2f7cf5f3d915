/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_DIGEST_H
#define HG_RENDER_DIGEST_H

#include <jansson.h>

#include "analysis/report.h"

/* What a report says of so many cells that no one would read their tables: its metric by the values of each key, the lowest and highest
 * results, the cells without a good one. Keeps four bytes for each member of a cell, and each different value once. */
struct hg_digest;

struct hg_digest *hg_digest_create(void);
void hg_digest_free(struct hg_digest *d);

/* Keep a cell; the first one is row 0. */
void hg_digest_add(struct hg_digest *d, const json_t *cell);

/* At most so many places would a table of all of them have: the product of the numbers of values of all keys but `repeat`. */
double hg_digest_places(const struct hg_digest *d);

/* A cell that is shown. */
struct hg_digest_cell {
    size_t row;
    double value;      /* of the metric; only if state is NULL */
    const char *state; /* why it does not count, lent; NULL: it counts */
};

/* Add the listings to the report, which has a metric and no tables. They say that they are a part. Changes the order of the cells. */
void hg_digest_list(const struct hg_digest *d, struct hg_digest_cell *cells, size_t n,
                    struct hg_report *r);

#endif
