/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_LOCK_H
#define HG_RUNDIR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "rundir/owner.h"

/* Who may write a run: one process at a time. The lock is a file "lock.<number>" in the run's
 * folder, made with link(2), which is atomic on network file systems too, where fcntl locks often
 * are not. The highest number holds; a number is never used twice once its holder has written
 * anything, and is in every line it journals (rundir/events.h), so that lines that a deposed
 * holder still writes are recognised.
 *
 * A lock is stale when its holder is provably dead: this machine has booted since, or its process
 * is gone (or another process has its id). A stale lock is taken over. Of another machine nothing
 * can be proved: there only `steal` helps. */
struct hg_lock;

struct hg_lock_owner {
    uint32_t number;
    struct hg_owner who;
    double since_s; /* since 1970 */
    char nonce[33], command[200];
};

/* Take the lock with a number above `above`. command: for the message of processes that find it taken. Fails with ENV
 * and a text that says who holds it. Release with hg_lock_release. */
struct hg_lock *hg_lock_take(const char *run_dir, const char *command, bool steal, uint32_t above,
                             struct hg_err *err);
uint32_t hg_lock_number(const struct hg_lock *lock);

/* 0 while we still hold it; -1 with err set (ENV) once it was stolen. Fits hg_journal_open's guard.
 */
int hg_lock_check(void *lock, struct hg_err *err);

void hg_lock_release(struct hg_lock *lock); /* NULL is fine */

/* 1: held by *owner; 0: free, or its holder is dead; -1: err set. */
int hg_lock_find(const char *run_dir, struct hg_lock_owner *owner, struct hg_err *err);

#endif
