/* SPDX-License-Identifier: Apache-2.0 */
/* Whole input files, plain or gzip: told apart by their first bytes, never by their names. */
#ifndef WK_DATA_GZFILE_H
#define WK_DATA_GZFILE_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Append a file's content, unpacked if it is gzip, to out. max_bytes holds for what is on disk and
 * for what it unpacks to. "-" reads standard input. Fails with INPUT: missing, too large, gzip data
 * cut off or damaged. */
int wk_gzfile_read(const char *path, size_t max_bytes, struct hg_buf *out, struct hg_err *err);

/* The same for bytes in memory; name is for messages. */
int wk_gzfile_unpack(const char *name, const void *data, size_t len, size_t max_bytes,
                     struct hg_buf *out, struct hg_err *err);

#endif
