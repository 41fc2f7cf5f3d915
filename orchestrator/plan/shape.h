/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_SHAPE_H
#define HG_PLAN_SHAPE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "matrix/site.h"
#include "plan/template.h"

/* Slurm may send a signal so much too early; a limit shorter than that leaves nothing to warn of. */
#define HG_SHAPE_EARLY_S 60

/* What one cell asks of Slurm, resolved against its site: cells with equal shapes share an array.
 */
struct hg_shape {
    const struct hg_hardware *hw; /* lent by the site */
    long long nodes, gpus_per_node, tasks_per_node, cpus_per_task;
    long long mem_mib;       /* per node; 0: the site's default */
    double time_s;           /* 0: the partition's limit */
    bool auto_time;          /* "time" is "auto": time_s is whoever's who forecasts it */
    long long signal_lead_s; /* "--signal=USR1@N" among the cell's options; 0: none */
    struct hg_words extra;   /* the site's and the cell's sbatch options */
    struct hg_words modules; /* the site's, then the cell's */
    struct hg_words lost;    /* of a rehearsal: options and modules that the box does not have */
    bool own_mem, own_cpus;  /* the cell says them, not the site */
};

/* Of a cell that a walk over the matrix gave, so its members were judged. Release with hg_shape_done. */
void hg_shape_make(const struct hg_site *site, const json_t *cell, struct hg_shape *shape);
void hg_shape_done(struct hg_shape *shape);

/* Append a text that is equal exactly for equal shapes. */
void hg_shape_key(const struct hg_shape *shape, struct hg_buf *out);
/* Where two such keys begin to differ, at the blank before a word or at an end. */
size_t hg_shape_key_same(const char *a, const char *b);

/* Seconds before the time limit at which the ranks are to get USR1; 0: not at all. worker: as in hg_shape_job. */
long long hg_shape_lead_s(const struct hg_shape *shape, const struct hg_site *site, bool worker);
/* Is the limit long enough for that? */
bool hg_shape_has_time(double time_s, long long lead_s);

/* The job object of the shape (slurm/client/executor.h), named `name`. worker: hpcgrid-worker runs, which
 * expects USR1 before the time limit; it would end any other program, so that gets it only when the
 * cell asks for it. A new reference. */
json_t *hg_shape_job(const struct hg_shape *shape, const struct hg_site *site, const char *name,
                     bool worker);

/* Where the job's requests are set, or could be: member of the job -> "hardware.a100.partition of the site". A
 * new reference. */
json_t *hg_shape_places(const struct hg_shape *shape);

#endif
