/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets of images, read once. */
#ifndef WK_DATA_DATASET_H
#define WK_DATA_DATASET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* One part of a data set, in host memory. */
struct wk_part {
    int n;           /* samples that are used */
    int n_all;       /* samples in the file */
    uint8_t *values; /* (n, width) */
    int32_t *labels; /* (n) */
};

struct wk_dataset {
    char name[64]; /* what it really is: "mnist", "mnist-slice", "mnist-other" with other counts */
    char hash[33], train_hash[33]; /* XXH3-128 over the parts that are used; over train alone */
    char *folder;                  /* where it was found */
    int width;                     /* values of a sample */
    int classes;                   /* labels are below it */
    double mean, std;              /* of values / 255: batches are normalised with them */
    struct wk_part train, test;
};

struct wk_dataset_options {
    const char *name; /* "mnist", "mnist-slice" */
    const char *data; /* folder; NULL: $HPCGRID_DATA/<name>, else what ships with hpcgrid */
    long long samples, test_samples; /* use only the first so many; 0: all */
};

/* True if there is a data set of that name; else err is set (INPUT). */
bool wk_dataset_known(const char *name, struct hg_err *err);

/* Find and read a data set. Fails with INPUT: unknown name, missing or damaged file (named, with
 * the next step), images and labels that do not belong together, fewer samples than requested. NULL
 * on failure. */
struct wk_dataset *wk_dataset_open(const struct wk_dataset_options *options, struct hg_err *err);
void wk_dataset_free(struct wk_dataset *set);

#endif
