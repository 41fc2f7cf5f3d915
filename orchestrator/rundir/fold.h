/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_FOLD_H
#define HG_RUNDIR_FOLD_H

#include <jansson.h>

#include "base/err.h"
#include "rundir/runstate.h"

/* What each kind of record (rundir/events.h) changes in a run's state. Both functions return 0, or -1 with INPUT: the record
 * contradicts those before it. */

/* The next record of the journal. */
int hg_run_state_next(struct hg_run_state *state, const json_t *record, struct hg_err *err);

/* A record that is in no journal, to see what it would change; the reference is taken (NULL: a text in it was not UTF-8, an
 * error). */
int hg_run_state_apply(struct hg_run_state *state, const char *kind, json_t *members,
                       struct hg_err *err);

#endif
