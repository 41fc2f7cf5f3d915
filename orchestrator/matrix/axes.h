/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_AXES_H
#define HG_MATRIX_AXES_H

#include "matrix/draft.h"

/* "axes" and "include": products of lists of values. */
void hg_axes_parse(struct hg_draft *p);

/* Are there more cells than HG_GRID_CELLS_MAX? */
void hg_axes_check_size(struct hg_draft *p);

#endif
