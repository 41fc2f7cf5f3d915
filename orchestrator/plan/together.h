/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_TOGETHER_H
#define HG_PLAN_TOGETHER_H

#include "base/err.h"
#include "base/map.h"
#include "matrix/cell.h"
#include "plan/shape.h"

/* Which cells share a job, and in which order they run there. */

struct hg_mate {
    char *id, *line; /* line: of the cells file */
    double repeat;
};

/* One job. */
struct hg_party {
    struct hg_shape shape; /* of its cells; time_s: what they need in all, 0 if one has no limit */
    struct hg_buf rest;    /* the shape's key without the time */
    struct hg_mate *items; /* in the order in which they run, after hg_parties_order */
    size_t n, cap;
    size_t newest; /* of the first job of its kind: where the last one is */
};

struct hg_parties {
    const struct hg_matrix *m;
    struct hg_party *items;
    size_t n, cap;
    struct hg_map by_key; /* the first job of a kind */
};

/* Add a cell of the walk (with origins), which needs time_s (0: no limit), and its line of the cells file, which is taken. INPUT: it
 * requests other resources than those that it shares a job with. */
int hg_parties_add(struct hg_parties *p, const struct hg_cell *cell, double time_s, char *line,
                   struct hg_errs *errs);

/* All cells are there. Turns the order by the repeat, so that each is the first as often as the others and drift favours none.
 * INPUT: a job would request more time than its hardware allows. */
int hg_parties_order(struct hg_parties *p, struct hg_errs *errs);

void hg_parties_done(struct hg_parties *p);

#endif
