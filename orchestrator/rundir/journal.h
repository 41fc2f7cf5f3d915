/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_JOURNAL_H
#define HG_RUNDIR_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "rundir/runstate.h"

/* Writing events.jsonl (rundir/events.h): only while holding the run's lock. */
struct hg_journal;

/* Open for appending, with everything folded. A torn last line is cut off, with a warning. guard
 * (may be NULL) is called before every write: do we still own the run? Fails with AGAIN when the
 * file has lines of an equal or higher fence: take a higher lock. */
struct hg_journal *hg_journal_open(const char *run_dir, uint32_t fence,
                                   int (*guard)(void *context, struct hg_err *err), void *context,
                                   struct hg_err *err);
const struct hg_run_state *hg_journal_state(const struct hg_journal *j);

/* Queue a line; the reference is taken (NULL: a text in it was not UTF-8, an error). now_s: for `t`. */
int hg_journal_add(struct hg_journal *j, double now_s, const char *kind, json_t *members,
                   struct hg_err *err);

/* Write what is queued (one write), sync it, then fold it. On failure nothing is written, folded or
 * queued. */
int hg_journal_commit(struct hg_journal *j, struct hg_err *err);
bool hg_journal_is_empty(const struct hg_journal *j); /* nothing is queued */

/* What is still queued is dropped. */
void hg_journal_close(struct hg_journal *j);

#endif
