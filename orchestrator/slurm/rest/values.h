/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_VALUES_H
#define HG_SLURM_REST_VALUES_H

#include <jansson.h>
#include <stdbool.h>

/* A number as one of the versions writes it; dflt where it is not set or infinite. */
json_int_t hg_rest_number(const json_t *value, json_int_t dflt);

/* A text, "" where there is none; a list: its first. */
const char *hg_rest_text(const json_t *value);

/* Does the list (or the text) have this word? Case does not count. */
bool hg_rest_has(const json_t *value, const char *word);

#endif
