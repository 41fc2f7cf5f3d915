/* SPDX-License-Identifier: Apache-2.0 */
/* IDX files of bytes, as MNIST comes in: a big-endian header (two zero bytes, type 0x08, number of
 * dimensions, sizes), then the values; plain or gzip. */
#ifndef WK_DATA_IDX_H
#define WK_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct wk_idx {
    uint8_t *data; /* yours: wk_idx_done */
    size_t n;      /* bytes: the product of the sizes */
    int n_dims;
    uint32_t dims[4];
};

/* Read a file that must have so many dimensions (1 to 4). Everything that can be wrong with it is
 * an INPUT error that names the file, what was found and what was expected: magic number, cut
 * short, more after the last value, damaged gzip. */
int wk_idx_load(const char *path, int n_dims, struct wk_idx *idx, struct hg_err *err);
void wk_idx_done(struct wk_idx *idx);

#endif
