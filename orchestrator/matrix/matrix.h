/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_MATRIX_H
#define HG_MATRIX_MATRIX_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/fields.h"
#include "contract/repeats.h"
#include "matrix/retry.h"
#include "matrix/several.h"
#include "matrix/site.h"
#include "matrix/workload.h"

/* Who knows how long cells take: limits where "time" is "auto". */
struct hg_auto_times {
    /* Seconds that a cell will stay below; 0: nothing is known. NULL: of all cells. */
    double (*bound_s)(void *context, const json_t *members);
    void (*free)(void *context);
    void *context;
};

/* A matrix file, decoded. */
struct hg_matrix {
    struct hg_json_doc doc; /* the text, for places in messages and for the run's copy */
    char *dir;              /* absolute folder of the file (working directory for "-") */
    long long format;
    char *name;
    struct hg_site *site; /* of several the one that was chosen, else the first; then lent */
    struct hg_several several;
    char *site_given; /* instead of the matrix's own: a name, or an absolute path; NULL: none */
    struct hg_workload workload;
    json_t *site_json, *workload_json, *axes, *include, *exclude, *derive, *baseline, *report,
        *repeats_json, *together; /* as written; NULL: absent */
    struct hg_repeats repeats;
    bool has_shuffle;
    long long shuffle;
    long long running; /* limits.running; 0: no limit */
    double gpu_hours;  /* limits.gpu_hours; 0: no limit */
    struct hg_retry retry;
    struct hg_grid *grid;            /* the matrix made ready for walking */
    struct hg_auto_times auto_times; /* set by commands, freed with the matrix */
};

/* The members of a matrix and of its "limits"; both decode into struct hg_matrix. */
extern const struct hg_field hg_matrix_fields[], hg_limits_fields[];

/* Load and check a matrix: syntax, members, types, hardware, strategies, jq expressions. Every
 * problem is added to errs with its place. `site` overrides the matrix's own (a name or path; NULL:
 * none), or chooses one of several; without it $HPCGRID_SITE does. NULL on failure. */
struct hg_matrix *hg_matrix_load(const char *path, const char *site, struct hg_errs *errs);

/* Of a matrix with several sites, plan and count the cells of this one only; its runs are called NAME.SITE. Returns 0, or -1 with errs
 * added to: the site wants an account. */
int hg_matrix_choose(struct hg_matrix *m, struct hg_several_site *here, struct hg_errs *errs);
/* 0, or -1 with err set: there are several sites, and none is chosen. */
int hg_matrix_check_chosen(const struct hg_matrix *m, struct hg_err *err);
/* The site of cells that name this one; NULL: there are several, and it is none of them. */
const struct hg_site *hg_matrix_site(const struct hg_matrix *m, const char *name);
/* A cell's hardware; NULL if its site has none of its name. */
const struct hg_hardware *hg_matrix_hardware(const struct hg_matrix *m, const json_t *members);

/* Where the matrix gives cells this text for a key (NULL: any value), for messages: "/axes/case/1/predictions", "/derive/time";
 * "" if it does not. In scratch. */
const char *hg_matrix_pointer(const struct hg_matrix *m, const char *key, const char *text,
                              struct hg_buf *scratch);

void hg_matrix_free(struct hg_matrix *m);

#endif
