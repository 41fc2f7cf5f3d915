/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_RESULT_H
#define HG_RESULTS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/jsonpack.h"

/* A result set, "schema": "hpcgrid-results/1": published numbers, another tool's runs, or what was
 * collected from a run of ours. Members and rules: reports/README.md. */

#define HG_RESULTS_SCHEMA "hpcgrid-results/1"

/* Larger files are refused: about 400,000 results. */
#define HG_RESULTS_FILE_MAX ((size_t)256 << 20)

/* One attempt at one cell. Everything is lent by the set. */
struct hg_result {
    const json_t *cell;       /* its "cell" */
    const json_t *comparable; /* NULL: none */
    const json_t *env;        /* NULL: none */
    const char *device;       /* what its first rank computed on; NULL: not said */
    const char *id;           /* "" in sets without ids */
    const char *baseline_id;  /* "" if none is named */
    const char *attempt;      /* "" if none began, or if the set does not say */
    const char *
        attempt_in; /* where it lies below its run, "cells/1-003", "cells/1-003.tar"; "" where the set does not say */
    const char *status;  /* "ok", or why there is no result */
    const char *problem; /* the error's message, or what is wrong with the entry; NULL */
    bool ok;             /* status "ok" and nothing wrong with the entry */
    bool added;          /* not in the matrix: run because it is somebody's baseline */
    bool used; /* the one that counts among the attempts at its cell: the newest good one, else the
                  newest */
    bool has_rehearsal, rehearsal;
    bool oversubscribed, diverged;
    bool suspended; /* the scheduler stopped it for a while: its times contain that */
    double devices; /* GPUs; cores on hardware without; NaN: the cell does not say */
    bool on_cores;  /* devices are cores */
    size_t first;   /* index of the first attempt at the same cell */
    size_t best;    /* only there: index of the attempt that counts */

    /* All members; see hg_result_get. */
    const json_t *entry;            /* as written; NULL: packed */
    const struct hg_jsonpack *pack; /* where they are packed, without the cell */
    size_t packed;
    char *
        loss_file; /* a result.json that has the loss curve, or "PACK.tar:FILE"; NULL: it is among the members. Owned by the set */
};

struct hg_results {
    struct hg_json_doc doc;
    unsigned flags;
    const char *name, *run; /* run: "" in sets that are no run of ours */
    const json_t *baseline; /* members put over a cell; NULL: none */
    const json_t *prices;   /* of an hour of a device, by hardware; NULL: not said */
    const char *currency;   /* of the prices; "" if not said */
    /* How the set wants to be shown; NULL where it does not say. */
    char **rows, **columns, **group, **work; /* NULL-terminated */
    char *metric, *where, *better;
    struct hg_result *items;
    size_t n, cap;
    char **problems; /* owned texts behind result.problem */
    size_t n_problems;
    json_t *no_cell;          /* stands in where an entry of a tolerant set has none */
    struct hg_jsonpack *pack; /* entries that were added one by one; NULL: none */
};
#define HG_RESULTS_INIT \
    {                   \
        0               \
    }

enum {
    /* An entry with something wrong in it is kept with status "invalid" and its problem, and only
     * the set's own members are errors: for runs, where one damaged file must not hide the others.
     */
    HG_RESULTS_TOLERANT = 1,
};

/* Read a set from a document (hg_json_load_shared with HG_RESULTS_FILE_MAX), which the set takes over, also
 * on failure. Every problem is added to errs with its place, the first HG_ERRS_MAX of them. Returns 0
 * or -1; hg_results_done either way. */
int hg_results_decode(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                      struct hg_errs *errs);

/* The same for very many results, which are kept in little memory: begin with a document without "results",
 * add entries one by one, end. An entry's reference is taken over, on failure, too, and so is loss_file (NULL: the entry
 * has all there is). text: all members but id, baseline_id, added, attempt, attempt_in and cell as the text of an object that
 * hg_json_canonical_read took; then the entry needs only these six and those which hg_result_looks_at names, and every other one is
 * hg_result_member_is_plain. NULL: the entry has them all. 0 or -1; hg_results_done either way. */
int hg_results_begin(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                     struct hg_errs *errs);
int hg_results_add(struct hg_results *set, json_t *entry, const char *text, char *loss_file,
                   struct hg_errs *errs);
int hg_results_end(struct hg_results *set, struct hg_errs *errs);

/* Read an entry without keeping it, after hg_results_begin. *r lends from the entry, and from the set until the next look; first, best
 * and used are not known. 0 or -1. */
int hg_results_look(struct hg_results *set, const json_t *entry, struct hg_result *r,
                    struct hg_errs *errs);

void hg_results_done(struct hg_results *set);

/* Members that adding a result reads, by name and its length. */
bool hg_result_looks_at(const char *name, size_t len);

/* Is there surely nothing wrong with this member, whose value is compact JSON text? false: it has to be looked at. */
bool hg_result_member_is_plain(const char *name, size_t len, const char *value);

/* Are its files in a pack? */
bool hg_result_is_packed(const struct hg_result *r);

/* Where its files are, below its run: a folder, or a pack. "" if the set does not say. */
void hg_result_folder(const struct hg_result *r, struct hg_buf *out);

/* A member of a result; a new reference that nobody changes, NULL if it has none. */
json_t *hg_result_get(const struct hg_result *r, const char *member);

/* All members but the loss curve, and perhaps without the cell; a new reference. */
json_t *hg_result_entry(const struct hg_result *r);

/* "2.10" as 2 and 10: <submission>.<restart>. Of two attempts the one with the higher numbers is newer. */
void hg_result_attempt(const char *attempt, long numbers[static 2]);

/* The number at a dotted path of a result ("train_s", "eval.accuracy"); a list gives its median. NaN
 * if there is none. */
double hg_result_number(const struct hg_result *r, const char *path);

/* Seconds and rates must be above zero to stand in a ratio; this tells them by their names. */
bool hg_metric_is_time(const char *metric); /* "..._s", "..._s.median" */
bool hg_metric_is_rate(const char *metric); /* "..._per_s" */

/* 1: the higher the better (a rate, an accuracy, F1), -1: the lower (a time, a loss, energy, bytes),
 * 0: the name does not say. */
int hg_metric_direction(const char *metric);

#endif
