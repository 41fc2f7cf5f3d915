/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_RESULT_KEYS_H
#define HG_RESULTS_RESULT_KEYS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* Keys that `hpcgrid exec` itself sets in a result, and a workload cannot; ends with NULL. */
extern const char *const hg_result_keys_own[];
bool hg_result_key_is_own(const char *key);

/* The key that a mistyped metric most likely meant, of those that results usually have and of the members of `more` (may be
 * NULL); lent. NULL: it, or what stands before its first dot, is one of them, or none is near. */
const char *hg_result_key_nearest(const char *metric, const json_t *more);

/* The i-th key that tables calculate with, its type in words and what it is; NULL after the last. */
const char *hg_result_key_known(size_t i, const char **type, const char **doc);

/* What the value of a key must be, in words ("a number", "an object"), because tables calculate with
 * it; NULL: anything. */
const char *hg_result_key_type(const char *key);

/* Check a value that a workload gives for a key. Returns 0, or -1 with err set: INPUT. */
int hg_result_key_check(const char *key, const json_t *value, struct hg_err *err);

#endif
