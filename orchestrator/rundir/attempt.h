/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_ATTEMPT_H
#define HG_RUNDIR_ATTEMPT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/* One try at a cell, in a folder of its own (rundir/attempts.h): S the claim number of the submission, R Slurm's restart
 * count. Only the node side writes here:
 *
 *   claim.json      who runs it (rundir/claim.h), and what every rank gets: its environment, its working directory
 *   cell.json       the cell's members, notes left out: what the workload reads
 *   out.log err.log what the workload printed, all ranks
 *   rank.<r>.json   times, memory, host and device of each rank
 *   workload.json   what the workload said of itself ($HPCGRID_RESULT)
 *   result.json     all of it, merged; there exactly when the attempt has ended
 *
 * and the workload's own files. Once the last result is on the disk, the ranks' files that are merged into it, workload.json
 * if the result is a good one, and logs that have nothing in them are removed. */
#define HG_ATTEMPT_NAME_MAX 32

void hg_attempt_name(unsigned submission, unsigned restarts, char out[static HG_ATTEMPT_NAME_MAX]);

/* False if this is no attempt's name. */
bool hg_attempt_parse(const char *name, unsigned *submission, unsigned *restarts);

/* Is this fit to be a file name made from a cell id or a template's name? As hg_text_is_name, up to
 * 127 characters. */
bool hg_attempt_is_file_name(const char *name);

/* Write a file that is not there yet; durable: it is on the disk when this returns. -1 with errno set. */
int hg_attempt_create(const char *path, const struct hg_buf *text, bool durable);

/* Write a file of the attempt that only its own processes need: as a whole (rename), but without
 * waiting for the disk. Claim and result are what must survive a crash. */
int hg_attempt_write(const char *path, const struct hg_buf *text, struct hg_err *err);

/* The same for JSON, indented. */
int hg_attempt_write_json(const char *path, const json_t *value, struct hg_err *err);

#endif
