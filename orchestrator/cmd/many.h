/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_MANY_H
#define HG_CMD_MANY_H

#include "render/many.h"
#include "drive/drive.h"
#include "rundir/rundir.h"

/* What a user named, if it has so many results that they are read one by one (HG_MANY_MIN; a file: of its bytes), and all is well with
 * them. NULL with err not set: it is to be read as a whole (hg_cmd_results). Ready for hg_many_write; free with hg_many_free.
 * digest: if it shows more than HG_TABLES_MAX, ready for hg_many_report. */
struct hg_many *hg_cmd_many(const char *word, const char *reports,
                            const struct hg_report_options *options, bool digest,
                            struct hg_err *err);

/* The same of a run whose journal is known, or not (state NULL). */
struct hg_many *hg_cmd_many_run(const struct hg_rundir *rd, const struct hg_run_state *state,
                                const struct hg_report_options *options, bool digest,
                                struct hg_err *err);

/* Write the CSV into a file (NULL: standard output). Returns 0, or -1 with err set. */
int hg_cmd_many_write(struct hg_many *m, const char *path, struct hg_err *err);

#endif
