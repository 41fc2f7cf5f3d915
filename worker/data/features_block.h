/* SPDX-License-Identifier: Apache-2.0 */
/* Features as one block of memory, the same on disk: a header, then the arrays of struct
 * wk_features in its order, numbers of 32 bits in the machine's byte order. */
#ifndef WK_DATA_FEATURES_BLOCK_H
#define WK_DATA_FEATURES_BLOCK_H

#include "data/features.h"

#define WK_BLOCK_KEY 32 /* hex digits */

/* Copy the arrays that *parts points to (its memory and size are not read) into one block that *out
 * owns. Fails with INPUT when there is more than 32 bits can count. */
int wk_block_pack(const struct wk_features *parts, struct wk_features *out, struct hg_err *err);

/* Write key and checksum into the header, for saving f->memory. */
void wk_block_seal(struct wk_features *f, const char *key);

/* Check a block that was read and let *out point into it; it owns the memory from then on. Fails
 * with INPUT, saying what is wrong, and the memory is still the caller's. */
int wk_block_adopt(void *memory, size_t size, const char *key, struct wk_features *out,
                   struct hg_err *err);

#endif
