/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_FILES_H
#define HG_PLAN_FILES_H

#include <jansson.h>

#include "base/err.h"
#include "matrix/matrix.h"
#include "plan/batch.h"

/* Write matrix.json, site.json, the new batches' files and plan.json below dir (which exists), in
 * this order: a plan.json never names a file that is not there. */
int hg_plan_save(struct hg_plan *plan, const struct hg_matrix *m, const char *dir,
                 struct hg_err *err);

/* NOTFOUND if dir has no plan.json. Free it with hg_plan_free. */
struct hg_plan *hg_plan_load(const char *dir, struct hg_err *err);

/* Read plan.json and check its schema: another version of the format is INPUT, with the next step. A new reference; NULL with err set. */
json_t *hg_plan_read(const char *dir, struct hg_err *err);

/* Cells of all batches of such a plan; 0 of NULL. */
size_t hg_plan_count_cells(const json_t *plan);

#endif
