/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_STATE_H
#define HG_CMD_STATE_H

#include "rundir/events.h"

/* What several commands read from a run's journal, and print about it. */

/* Read the journal. *state is NULL if there is none: nothing was submitted, or by hand. Returns 0, or -1 with err set: it is
 * damaged or cannot be read. Free with hg_run_state_free. */
int hg_state_load(const char *run_dir, struct hg_run_state **state, struct hg_err *err);

/* Cells that are submitted, or may be, and whose result is not known. */
size_t hg_state_live(const struct hg_run_state *state);

/* The same, and cells that wait to be submitted: 0 means the run is over. */
size_t hg_state_open(const struct hg_run_state *state);

/* Cells without a good result that need one. */
size_t hg_state_bad(const struct hg_run_state *state);

/* What colours a state's name on a descriptor (base/colour.h): before and behind it. */
const char *hg_state_start(int fd, enum hg_cell_state state);
const char *hg_state_stop(int fd, enum hg_cell_state state);

/* Append "ok 12 · running 3 · waiting 9", as it is written to a descriptor; -1: without colours. */
void hg_state_format_counts(const size_t counts[HG_CELL_STATES], int fd, struct hg_buf *out);

/* {"ok": 12, "running": 3}: a new reference. */
json_t *hg_state_counts_json(const size_t counts[HG_CELL_STATES]);

/* Append the same of a run, then " (9 held)". */
void hg_state_format(const struct hg_run_state *state, int fd, struct hg_buf *out);

#endif
