/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_TABLES_H
#define HG_MATRIX_TABLES_H

#include "base/fields.h"
#include "base/json.h"

/* The field tables of the matrix format, for the schema and the reference page. */
extern const struct hg_field hg_matrix_fields[], hg_workload_fields[], hg_report_fields[],
    hg_limits_fields[];

#endif
