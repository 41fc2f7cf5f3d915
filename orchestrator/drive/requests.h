/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_DRIVE_REQUESTS_H
#define HG_DRIVE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "rundir/runstate.h"
#include "rundir/rundir.h"

struct hg_drive;

enum hg_request { HG_REQUEST_CANCEL, HG_REQUEST_HOLD, HG_REQUEST_RELEASE, HG_REQUEST_RETRY };

/* Request that these cells are cancelled, held, released, or run again after a failure: picks says which (NULL: all, and for hold and
 * release also those that the run will get). The request is a file in the run's folder, read by the driver's next pass. */
int hg_drive_request(const struct hg_rundir *rd, enum hg_request what,
                     const struct hg_run_state *state,
                     bool (*picks)(void *context, int batch, uint32_t line), void *context,
                     struct hg_err *err);

/* Fold requests that no driver has read yet into a state that was loaded for reading. */
int hg_drive_fold_requests(const char *run_dir, struct hg_run_state *state, struct hg_err *err);

/* Journal the requests and remove their files. */
int hg_drive_read_requests(struct hg_drive *d, struct hg_err *err);

#endif
