/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_ATTEMPTS_H
#define HG_RUNDIR_ATTEMPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/tar.h"
#include "rundir/attempt.h"
#include "rundir/rundir.h"

/* The attempts of a run, in folders and packs (rundir/attempt.h), read group by group. */

/* One attempt of a group. */
struct hg_attempt_files {
    char *id; /* lent by the group */
    unsigned submission, restarts;
    bool claim, result; /* found by the last look at its files */
    bool folder;        /* it has one */
    size_t part,
        parts; /* its files in the pack: the first one's index, and how many; 0: it is not packed */
};

/* The attempts of one cell, oldest first; lent by the group. */
struct hg_attempt_list {
    struct hg_attempt_files *items;
    size_t n;
};

/* A group's folder, or its pack. */
struct hg_attempt_place {
    size_t number;
    int batch;
    bool pack;
};

/* A group that was read. A walk over cells in their order keeps one, and reads each folder once. Start it with its run:
 * struct hg_attempt_group g = { .rd = rd }; */
struct hg_attempt_group {
    const struct hg_rundir *rd; /* lent */
    /* quick: the caller looks again later, so a missing file is looked up by its path alone (one call, not four), and claims
     * are not read. locked: the run's lock is held, so nobody packs: cells/ is listed once, and what it does not list is not
     * looked up. */
    bool quick, locked;
    int batch; /* 0: none was read */
    size_t number;
    struct hg_attempt_files *items; /* by id, then oldest first */
    size_t n, cap;
    int pack; /* descriptor of its pack, if has_pack */
    bool has_pack;
    struct {
        struct hg_tar_file *items; /* by name */
        size_t n, cap;
    } parts;                 /* the files of attempts in it */
    struct hg_tar_walk walk; /* damage found in it */
    size_t strange;          /* files in it that belong to no attempt */
    bool listed;
    struct {
        struct hg_attempt_place *items;
        size_t n, cap;
    } places; /* groups in cells/, if it was listed */
};

/* The attempts of a cell; reads the cell's group unless it is the one that was read last. A cell that never began has no
 * attempts. Returns 0, or -1: the folder cannot be read. */
int hg_attempt_list(struct hg_attempt_group *g, int batch, size_t line, const char *id,
                    struct hg_attempt_list *list, struct hg_err *err);

/* Read the group of a folder or pack, "cells/1-003". INPUT if it is not one. */
int hg_attempt_group_read(struct hg_attempt_group *g, const char *name, struct hg_err *err);

/* The same for a group that was read. */
void hg_attempt_group_find(const struct hg_attempt_group *g, const char *id,
                           struct hg_attempt_list *list);

/* Forget what was read: the next list reads the folder again. The group may be used again. */
void hg_attempt_group_forget(struct hg_attempt_group *g);

/* Is the attempt packed? 0, 1, or -1 with err set. */
int hg_attempt_is_packed(const struct hg_rundir *rd, int batch, size_t line, const char *id,
                         unsigned submission, unsigned restarts, struct hg_err *err);

/* List an attempt's files: sets claim and result, and calls each (may be NULL) with every name. A folder that is gone has no files;
 * -1 with err set: it cannot be read. */
int hg_attempt_look(const struct hg_attempt_group *g, struct hg_attempt_files *f,
                    void (*each)(void *context, const char *name), void *context,
                    struct hg_err *err);

/* Path of a file in it ("": the folder itself, or the pack), for people and programs; for a packed one "PACK:<id>.<S>.<R>/<file>", as
 * hg_tar_read_named takes it. Yours. */
char *hg_attempt_path(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                      const char *name);

/* Open one of its files: a regular one, or a link to one. Its content is between begin and end of the open file; end -1: to
 * the end of the file, which may grow. Returns 0, HG_ATTEMPT_NONE: there is none, or -1 with err set. */
#define HG_ATTEMPT_NONE (-2)
struct hg_attempt_file {
    int fd; /* close it */
    off_t begin, end;
};
int hg_attempt_open(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, struct hg_attempt_file *file, struct hg_err *err);

/* Append one of its files of at most max bytes to out. Returns 0, HG_ATTEMPT_NONE, or -1 with err set. */
int hg_attempt_read(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                    const char *name, size_t max, struct hg_buf *out, struct hg_err *err);

/* Append the last bytes of one of its files, at most max; nothing if it cannot be read. */
void hg_attempt_read_tail(const struct hg_attempt_group *g, const struct hg_attempt_files *f,
                          const char *name, size_t max, struct hg_buf *out);

/* As hg_attempt_read, for result.json. Unless g->quick, HG_ATTEMPT_NONE is returned only after the folder was listed. Sets result, and
 * claim where there is none. */
int hg_attempt_read_result(const struct hg_attempt_group *g, struct hg_attempt_files *f, size_t max,
                           struct hg_buf *out, struct hg_err *err);

#endif
