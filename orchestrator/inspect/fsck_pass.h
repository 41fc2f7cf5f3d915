/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_INSPECT_FSCK_PASS_H
#define HG_INSPECT_FSCK_PASS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/map.h"
#include "inspect/fsck.h"
#include "matrix/names.h"
#include "rundir/attempts.h"
#include "rundir/rundir.h"
#include "rundir/runstate.h"

/* One pass of fsck over the folder of a run: what its parts (fsck_plan.h, fsck_cells.h) share. */
struct hg_fsck_pass {
    const struct hg_rundir *rd;
    struct hg_fsck *f; /* the findings */
    bool repair;
    uid_t owner;                /* of the run's folder */
    json_t *plan;               /* NULL: cannot be read */
    const char *run_key;        /* NULL: not known */
    struct hg_run_state *state; /* NULL: no journal, or it cannot be folded */
    bool has_journal;
    off_t journal_size; /* when it was read; a run that is at work adds to it */
    struct hg_map ids;  /* planned cells, each with hg_fsck_place */
    bool complete;      /* the plan is right: what does not match it is wrong */
    int batch;          /* whose cells are checked */
    size_t line;        /* ... and the first one of the group whose folder is checked */
    struct hg_attempt_group group;
    struct hg_names *names; /* of the planned cells, once a finding has one */
    struct hg_buf name;     /* of one */
    bool open;              /* others may enter the run's folder */
    bool claims;            /* an attempt of a submission was seen */
};

/* Add a finding (see struct hg_finding) with its text, once for a code, file and line. */
void hg_fsck_found(struct hg_fsck_pass *c, enum hg_severity severity, const char *code,
                   const char *file, size_t line, const char *next, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* How many findings of a code are kept. */
size_t hg_fsck_count(const struct hg_fsck_pass *c, const char *code);

/* Is there a plain file of this name below the run (1), nothing (0), or something else (-1, a finding)? Reading anything else may
 * never end. */
int hg_fsck_is_plain(struct hg_fsck_pass *c, const char *file);

/* Call each for the entries of a folder below the run, in the order of their names; modes, owners and leftovers are checked on the way.
 * A folder that is not there has none. each may be NULL. */
void hg_fsck_each(struct hg_fsck_pass *c, const char *dir,
                  void (*each)(struct hg_fsck_pass *c, const char *file, const char *name,
                               const struct stat *st));

/* The group of a cell, as one number. */
static inline size_t hg_fsck_place(int batch, size_t line)
{
    return ((size_t)batch << 32) + line / HG_GROUP_LINES;
}

#endif
