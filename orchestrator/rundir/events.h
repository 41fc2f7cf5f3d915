/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_EVENTS_H
#define HG_RUNDIR_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "rundir/runstate.h"

/* events.jsonl: what happened in a run, one JSON object per line, only ever appended to. It is the
 * run's only state: everything that is known of a cell is a fold over these lines.
 *
 *   {"seq":7,"fence":2,"t":1780000000.125,"kind":"submitted","submission":1,"job":17,"crc":"9c1185a5"}
 *
 * seq counts lines from 1. fence is the number of the writer's lock (rundir/lock.h). t: seconds since
 * 1970. crc is the CRC-32C of the line's bytes before `,"crc"`, eight hex digits. Any member may be
 * missing if it has no value; `rpc` [submit, poll, cancel] on any line counts requests made
 * since the previous line that had one. Sets are written "0-9,12". `tasks` are indices of the
 * submission's cells, in most runs those of its array; line = offset + index; lines count from 0 in batches/<n>.cells.jsonl.
 *
 *   open       schema, command, host, pid, transport, cluster a writer begins
 *   plan       batches [cells of batch 1, of 2, ...],         spare: which of the new lines of each batch
 *              removed, spare                                 ["3-59", "", ...] are not needed so far;
 *                                                             removed: all lines of each that the matrix
 *                                                             has no more
 *   need       batch, lines                                   a round of adaptive repeats asks for them
 *   intent     submission, claim, key, batch, offset, tasks,
 *              running_max, until, request, together, time_s  before the request; request: hash of what
 *                                                             its job asks for; together: so many indices
 *                                                             share a task of its array (index / together);
 *                                                             time_s: a raised limit
 *   submitted  submission, job
 *   ambiguous  submission, until, text                        outcome not known; "absent" counts only
 *                                                             when `until` has passed
 *   rejected   submission, again, text                        certainly not submitted
 *   settled    submission, found, by, job
 *   state      submission, tasks, state, restarts, text       as reported by the scheduler
 *   result     submission, tasks, restarts, status, text      a result file of these cells was read
 *   verdict    submission, tasks, status, text                there will be none; as the scheduler saw it
 *   lost       submission, tasks                              accepted, never started, forgotten: will be
 *                                                             submitted again
 *   recalled   submission, tasks                              taken back before they started, because
 *                                                             their batch asks for something else now, or
 *                                                             the job that they shared has ended
 *   cancel     batch, lines                                   requested by a person
 *   hold       batch, lines                                   requested by a person: they must not start;
 *                                                             without lines the whole run, with cells
 *                                                             that are added later
 *   release    batch, lines                                   the end of a hold, as above
 *   again      batch, lines, cause                            run again, as if they had never run;
 *                                                             cause: by the matrix's "retry"
 *   adopted    batch, lines                                   good results of jobs that were not
 *                                                             submitted here
 *   receipt                                                   a writer ends
 *
 * `claim` is the number that names a cell's attempt ("<claim>.<restarts>"). A submission that
 * replaces a lost one keeps its claim, so that of two copies only one works. */

/* Read and fold a run's events without a lock. A torn last line is left out. NULL with err set:
 * NOTFOUND if nothing was ever journalled, INPUT with the line if one is damaged. */
struct hg_run_state *hg_run_state_load(const char *run_dir, struct hg_err *err);

/* The same again and again while another process writes: *state, NULL at first, is brought up to the journal's end, and *used is what was
 * read of it. Returns 0, or -1 with err set. */
int hg_run_state_follow(const char *run_dir, struct hg_run_state **state, size_t *used,
                        struct hg_err *err);

/* Fold a journal into a state; *used is the length of its whole lines. */
int hg_run_state_read(struct hg_run_state *state, const char *path, size_t *used,
                      struct hg_err *err);

/* Fold the journal's next lines into a state; *used is the length of the lines that were folded, a torn last line is left out.
 * The path is for messages. */
int hg_run_state_fold(struct hg_run_state *state, const char *path, const char *text, size_t len,
                      size_t *used, struct hg_err *err);

/* Fold a record that is in no journal, to see what it would change; the reference is taken (NULL: a text in it was not UTF-8, an
 * error). INPUT: it contradicts those before it. */
int hg_run_state_apply(struct hg_run_state *state, const char *kind, json_t *members,
                       struct hg_err *err);

/* Is this a line (without its end) as it was written: JSON with the right checksum? */
bool hg_run_line_is_whole(const char *line, size_t len);

#endif
