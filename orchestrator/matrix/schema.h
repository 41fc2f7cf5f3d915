/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SCHEMA_H
#define HG_MATRIX_SCHEMA_H

#include <jansson.h>

/* The matrix format's JSON Schema (what matrices/matrix.schema.json holds); a new reference. */
json_t *hg_matrix_schema(void);

#endif
