/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_ID_H
#define HG_MATRIX_ID_H

#include <stdint.h>

#include "matrix/matrix.h"
#include "matrix/value.h"

#define HG_CELL_ID_MAX 128 /* slug, "-", 12 hex digits, NUL */

/* Ids of cells: a slug for people, then a hash of the canonical text of what the id holds. */
struct hg_ids;

/* Borrows m. */
struct hg_ids *hg_ids_create(const struct hg_matrix *m);
void hg_ids_free(struct hg_ids *w);

uint64_t hg_ids_fingerprint(struct hg_ids *w, const hg_value *values);

/* Program or model, strategy, hardware, nodes x GPUs (x tasks where there are none), upper 48 bits of the fingerprint. */
void hg_ids_write(const struct hg_ids *w, const hg_value *values, uint64_t fingerprint,
                  char id[static HG_CELL_ID_MAX]);

#endif
