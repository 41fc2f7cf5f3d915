/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_DOUBTS_H
#define HG_RESULTS_DOUBTS_H

#include <jansson.h>

#include "results/result.h"

/* What a result says about itself: does it contradict itself, what did it compute, how much, how well? */

/* The state behind an exit code other than 0, a signal, or the state that Slurm gave: "failed", "timeout", ...; NULL: none says that it
 * failed. `why`: "exit code 137", "Slurm: TIMEOUT"; its room is 64 bytes. */
const char *hg_doubts_state(const json_t *entry, char why[static 64]);

/* Set steps, noise_times, trained, loss and score of a result that was read from this entry. Returns what speaks against its figures, text by text:
 * { "most of its time is not measured: ": "train_s 60 of wall_s 4000" }; a new reference; NULL: nothing. The thresholds stand in
 * reports/footnotes.md. */
json_t *hg_doubts_find(const json_t *entry, struct hg_result *r);

#endif
