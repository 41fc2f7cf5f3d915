/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_COMPARABLE_H
#define HG_ANALYSIS_COMPARABLE_H

#include <jansson.h>
#include <stdbool.h>

#include "results/result.h"

/* In what two results must agree for their ratio to mean something: the members of `comparable` (precision, dataset, epochs ...),
 * and what they ran on (`env`). */

/* A member of a result's `comparable`; if that does not have it, of its cell, or of the result itself (results/inputs.h). NULL:
 * unknown. Lent. */
const json_t *hg_comparable_get(const struct hg_result *result, const char *key);

/* Both have the same value, or none; a "batch_size" may be the same for each device or in all. */
bool hg_comparable_is_same(const struct hg_result *own, const struct hg_result *other,
                           const char *key);

/* Call `see` with every key in which the two may differ: a fixed list, then the other members of `comparable` of both. */
void hg_comparable_each(const struct hg_result *a, const struct hg_result *b,
                        void (*see)(void *context, const char *key), void *context);

/* Do they agree in all of these but the global batch, and but the keys that `ignored` names? */
bool hg_comparable_is_like(const struct hg_result *a, const struct hg_result *b,
                           bool (*ignored)(const void *context, const char *key),
                           const void *context);

/* Call `see` with every member of `env` in which they differ (clocks by more than 2 %) or that only one has (the other: NULL), with
 * "device" if both say it, and once with "env" if only one says what it ran on. */
void hg_comparable_each_env(const struct hg_result *own, const struct hg_result *other,
                            void (*see)(void *context, const char *key, const json_t *mine,
                                        const json_t *theirs),
                            void *context);

#endif
