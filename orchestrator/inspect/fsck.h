/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_H
#define HG_INSPECT_FSCK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "rundir/rundir.h"

/* What is wrong in a run's folder: its journal, its plan, its results, leftovers. Everything that can be computed
 * again is: checksums, sizes, cell ids, places. */
enum hg_severity {
    HG_FSCK_NOTE,    /* unusual; the next command handles it, or nothing needs to be done */
    HG_FSCK_WARNING, /* tables are right, but something is not as hpcgrid leaves it */
    HG_FSCK_ERROR,   /* results or state are lost, or commands fail */
};

struct hg_finding {
    enum hg_severity severity;
    const char *code;  /* a word for programs: "journal-line" */
    char *file;        /* below the run's folder; "" is the folder itself */
    size_t line;       /* from 1; 0: the whole file */
    char *text, *next; /* what is wrong; what to do about it */
    bool can_repair;   /* --repair would remove it */
    bool repaired;
};

struct hg_fsck {
    struct hg_finding *items; /* in the order of the checks */
    size_t n, cap;
    size_t more; /* findings that are not in items: at most 100 of a code are kept */
    size_t lines, cells, attempts;         /* that were checked */
    size_t by_severity[HG_FSCK_ERROR + 1]; /* all of them, less what was repaired */
};

extern const char *const hg_severity_names[HG_FSCK_ERROR + 1]; /* "note", "warning", "error" */

/* Check a run. repair: remove what an hpcgrid that was killed left behind, under the run's lock; fails with
 * ENV if another process drives the run. Otherwise nothing is changed. Returns 0, or -1 with
 * err set when it could not be looked at; hg_fsck_done either way. */
int hg_fsck_run(const struct hg_rundir *rd, bool repair, struct hg_fsck *f, struct hg_err *err);
void hg_fsck_done(struct hg_fsck *f);

#endif
