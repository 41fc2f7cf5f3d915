/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_RESULTS_H
#define HG_RESULTS_RESULTS_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "contract/repeats.h"
#include "results/metric.h"
#include "results/pack.h"
#include "results/result.h"

/* A result set, "schema": "hpcgrid-results/1": published numbers, another tool's runs, or what was
 * collected from a run of ours. Members and rules: reports/reference/README.md. */

#define HG_RESULTS_SCHEMA "hpcgrid-results/1"

/* Larger files are refused: about 400,000 results. */
#define HG_RESULTS_FILE_MAX ((size_t)256 << 20)

struct hg_results {
    struct hg_json_doc doc;
    unsigned flags;
    const char *name, *run;    /* run: "" in sets that are not a run of ours */
    const json_t *baseline;    /* members put over a cell; NULL: none */
    const json_t *prices;      /* of an hour of a device, by hardware; NULL: not said */
    const char *currency;      /* of the prices; "" if not said */
    struct hg_repeats repeats; /* until 0: not adaptive */
    /* How to show the set; NULL where it does not say. */
    char **rows, **columns, **group, **work; /* NULL-terminated */
    char *metric, *where, *better, *numbers;
    struct hg_result *items;
    size_t n, cap;
    json_t *no_cell;       /* substitute for an entry of a tolerant set that has none */
    struct hg_store store; /* the entries */
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

/* "n" of a member of the head: how many cells were "skipped", or "removed" from the matrix. 0: none, or the set does not say. */
size_t hg_results_count(const struct hg_results *set, const char *member);

/* Read a set from a file ("-": standard input). Every problem is added to errs with its place, the first HG_ERRS_MAX of them. Returns 0
 * or -1; hg_results_done either way. set->doc.root has all members but "results", also on failure; NULL: the file is not JSON. */
int hg_results_load(const char *path, struct hg_results *set, struct hg_errs *errs);

/* The same from a document, which the set takes over, also on failure. */
int hg_results_decode(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                      struct hg_errs *errs);

/* The same one by one: begin with a document without "results", which the set takes over, also on failure, add entries, end. hg_results_add
 * takes over the entry, and file: its result.json, or "PACK.tar:FILE", from which its loss curve is read when it is needed; NULL: the entry
 * keeps it. begin and end return 0, or -1 with errs filled; hg_results_done either way. */
int hg_results_begin(struct hg_json_doc *doc, unsigned flags, struct hg_results *set,
                     struct hg_errs *errs);
void hg_results_add(struct hg_results *set, json_t *entry, char *file, struct hg_errs *errs);
int hg_results_end(struct hg_results *set, struct hg_errs *errs);

/* Decode an entry without keeping it, after hg_results_begin. *r lends from the entry and the set; first, best
 * and used are not known. 0 or -1. */
int hg_results_look(struct hg_results *set, const json_t *entry, struct hg_result *r,
                    struct hg_errs *errs);

void hg_results_done(struct hg_results *set);

#endif
