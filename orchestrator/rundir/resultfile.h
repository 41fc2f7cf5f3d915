/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_RESULTFILE_H
#define HG_RUNDIR_RESULTFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "rundir/attempts.h"

#define HG_RESULT_SCHEMA "hpcgrid-result/2"
#define HG_RESULT_MAX ((size_t)16 << 20) /* bytes of a workload's result file */
#define HG_RESULT_DEPTH 64
#define HG_RESULT_VALUES 1000000 /* a parsed value takes some 200 bytes, whatever its text */

/* The result of an attempt, checked: complete, as exec wrote it (base/seal.h), of this place, of this run (run_key; NULL: any), of
 * this cell (NULL: any). curve: with its loss curve; else "loss" is an empty object. A new reference, or NULL with err set: NOTFOUND if there is no file, else what is wrong with it. */
json_t *hg_resultfile_read(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                           const char *run_key, const json_t *cell, bool curve, struct hg_err *err);

/* A cell of the plan as it ran, by the cell in its result: what its job requests, and notes, may have been corrected since; the requests are
 * the result's, the notes the plan's. A new reference; NULL: it is another cell. */
json_t *hg_resultfile_cell(const json_t *cell, const json_t *ran);

/* Is this a word that a result has as its status: "ok", "failed", ...? */
bool hg_resultfile_is_status(const char *word);

/* Parse JSON that a foreign program wrote: at most HG_RESULT_DEPTH levels, HG_RESULT_VALUES values,
 * no member twice; NaN and infinities become null and set *diverged. NULL with err set. */
json_t *hg_resultfile_parse(const char *name, const char *text, size_t len, bool *diverged,
                            struct hg_err *err);

#endif
