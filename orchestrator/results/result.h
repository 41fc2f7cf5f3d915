/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_RESULT_H
#define HG_RESULTS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "results/pack.h"

/* One attempt at one cell of a result set (results/results.h). Everything is lent by the set. */
struct hg_result {
    const json_t *cell;       /* its "cell" */
    const json_t *comparable; /* NULL: none */
    const json_t *inputs;   /* members beside it that say the same (results/inputs.h); NULL: none */
    const json_t *env;      /* NULL: none */
    const json_t *platform; /* its members that say what the result was computed on; NULL: none */
    const json_t *code;     /* which code ran: node/README.md; NULL: not known */
    const char *device;     /* what its first rank computed on; NULL: not said */
    const char *id;         /* "" in sets without ids */
    const char *baseline_id; /* "" if none is named */
    const char *attempt;     /* "" if none began, or if the set does not say */
    /* Where it is below its run, "cells/1-003", "cells/1-003.tar"; "" where the set does not say. */
    const char *attempt_in;
    const char *status;  /* "ok", or why there is no result */
    const char *problem; /* the error's message, or what is wrong with the entry; NULL */
    bool ok;             /* status "ok" and nothing wrong with the entry */
    bool added;          /* not in the matrix: run because it is somebody's baseline */
    bool removed;        /* the run's matrix was edited and has this cell no more */
    bool used; /* the one that counts among the attempts at its cell: the newest good one, else the
                  newest */
    bool chosen; /* another good result of its cell does not count */
    bool has_rehearsal, rehearsal;
    bool oversubscribed, diverged;
    bool suspended;             /* the scheduler stopped it for a while: its times contain that */
    const char *not_comparable; /* why it is not comparable with other cells; NULL: it is */
    const char *footnote, *note, *source; /* remarks of its set, and where it is from; NULL */
    size_t runs;    /* 1; more: it is their published mean, see hg_result_get(r, "sd") */
    double devices; /* GPUs; cores on hardware without; NaN: the cell does not say */
    bool on_cores;  /* devices are cores */
    /* What it says against its own figures (results/doubts.h); NULL: nothing. */
    const json_t *doubts;
    uint64_t job;       /* hash of the job that ran it, and of the job's restarts; 0: not known */
    double steps;       /* of the optimizer; NaN: it does not say */
    double noise_times; /* train_s / noise_s; NaN: it does not say */
    double trained;     /* samples: samples_per_s x train_s, else the result's own "samples"; NaN */
    double loss, score; /* at the end of the training; NaN */
    size_t first;       /* index of the first attempt at the same cell */
    size_t best;        /* only there: index of the attempt that counts */

    /* All members; see hg_result_get. */
    const json_t *entry; /* while it is looked at; NULL: packed */
    struct hg_pack pack; /* without the cell */
    /* A result.json that has the loss curve, or "PACK.tar:FILE"; NULL: it is among the members. Owned by the set. */
    char *loss_file;
};

/* Are its files in a pack? */
bool hg_result_is_packed(const struct hg_result *r);

/* Where its files are, below its run: a folder, or a pack. "" if the set does not say. */
void hg_result_folder(const struct hg_result *r, struct hg_buf *out);

/* A member of a result; a new reference, NULL if it has none. */
json_t *hg_result_get(const struct hg_result *r, const char *member);

/* All members but the loss curve, and perhaps without the cell; a new reference. */
json_t *hg_result_entry(const struct hg_result *r);

/* "2.10" as 2 and 10: <submission>.<restart>. Of two attempts the one with the higher numbers is newer. */
void hg_result_attempt(const char *attempt, long numbers[static 2]);

/* The number at a dotted path of a result ("train_s", "eval.accuracy"); a list gives its median. NaN
 * if there is none. */
double hg_result_number(const struct hg_result *r, const char *path);

#endif
