/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_NOTIFY_H
#define HG_CMD_NOTIFY_H

#include "base/buf.h"
#include "rundir/runstate.h"

/* --notify CMD: tell a person who does not watch. The shell runs CMD once for each event, with a short text on stdin and facts in
 * variables (HPCGRID_EVENT, ...; templates/notify/README.md). It is never waited for while the run goes on; if it fails, or takes longer than a
 * minute, that is a warning.
 *
 * Events: "failure", the first cell of the run without a good result; "attention": Slurm has not answered for a minute, holds cells,
 * refused some, or what drives the run has stopped with an error; "end". */
struct hg_notify;

/* Append what a cell is called; line from 0. */
typedef void (*hg_notify_name_fn)(void *context, int batch, size_t line, struct hg_buf *out);

/* state: of the run before it is driven: what failed already is not told. Borrows command, run_dir and context. NULL if command is. */
struct hg_notify *hg_notify_create(const char *command, const char *run_dir,
                                   const struct hg_run_state *state, hg_notify_name_fn name,
                                   void *context);

/* What is new? away_s: how long Slurm has not answered. n may be NULL, as below. */
void hg_notify_look(struct hg_notify *n, const struct hg_run_state *state, double away_s);

/* The run is over. Told once, unless cells run again; not waited for. For a caller that goes on after the end. */
void hg_notify_over(struct hg_notify *n, const struct hg_run_state *state);

/* The run is over (why NULL), or is not driven any more, and why; "": a signal came, nobody is told. Waits for what was started, at most a
 * minute, and frees n. */
void hg_notify_end(struct hg_notify *n, const struct hg_run_state *state, const char *why);

#endif
