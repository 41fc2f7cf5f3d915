/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_REASONS_H
#define HG_RUNDIR_REASONS_H

#include <stdbool.h>

/* What a pending reason of Slurm requires of a person. */
enum hg_reason_class {
    HG_REASON_WAIT,  /* it will start in its turn */
    HG_REASON_ACT,   /* a person has to act, then it continues */
    HG_REASON_NEVER, /* this job will never start: the cell fails */
    HG_REASON_REDO,  /* this job will never start, but the same one submitted again may */
};

struct hg_reason {
    const char *name; /* as Slurm spells it */
    enum hg_reason_class class;
    const char *text; /* plain words */
};

/* The entry for a reason: by its first word, or by what it begins with ("AssocGrp..."); one with
 * class WAIT and the text "waits in the queue" for any other. Never NULL. */
const struct hg_reason *hg_reason_find(const char *reason);

/* Is the job held, by its user or an administrator? */
bool hg_reason_is_hold(const char *reason);

/* ... by an administrator, so that its user cannot release it? */
bool hg_reason_is_admin_hold(const char *reason);

#endif
