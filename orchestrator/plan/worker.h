/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_WORKER_H
#define HG_PLAN_WORKER_H

#include <jansson.h>

#include "base/err.h"

/* Path of hpcgrid-worker: $HPCGRID_WORKER, else installed or built with this program, else its
 * bare name, for the PATH. Yours. */
char *hg_worker_find(void);

/* Write a value to a temporary file for the worker to read. Returns the path; unlink the file and free
 * the path. NULL with err set: ENV. */
char *hg_worker_input(const json_t *json, struct hg_err *err);

#endif
