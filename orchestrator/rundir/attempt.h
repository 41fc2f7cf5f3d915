/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_ATTEMPT_H
#define HG_RUNDIR_ATTEMPT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "rundir/rundir.h"

/* One try at a cell, "<S>.<R>": S the claim number of the submission, R Slurm's restart count. It has a folder of its own,
 * where only the node side writes:
 *
 *   claim.json      who runs it (rundir/claim.h), and what every rank gets: its environment, its working directory
 *   cell.json       the cell's members, notes left out: what the workload reads
 *   out.log err.log what the workload printed, all ranks
 *   rank.<r>.json   times, memory, host and device of each rank
 *   workload.json   the workload's own results ($HPCGRID_RESULT)
 *   result.json     all of it, merged; it exists exactly when the attempt has ended
 *
 * and the workload's own files. Once the last result is on the disk, the ranks' files that are merged into it, workload.json
 * if the result is a good one, and logs that have nothing in them are removed. */
#define HG_ATTEMPT_NAME_MAX 32

void hg_attempt_name(unsigned submission, unsigned restarts, char out[static HG_ATTEMPT_NAME_MAX]);

/* False if this is not an attempt's name. */
bool hg_attempt_parse(const char *name, unsigned *submission, unsigned *restarts);

/* Can this be a file name made from a cell id or a template's name? As hg_text_is_name, up to
 * 127 characters. */
bool hg_attempt_is_file_name(const char *name);

/* ---- Where attempts are stored ---- */

/* The cells of a batch form groups of HG_GROUP_LINES lines of its cells file, and a group's attempts are in one folder:
 *
 *   cells/<batch>-<group>/<id>.<S>.<R>/    group: line (from 0) / HG_GROUP_LINES, in at least three digits
 *
 * So no folder has too many entries, and one listing shows all attempts of 250 cells. Names are found by listing: a network file
 * system may keep reporting a path as missing after it was created.
 *
 * Attempts that have ended may be packed (rundir/compact.h): their files are then in cells/<batch>-<group>.tar as
 * <id>.<S>.<R>/<file>, and are read from there as from a folder. An attempt that is in both counts once, and the pack's files are
 * read. */
#define HG_GROUP_LINES 250

/* The name of a group below the run: "cells/1-003". */
#define HG_GROUP_NAME_MAX 48
void hg_attempt_group_name(int batch, size_t line, char out[static HG_GROUP_NAME_MAX]);

/* Is this the name of a group's folder or pack in cells/? False if it is not as hpcgrid writes it. number counts groups of a batch
 * from 0. */
bool hg_attempt_group_parse(const char *name, int *batch, size_t *number, bool *pack);

/* Is this the name of an attempt in a group, "<id>.<S>.<R>"? Then *id_len is the length of its id. */
bool hg_attempt_name_parse(const char *name, size_t *id_len, unsigned *submission,
                           unsigned *restarts);

/* The attempt's folder; yours. */
char *hg_attempt_dir(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                     unsigned submission, unsigned restarts);

/* ---- Writing its files ---- */

/* Write a file of the attempt that only its own processes need: as a whole (rename), but without
 * waiting for the disk. Claim and result are what must survive a crash. */
int hg_attempt_write(const char *path, const struct hg_buf *text, struct hg_err *err);

/* The same for JSON, indented. */
int hg_attempt_write_json(const char *path, const json_t *value, struct hg_err *err);

#endif
