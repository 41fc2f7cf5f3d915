/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_FS_H
#define HG_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Append a whole file to out. Fails with INPUT when it is missing, not a regular file (a pipe is
 * read to its end) or larger than max bytes; "-" reads standard input. */
int hg_fs_read(const char *path, size_t max, struct hg_buf *out, struct hg_err *err);

/* The same for a file that another program made: it must be a regular one (or lead to one). A pipe
 * in its place, which would wait for a writer for ever, is INPUT. */
int hg_fs_read_file(const char *path, size_t max, struct hg_buf *out, struct hg_err *err);

/* Open such a file. Returns a descriptor, or -1 with err set: INPUT or ENV. */
int hg_fs_open_file(const char *path, struct hg_err *err);

/* Append the rest of an open file, at most max bytes, to out and close it. path is for messages. */
int hg_fs_read_open(int fd, const char *path, size_t max, struct hg_buf *out, struct hg_err *err);

/* Is it such a file, and can it be read? For one that somebody else is going to open. */
int hg_fs_check_file(const char *path, struct hg_err *err);

/* Replace a file as a whole: write a temporary name beside it, fsync, rename, fsync the folder. A
 * reader sees the old content or the new, never a part. The mode is 0600 less nothing: pass 0644
 * for files that colleagues may read. Behind a link the file it leads to is replaced; what is no file
 * (/dev/null, a pipe, /dev/stdout) is written into. */
int hg_fs_replace(const char *path, const void *data, size_t len, mode_t mode, struct hg_err *err);

/* The same for what comes bit by bit: begin, write to fd, end. Done drops what was not ended; it takes one that
 * was, or was never begun. */
struct hg_fs_part {
    int fd;
    char *path, *tmp;
};
#define HG_FS_PART_INIT \
    {                   \
        .fd = -1        \
    }
int hg_fs_part_begin(const char *path, mode_t mode, struct hg_fs_part *part, struct hg_err *err);
int hg_fs_part_end(struct hg_fs_part *part, struct hg_err *err);
void hg_fs_part_done(struct hg_fs_part *part);

/* A file without a name for what does not fit into memory, in $TMPDIR, else /tmp; it is gone when it is closed. NULL with err set: ENV. */
FILE *hg_fs_scratch(struct hg_err *err);
/* Writing to such a file, or reading it, failed: says why, and what to do. Returns -1. */
int hg_fs_scratch_failed(struct hg_err *err);

/* Can hg_fs_replace put a file there? To be known before the work whose result it is. ENV: it is a folder, or its folder takes
 * no file. */
int hg_fs_check_output(const char *path, struct hg_err *err);
/* The same where missing folders are made first. Makes none. */
int hg_fs_check_creatable(const char *path, struct hg_err *err);

/* First thing in a main: where standard input, output or error are closed, put something in their
 * place that can be neither read nor written. Else the next file that is opened, a journal or a
 * checkpoint, would get what is meant for them. */
void hg_fs_hold_streams(void);

/* Write all bytes, however many calls that takes. Returns 0, or -1 with errno. */
int hg_fs_write_all(int fd, const void *data, size_t len);

/* mkdir -p. */
int hg_fs_mkdirs(const char *path, mode_t mode, struct hg_err *err);

/* rm -r; a missing path is fine; symbolic links are removed, not followed. */
int hg_fs_remove_tree(const char *path, struct hg_err *err);

/* fsync of a folder, so that names made or renamed in it survive a crash. */
int hg_fs_sync_dir(const char *path, struct hg_err *err);

bool hg_fs_exists(const char *path);
bool hg_fs_is_dir(const char *path);

/* Absolute path of a file that may not exist yet ("." and ".." resolved where they can be). Yours;
 * NULL with err set when the working directory has vanished. */
char *hg_fs_absolute(const char *path, struct hg_err *err);

/* dir + "/" + name, yours to free; an absolute name stands alone. */
char *hg_fs_join(const char *dir, const char *name);

/* What stands behind the last slash of a path, or all of it if nothing does; lent. */
const char *hg_fs_basename(const char *path);

/* Folder part of a path ("." if none). Yours to free. */
char *hg_fs_dirname(const char *path);

/* Absolute path of the running program. Yours to free; NULL with err set. */
char *hg_fs_self(struct hg_err *err);

/* The first of these paths, relative to the running program's folder, that can be executed; yours. NULL:
 * none. The list ends with NULL. */
char *hg_fs_find_beside(const char *const *places);

/* The first program of this name in the folders that a PATH lists (NULL: /usr/bin alone); yours. NULL:
 * none. */
char *hg_fs_find_program(const char *name, const char *path);

/* How long what another machine has made may stay unseen here, seconds: shared file systems show new names late. Of the nearest
 * folder above that is seen, if the path itself is not. */
double hg_fs_late_s(const char *path);

#endif
