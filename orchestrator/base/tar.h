/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_TAR_H
#define HG_BASE_TAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Plain ustar (POSIX.1-1988), files only: a header block of 512 bytes for each, its content, zeros up to the next block, and two blocks
 * of zeros at the end. tar(1) reads it. */
#define HG_TAR_BLOCK 512
#define HG_TAR_NAME_MAX 257 /* with its end: 155 bytes, "/", 100 bytes */

/* Content from 8 GiB on has no size in a header. */
#define HG_TAR_SIZE_MAX ((uint64_t)1 << 33)

struct hg_tar_file {
    char name[HG_TAR_NAME_MAX];
    uint64_t at, size; /* its content in the archive; bytes */
    int64_t mtime_s;   /* since 1970 */
};

/* Fill the block that goes before a file's content; at is not used. INPUT: the name or the size does not fit. */
int hg_tar_header(const struct hg_tar_file *file, char block[static HG_TAR_BLOCK],
                  struct hg_err *err);

/* Zeros behind content of this size. */
static inline size_t hg_tar_padding(uint64_t size)
{
    return (size_t)(-size % HG_TAR_BLOCK);
}

/* What a walk found out. */
struct hg_tar_walk {
    uint64_t files; /* visited */
    /* Blocks that are no header of a plain file where one should be, or a content that the archive does not hold. */
    uint64_t damaged;
    uint64_t where; /* byte at which the first of them begins */
    bool ended;     /* the archive has its end */
};

/* Call each for every file of an open archive, in its order; it returns 0 to go on. Behind what is damaged the walk goes on at the next
 * block that is a header. Returns 0, what each returned, or -1: it cannot be read. */
int hg_tar_each(int fd, const char *path,
                int (*each)(void *context, const struct hg_tar_file *file), void *context,
                struct hg_tar_walk *walk, struct hg_err *err);

/* Append a part of an open file to out. INPUT: the file ends before it does. */
int hg_tar_read_part(int fd, const char *path, uint64_t at, uint64_t size, struct hg_buf *out,
                     struct hg_err *err);

/* Append a file of at most max bytes, named "ARCHIVE.tar:NAME", to out. INPUT: the name has another form, or the archive does not have the file. */
int hg_tar_read_named(const char *named, size_t max, struct hg_buf *out, struct hg_err *err);

#endif
