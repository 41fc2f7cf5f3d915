/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_RETRY_H
#define HG_MATRIX_RETRY_H

#include "base/fields.h"
#include "base/json.h"

/* Ends of a cell after which it may be run again automatically: the members of "retry". */
enum hg_retry_cause {
    HG_RETRY_TIMEOUT,
    HG_RETRY_NODE_FAIL,
    HG_RETRY_PREEMPTED,
    HG_RETRY_OUT_OF_MEMORY,
    HG_RETRY_FAILED,
    HG_RETRY_LOST,
    HG_RETRY_CAUSES
};

/* How often, for each cause; 0: never. */
struct hg_retry {
    long long most[HG_RETRY_CAUSES];
};

/* By cause, in the order of the enum: decodes into struct hg_retry. */
extern const struct hg_field hg_retry_fields[];

/* From the "retry" of a matrix file that was checked before; NULL: none. */
struct hg_retry hg_retry_of(const json_t *object);

/* The cause of that name; -1 if there is none. */
int hg_retry_find(const char *name);

#endif
