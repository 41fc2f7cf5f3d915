/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_EXPORTER_H
#define HG_RENDER_EXPORTER_H

#include "render/lines.h"

/* A file format for programs, filled line by line: results of any number. */
struct hg_export; /* one file that is being written, as its format has it */

struct hg_exporter {
    const char *name;
    /* Begin in the empty file `path`. NULL with err set: ENV. */
    struct hg_export *(*begin)(const char *path, struct hg_err *err);
    /* For hg_lines_write with lines in JSON; the context is the export. */
    hg_lines_put_fn put;
    /* All is in the file, which is closed. Returns 0, or -1 with err set. */
    int (*end)(struct hg_export *x, struct hg_err *err);
    /* Release, ended or not; takes NULL. */
    void (*drop)(struct hg_export *x);
};

extern const struct hg_exporter hg_exporter_sqlite; /* built where libsqlite3 is found */

#endif
