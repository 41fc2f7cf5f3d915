/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_REST_ASK_H
#define HG_SLURM_REST_ASK_H

#include "slurm/common/call.h"

enum hg_rest_area { HG_REST_SLURM, HG_REST_DATABASE, HG_REST_OTHER };

/* Begin a call: the configured timeout_s, from now on for all its requests. */
void hg_rest_start_clock(void);

/* One request. path is what follows the area and version: "/jobs" (OTHER: all of it). body is consumed; NULL: none. *answer
 * is a new reference to the JSON object of the answer, also if it has "errors" (hg_rest_errno). -1 with call->err set: ENV or
 * AGAIN, nothing was done; AMBIGUOUS (only while call->submitting): nobody knows. */
int hg_rest_ask(struct hg_agent_call *call, const char *method, enum hg_rest_area area,
                const char *path, json_t *body, json_t **answer);

/* The first error number of an answer, -1 where it has an error without one, 0: none. *text is lent. */
int hg_rest_errno(const json_t *answer, const char **text);

/* Record this error of an answer, like hg_agent_fail for libslurm. Returns -1. */
int hg_rest_fail(struct hg_agent_call *call, int number, const char *text, const char *what);

/* Ask for a list, "/jobs" or "/jobs?...", with its errors in call->err. A missing list is an error. */
int hg_rest_get(struct hg_agent_call *call, enum hg_rest_area area, const char *path,
                const char *what, json_t **answer);

#endif
