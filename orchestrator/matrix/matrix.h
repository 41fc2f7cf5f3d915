/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_MATRIX_H
#define HG_MATRIX_MATRIX_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "matrix/retry.h"
#include "matrix/site.h"

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

struct hg_matrix {
    struct hg_json_doc doc; /* the text, for places in messages and for the run's copy */
    char *dir;              /* absolute folder of the file (working directory for "-") */
    char *name;
    struct hg_site *site;
    struct hg_workload workload;
    json_t *axes, *include, *exclude, *derive, *baseline, *report; /* as written; NULL: absent */
    long long repeats;
    bool has_shuffle;
    long long shuffle;
    long long running; /* limits.running; 0: no limit */
    double gpu_hours;  /* limits.gpu_hours; 0: no limit */
    struct hg_retry retry;
    struct hg_grid *grid; /* the matrix made ready for walking; the model's own */
};

/* Load and check a matrix: syntax, members, types, hardware, strategies, jq expressions. Every
 * problem is added to errs with its place. `site` overrides the matrix's own (a name or path; NULL:
 * none). NULL on failure. */
struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs);
void hg_matrix_free(struct hg_matrix *m);

/* Does hpcgrid itself keep a file of this name in an attempt's folder? The workload's "files" must not. */
bool hg_matrix_is_own_file(const char *name);

/* The matrix format's JSON Schema (what matrices/matrix.schema.json holds); a new reference. */
json_t *hg_matrix_schema(void);

#endif
