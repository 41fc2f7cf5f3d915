/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_DRAFT_H
#define HG_MATRIX_DRAFT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "matrix/grid.h"
#include "matrix/judge.h"
#include "matrix/matrix.h"

/* A grid while it is made from a matrix's text. Every problem is added to errs with its place. */
struct hg_draft {
    struct hg_grid *g;
    const struct hg_matrix *m;
    struct hg_judge judge;
    struct hg_errs *errs;
    bool full; /* of keys; said once */
};

/* Column of a key, made if it is new. -1: no cell may have this key (reported at the member's pointer), or there are too many. */
int hg_draft_column(struct hg_draft *p, const char *name, const char *pointer);

/* Judge the value of a key and put it into the pool. */
int hg_draft_value(struct hg_draft *p, const char *key, const json_t *json, const char *pointer,
                   hg_value *value);

/* Add an error at the value of a pointer, or at its key. Returns -1. */
int hg_draft_report(struct hg_draft *p, const char *pointer, bool at_key, const struct hg_err *err);

/* "no cell has ...", with a suggestion. Returns -1. */
int hg_draft_unknown_key(struct hg_draft *p, const char *pointer, bool at_key, const char *name);

#endif
