/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_OWNER_H
#define HG_RUNDIR_OWNER_H

#include <jansson.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"

/* Which process a lock or a claim belongs to, and whether it is still alive. A process id alone is reused; with the boot, the pid name
 * space and the process's start time it identifies one process for ever. */
struct hg_owner {
    long pid;
    unsigned long long start_ticks; /* of the process, since boot */
    char host[65], machine[40], boot[40], pid_space[40];
};

enum hg_owner_life {
    HG_OWNER_UNKNOWN, /* of another machine, or not written by hpcgrid: nothing can be proved from here */
    HG_OWNER_ALIVE,
    HG_OWNER_DEAD, /* its process is gone, or its machine has booted since */
};

/* This process. */
void hg_owner_self(struct hg_owner *me);

enum hg_owner_life hg_owner_life(const struct hg_owner *owner);

/* As members host, pid, start, machine, boot, pid_space of an object. Decoding leaves absent members empty. */
void hg_owner_encode(const struct hg_owner *owner, json_t *object);
void hg_owner_decode(const json_t *object, struct hg_owner *owner);

/* Take a name that only one process gets: write the text to tmp, which nobody else uses, and link it to path. link(2) is also atomic
 * on network file systems. Returns 0: it is ours, *made is the file; 1: somebody else has it; -1: err set. tmp is removed. */
int hg_owner_link(const char *tmp, const char *path, const struct hg_buf *text, mode_t mode,
                  struct stat *made, struct hg_err *err);

#endif
