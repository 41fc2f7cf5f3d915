/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_FIT_H
#define HG_PLAN_FIT_H

#include "base/err.h"
#include "matrix/matrix.h"
#include "matrix/select.h"

/* Which cells would hold more than their device has, or be refused. hpcgrid-worker predicts it, without the data: sequences are taken as
 * long as they may be. Looked at are cells of hpcgrid-worker on hardware whose site entry has `device_mem`; elsewhere those whose ranks
 * share out what may be too little: strategies that shard, and cells with a number of samples. */
struct hg_fit;

/* Ask hpcgrid-worker about the cells that select picks (NULL: all), once for all. Where there is no hpcgrid-worker to ask, that
 * is a warning and every cell fits. NULL on failure, with errs filled. */
struct hg_fit *hg_fit_make(const struct hg_matrix *m, const struct hg_selector *select,
                           struct hg_errs *errs);
void hg_fit_free(struct hg_fit *f);

/* Why the cell with these members does not fit, and which strategy would; "" if it does, or nothing is known. Lent until
 * the next call. f may be NULL. */
const char *hg_fit_why(struct hg_fit *f, const json_t *members);

#endif
