/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_JQJSON_H
#define HG_MATRIX_JQJSON_H

#include <jansson.h>
#include <jv.h>

/* Values of jq and of jansson. */

jv hg_jv_of_json(const json_t *json);

/* JSON of a value, numbers rounded; NULL if it holds NaN, an infinite number or a string with a NUL, which have no place in a cell.
 * Consumes v. */
json_t *hg_json_of_jv(jv v);

#endif
