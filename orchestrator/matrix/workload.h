/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_WORKLOAD_H
#define HG_MATRIX_WORKLOAD_H

#include <jansson.h>
#include <stdbool.h>

#include "base/fields.h"

/* What runs in every cell: the "workload" of a matrix without the members where cells start. */
struct hg_workload {
    char *program;   /* "hpcgrid-worker", or NULL when command is given */
    char **command;  /* words, no shell; NULL when program is given. Words and lists of words: see
                        raw */
    json_t *words;   /* "command" as written: strings and lists of strings (a list is left out as a
                        whole) */
    json_t *launch;  /* list of words instead of the site's launcher; NULL: the site's; []: once,
                        first node */
    json_t *env;     /* name: template; NULL: none */
    json_t *files;   /* file name: template; NULL: none */
    char *cwd;       /* NULL: the matrix's folder */
    json_t *results; /* result key: regular expression; NULL: none */
    json_t *start;   /* members where cells start: object, never NULL */
};

extern const struct hg_field hg_workload_fields[];

/* Decode the "workload" of a matrix; what is not in the table goes into start. Every problem is added to errs. */
void hg_workload_decode(const struct hg_json_doc *doc, const json_t *object, struct hg_workload *w,
                        struct hg_errs *errs);
void hg_workload_done(struct hg_workload *w);

/* Variables that hpcgrid sets for every rank after the workload's own, and files that it keeps in an attempt's folder; end with NULL.
 * Of the files there are also rank.N.json. */
extern const char *const hg_workload_own_variables[], *const hg_workload_own_files[];

/* Does hpcgrid itself keep a file of this name in an attempt's folder? The workload's "files" must not. */
bool hg_workload_is_own_file(const char *name);

#endif
