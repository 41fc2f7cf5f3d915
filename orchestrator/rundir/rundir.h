/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_RUNDIR_H
#define HG_RUNDIR_RUNDIR_H

#include "base/err.h"
#include "base/words.h"

/* A run's folder:
 *
 *   reports/<name>/<run>/   matrix.json  site.json  plan.json  events.jsonl  lock
 *                           batches/<n>.{sh,cells.jsonl,cells.idx}  cells/<n>-<group>/<id>.<attempt>/...  tables/
 *
 * matrix.json is the user's text, site.json the resolved site; plan.json is plan/batch.h's;
 * events.jsonl is rundir/events.h's. Nothing under cells/ exists before a cell starts. */
struct hg_rundir {
    char *path; /* absolute */
    char *name; /* of the matrix */
    int number; /* 1 for "001" */
};

/* The newest run of a matrix name under root ("reports" unless HPCGRID_REPORTS or --reports is given). NOTFOUND if there
 * is none; ENV, here and below, if another user could have made the way to it, or can swap a part of it. */
int hg_rundir_newest(const char *root, const char *name, struct hg_rundir *rd, struct hg_err *err);

/* A new run, with the number behind that of the run `after` (0: there was none); 1 without a message if a run has that number
 * by now. With after < 0 it is the next free number, whoever else makes runs. */
int hg_rundir_create(const char *root, const char *name, int after, struct hg_rundir *rd,
                     struct hg_err *err);

/* The run that the user named: a run folder, a matrix file (the newest run of its name; of several sites that of $HPCGRID_SITE, or
 * the only one), "NAME" or "NAME/002". */
int hg_rundir_find(const char *root, const char *word, struct hg_rundir *rd, struct hg_err *err);

/* The names of the runs of a matrix file with several sites, NAME.SITE, sorted, into an empty list: none if the file is not a matrix,
 * or has one site by now and there are runs of NAME itself. Otherwise *plain is the folder of runs of NAME from before
 * it had several, which are not in the list, yours to free, else NULL. Returns 0, or -1 with err set: it is not JSON. */
int hg_rundir_parts(const char *root, const char *path, struct hg_words *parts, char **plain,
                    struct hg_err *err);

void hg_rundir_done(struct hg_rundir *rd);

/* Path of a file in the run, printf-like; yours to free. */
char *hg_rundir_path(const struct hg_rundir *rd, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
