/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_ATTEMPTS_CHOOSE_H
#define HG_RESULTS_ATTEMPTS_CHOOSE_H

#include "base/err.h"
#include "results/results.h"

/* Which attempt at each cell counts: fill first, best and used. In a set that is not tolerant a cell has one id and an id one cell, and an
 * attempt is listed once. Returns 0, or -1 with errs filled. */
int hg_attempts_choose(struct hg_results *set, struct hg_errs *errs);

#endif
