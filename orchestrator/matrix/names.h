/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_NAMES_H
#define HG_MATRIX_NAMES_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "matrix/matrix.h"
#include "results/frame.h"

/* What cells are called where people read: "ddp 2x2 lr=0.1, run 3". A name has the fewest keys that tell all the cells
 * apart, and repeat if it varies: the strategy as it is, nodes x GPUs (tasks where there are none), then key=value. No two
 * cells have the same name; control characters are replaced, long values cut. A selector reads a name (matrix/select.h): it picks the
 * cell, and those that have the same values and more. */
struct hg_names;

struct hg_names *hg_names_create(void);
void hg_names_free(struct hg_names *names);

/* One more cell to tell apart, which may be the same again. All are added before the first name is written. Returns its number, from
 * 0. */
size_t hg_names_add(struct hg_names *names, const json_t *cell);

/* All cells of a matrix, added in its order. flags: of hg_cells_walk, without which only those that run. NULL with errs filled. */
struct hg_names *hg_names_of_matrix(const struct hg_matrix *m, unsigned flags,
                                    struct hg_errs *errs);

/* The rows of a frame, which is lent. except: a key that is not one of the cells', or NULL. */
struct hg_names *hg_names_of_frame(const struct hg_frame *frame, const char *except);

/* Append the name of the i-th cell that was added. */
void hg_names_append(struct hg_names *names, size_t i, struct hg_buf *out);

/* Append the name of a cell by its members. */
void hg_names_append_cell(struct hg_names *names, const json_t *cell, struct hg_buf *out);

/* Append a name for a table: at most so many columns, 0 for any number. The run stays when the rest is cut. */
void hg_name_cut(const char *name, size_t columns, struct hg_buf *out);

#endif
