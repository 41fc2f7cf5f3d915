/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_BATCH_H
#define HG_PLAN_BATCH_H

#include <jansson.h>

#include "base/buf.h"
#include "base/ranges.h"
#include "contract/repeats.h"
#include "matrix/cell.h"
#include "matrix/names.h"

/* Which run of which configuration a cell is. */
struct hg_turn {
    uint32_t configuration; /* from 1; 0: the matrix does not have the cell (any more) */
    uint32_t run;           /* from 1, in the order of the rounds */
};

/* Cells of one resource shape: one job array (or a few, where limits split it). */
struct hg_batch {
    int number; /* 1, 2, ...: names batches/<n>.sh and batches/<n>.cells.jsonl */
    /* As slurm/client/executor.h describes it, without array, args, key and output; script and work_dir are there once the plan has a folder. */
    json_t *job;
    char **ids; /* cell ids, by line of the cells file */
    size_t n, cap;
    unsigned together;     /* so many lines at a time share a job; 0 or 1: each has its own */
    struct hg_turn *turns; /* adaptive repeats: by line; NULL: every cell is run */
    json_t *places;        /* where that is set: hg_shape_places; NULL: not known */
    double time_s;         /* the limit of a job, 0: none */
    bool auto_time;        /* "time" is "auto": it is raised after TIMEOUT */
    double time_max_s;     /* ... to at most this; 0: not known */
    long long devices;     /* GPUs of one cell, or its cores where the hardware has no GPUs */
    char *hardware;        /* name in the site */
    char *backend;         /* of the hardware; NULL: not said */
    bool gpu;              /* the hardware has GPUs */
    char **modules;        /* to load, NULL-terminated; NULL: none */
    char *shape;           /* what the cells have in common, as text */
    char request[17];      /* hash of all that a job asks of Slurm, modules included */
    struct hg_buf cells;   /* text of a cells file not yet saved; empty once it is */
    uint64_t *saved;       /* of a loaded batch: the hash of each line of its cells file */
    size_t *at;            /* of a known batch: where each line's new text begins in cells, from 1;
                                 0: the line stays as it is saved. NULL: cells is the whole file */
    struct hg_ranges removed; /* lines of cells that the matrix has no more */
    struct hg_ranges done;    /* lines with a good result: whoever makes a plan anew sets them */
    bool renewed;             /* asks for other resources than the saved script does */
};

/* Cells that would hold more than their device has. */
struct hg_skip {
    char *id, *name, *why; /* name: NULL before hg_skips_name */
    size_t at;             /* its number in the walk over the matrix */
};

struct hg_skips {
    struct hg_skip *items;
    size_t n, cap;
};

void hg_skips_add(struct hg_skips *skips, const char *id, const char *why, size_t at);
void hg_skips_name(struct hg_skips *skips, struct hg_names *names); /* of the whole walk */
void hg_skips_done(struct hg_skips *skips);

/* Everything that a run will submit. Saved as plan.json (without ids) plus
 * batches/<n>.{sh,cells.jsonl,cells.idx}; a line of a cells file is {"id", "baseline", "added", "cell"}. */
struct hg_plan {
    char *name;
    char run_key[33];
    struct hg_batch *items;
    size_t n, cap;
    struct hg_cells_count count; /* of the walk, warnings included; empty in a loaded plan */
    size_t cells;                /* of all batches */
    /* Of the matrix; min cells of a configuration are submitted at first. */
    struct hg_repeats repeats;
    struct hg_skips skips;
    /* {"n", "cells": [{"id", "name", "why"}]}: those, and cells that can never run; the first few. NULL: none. */
    json_t *skipped;
    size_t removed;   /* cells that the run has and the matrix has no more */
    size_t added;     /* cells that the matrix has and the known plan had not */
    bool closed;      /* of a known plan: cells that it does not have are counted, not taken */
    json_t *workload; /* what the node side needs of it: program or command, launch, env, files,
                         results, cwd and matrix (absolute) */
    json_t *site;     /* name, launcher (words), env, heartbeat_s; rehearsal: matrix/rehearse.h */
};

void hg_plan_free(struct hg_plan *plan);

/* Seconds between two signs of life of a cell at work, by the plan's site. */
double hg_plan_heartbeat_s(const json_t *site);

/* Compute the hash of what a job of the batch asks of Slurm. */
void hg_batch_set_request(struct hg_batch *b);

/* Append a cell's id, which the batch then owns. */
void hg_batch_push(struct hg_batch *b, char *id);

/* Lines that share a job, at least 1, and jobs for n of the lines. */
unsigned hg_batch_together(const struct hg_batch *b);
size_t hg_batch_jobs(const struct hg_batch *b, size_t n);

/* How many of its cells that the matrix has are submitted at first: all, or with adaptive repeats those of the first round. */
size_t hg_batch_first(const struct hg_batch *b, const struct hg_repeats *repeats);

/* GPU- or core-hours of all its cells, or of those, by their time limit; 0 without one. */
double hg_batch_device_hours(const struct hg_batch *b);
double hg_batch_first_hours(const struct hg_batch *b, const struct hg_repeats *repeats);

/* Free what a batch owns, not the struct. */
void hg_batch_done(struct hg_batch *b);

#endif
