/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_SAVE_H
#define HG_NODE_SAVE_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "node/outcome.h"

/* Writing result.json of an attempt, also when the disk is full or memory runs out. */

/* Bytes that the claim of a cell's attempt needs, so that a result can be written over it (see hg_claim_use). */
size_t hg_save_reserve(const json_t *cell);

/* From now on, if memory runs out, the process ends with a failed result "out of memory", unless o->dir is NULL. o is lent until
 * hg_save_final or hg_save_not_at_end. */
void hg_save_at_end(const struct hg_outcome *o);
void hg_save_not_at_end(void);

/* Write a result that hg_save_final will replace. */
void hg_save_early(const struct hg_outcome *o);

/* Write the result, and remove the files that it replaces. If it cannot be written, a failed result with the reason is written over the claim's bytes. Returns
 * 0, or -1 with err set. *result is what was written, or was to be; a new reference. */
int hg_save_final(const struct hg_outcome *o, json_t **result, struct hg_err *err);

#endif
