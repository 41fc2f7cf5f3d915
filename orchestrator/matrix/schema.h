/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SCHEMA_H
#define HG_MATRIX_SCHEMA_H

#include <jansson.h>

#include "base/err.h"

/* The matrix format's JSON Schema, with the sites that have a name here (matrices/matrix.schema.json: those that ship).
 * A new reference. What is wrong in site files is added to errs; their hardware is left out. */
json_t *hg_matrix_schema(struct hg_errs *errs);

#endif
