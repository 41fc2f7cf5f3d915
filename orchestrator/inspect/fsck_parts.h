/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the check share: fsck.c (findings, folders), fsck_plan.c, fsck_journal.c, fsck_cells.c. */
#ifndef HG_INSPECT_FSCK_PARTS_H
#define HG_INSPECT_FSCK_PARTS_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/map.h"
#include "rundir/attempts.h"
#include "rundir/events.h"
#include "inspect/fsck.h"

struct hg_check {
    const struct hg_rundir *rd;
    struct hg_fsck *f;
    bool repair;
    uid_t owner;                /* of the run's folder */
    json_t *plan;               /* NULL: cannot be read */
    const char *run_key;        /* NULL: not known */
    struct hg_run_state *state; /* NULL: no journal, or it cannot be folded */
    bool has_journal;
    off_t journal_size; /* when it was read; a run that is at work adds to it */
    struct hg_map ids;  /* planned cells, each with hg_fsck_place */
    bool complete;      /* the plan is right: what does not fit it is wrong */
    int batch;          /* whose cells are looked at */
    size_t line;        /* ... and the first one of the group whose folder is */
    struct hg_attempt_group group;
    bool open;   /* others may look into the run's folder */
    bool claims; /* an attempt of a submission was seen */
    struct hg_err *err;
};

struct hg_found {
    enum hg_severity severity;
    const char *code;
    const char *file;
    size_t line;
    const char *next;
};

/* Add a finding with its text. Returns 0, or -1 with c->err set: memory is gone. */
int hg_fsck_find(struct hg_check *c, struct hg_found found, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The last finding is something that --repair may remove; does it if it is to. */
void hg_fsck_removable(struct hg_check *c);

/* Is there a plain file of this name below the run (1), none at all (0), or something else (-2, a finding)?
 * -1 with c->err set. Anything else may never end when it is read. */
int hg_fsck_is_plain(struct hg_check *c, const char *file);

/* Call each for the entries of a folder below the run, in the order of their names; modes, owners and
 * leftovers are looked at on the way. A folder that is not there has none. each may be NULL; it returns 0
 * to go on. */
int hg_fsck_each(struct hg_check *c, const char *dir,
                 int (*each)(struct hg_check *c, const char *file, const char *name,
                             const struct stat *st));

/* In which group a cell is, as one number. */
static inline size_t hg_fsck_place(int batch, size_t line)
{
    return ((size_t)batch << 32) + line / HG_GROUP_LINES;
}

int hg_fsck_plan(struct hg_check *c);    /* matrix, site, plan, batches; fills plan and run_key */
int hg_fsck_journal(struct hg_check *c); /* fills state */

/* Has the journal grown since it was read? Then state is what it says now. Whatever lies in the run was in the journal before, so
 * only what it does not explain now is odd. */
bool hg_fsck_reread(struct hg_check *c);

int hg_fsck_cells(struct hg_check *c);

#endif
