/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_BATCH_H
#define HG_PLAN_BATCH_H

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "matrix/cell.h"
#include "matrix/matrix.h"
#include "matrix/select.h"

/* Cells of one resource shape: one job array (or a few, where limits split it). */
struct hg_batch {
    int number; /* 1, 2, ...: names batches/<n>.sh and batches/<n>.cells.jsonl */
    json_t *
        job; /* as slurm/client/executor.h describes it, without array, args, key and output; script and
                    work_dir are there once the plan has a folder */
    char **ids; /* cell ids, by line of the cells file */
    size_t n, cap;
    json_t *places;      /* where that stands: hg_shape_places; NULL: not known */
    double time_s;       /* the limit asked for, 0: none */
    long long devices;   /* GPUs of one cell, or its cores where the hardware has no GPUs */
    char *hardware;      /* name in the site */
    char *backend;       /* of the hardware; NULL: not said */
    bool gpu;            /* the hardware has GPUs */
    char **modules;      /* to load, NULL-terminated; NULL: none */
    char *shape;         /* what the cells have in common, as text */
    struct hg_buf cells; /* text of a cells file not yet saved; empty once it is */
    bool renewed;        /* asks for other resources than the saved script does */
};

struct hg_skip {
    char *id, *why;
};

/* Everything that a run will submit. Saved as plan.json (without ids) plus
 * batches/<n>.{sh,cells.jsonl,cells.idx}; a line of a cells file is {"id", "baseline", "added", "cell"}. */
struct hg_plan {
    char *name;
    char run_key[33];
    struct hg_batch *items;
    size_t n, cap;
    struct hg_cells_count count; /* of the walk, warnings included; empty in a loaded plan */
    size_t cells;                /* of all batches */
    struct {
        struct hg_skip *items;
        size_t n, cap;
    } skips;          /* cells that would hold more than their device has */
    size_t renewed;   /* known cells whose batch asks for other resources from now on */
    size_t reshaped;  /* known cells that would ask for other resources now but cannot: their batch
                         does not agree */
    json_t *workload; /* what the node side needs of it: program or command, launch, env, files,
                         results, cwd (absolute) */
    json_t *site;     /* name, launcher (words), env, heartbeat_s */
};

/* Seconds between two signs of life of a cell at work, by the plan's site. */
double hg_plan_heartbeat_s(const json_t *site);

/* Group the cells that select picks (NULL: all) into batches. Cells already in `known` (a loaded
 * plan of the same run; may be NULL) keep their batch and line; only new ones are appended, as new
 * batches. New cells that would hold more than their device has are left out and listed in skips; when no cell is left
 * that is an error (INPUT). A known batch whose cells all ask for the same other resources now (a longer time, more
 * memory) asks for those in submissions to come. NULL on failure. */
struct hg_plan *hg_plan_make(const struct hg_matrix *m, const struct hg_selector *select,
                             const struct hg_plan *known, struct hg_errs *errs);

/* Write matrix.json, site.json, the new batches' files and plan.json below dir (which exists), in
 * this order: a plan.json never names a file that is not there. */
int hg_plan_save(struct hg_plan *plan, const struct hg_matrix *m, const char *dir,
                 struct hg_err *err);
/* NOTFOUND if dir has no plan.json. */
struct hg_plan *hg_plan_load(const char *dir, struct hg_err *err);
void hg_plan_free(struct hg_plan *plan);

/* ---- Parts, for the node side, `plan` and tests ---- */

/* plan.json as it stands, its schema checked: the plan of another version of the format is INPUT, with what is left to do. A new reference; NULL with err set. */
json_t *hg_plan_read(const char *dir, struct hg_err *err);

/* batches/<n>.cells.idx: for each line of the cells file the byte at which it begins, as 15 digits and a
 * newline, and one line more with the file's size. */
#define HG_PLAN_INDEX_LINE 16
void hg_plan_index_add(struct hg_buf *index, uint64_t place);

/* One line of a cells file as an object: found by the index, nothing else is read. NOTFOUND behind the
 * last line; INPUT names file and line where index and file do not go together. A new reference. */
json_t *hg_plan_read_cell(const char *dir, int batch, size_t line, struct hg_err *err);

/* Call visit for each line of a batch's cells file, in order: an object with id, baseline, added,
 * cell, lent. visit returns 0 to go on. Returns what it returned, or -1 with err set. */
int hg_plan_each_cell(const char *dir, int batch,
                      int (*visit)(size_t line, const json_t *cell, void *context), void *context,
                      struct hg_err *err);

/* Append a cell's id, which the batch then owns (also on failure). NULL counts as failure: memory
 * is gone. */
int hg_batch_push(struct hg_batch *b, char *id);

/* GPU- or core-hours of all its cells by their time limit; 0 without one. */
double hg_batch_device_hours(const struct hg_batch *b);

/* Free what a batch owns, not the struct. */
void hg_batch_done(struct hg_batch *b);

/* Wall times are rounded up to a coarse ladder, so that a matrix with many of them does not become
 * many arrays: 1 2 3 5 10 15 20 30 45 minutes; 1 1.5 2 3 4 6 8 12 16 20 24 36 hours; 2 3 4 5 6 7
 * 10 14 21 28 days; then as asked. Never above `most_s`, the longest time that any cell of the same
 * hardware asks for: rounding must not pass a partition's limit. */
double hg_plan_round_time(double time_s, double most_s);

/* The batch script: a #SBATCH header with all that the job asks for, so that `sbatch
 * batches/<n>.sh` by hand gives the same job, modules, and one exec. Fails with INPUT when a value
 * cannot stand in a header line. */
int hg_plan_script(const struct hg_plan *plan, const struct hg_batch *b, const char *dir,
                   struct hg_buf *out, struct hg_err *err);

#endif
