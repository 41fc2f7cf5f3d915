/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of several candidates, found by timing them, and a file that keeps the choices: GEMMs on a GPU have dozens of algorithms, and
 * which one is fast depends on the device, the library and the shape. Independent of CUDA. */
#ifndef WK_BACKENDS_CUDA_SEARCH_H
#define WK_BACKENDS_CUDA_SEARCH_H

#include <stdint.h>

#include "base/err.h"

/* So many runs in one try: a single launch on an idle device would time the host, not the device. */
#define WK_SEARCH_REPEATS 10

/* Seconds that one run of a candidate took, of so many queued behind each other; negative: it is not possible. */
typedef double wk_search_timer(void *context, int candidate, int repeats);

/* The candidate (0 to n - 1) with the least median of three tries of WK_SEARCH_REPEATS runs, after a run that does not count; one that takes
 * a tenth longer than the best so far in its first try gets no more. Of two within a hundredth the earlier one is taken: libraries put the
 * likely ones first. Returns -1 when none can do it. seconds may be NULL. */
int wk_search_best(int n, wk_search_timer *time, void *context, double *seconds);

/* The one in the middle (of an even number, the higher of the two); n > 0. Sorts them. */
double wk_search_median(double *values, size_t n);

#define WK_CHOICE_BYTES 64
/* What was chosen for a GEMM. */
struct wk_choice {
    int variant; /* see gemm.c */
    /* As cuBLASLt encodes it; valid for the same library only. */
    uint8_t algorithm[WK_CHOICE_BYTES];
    double seconds, tflops; /* of one run; of its multiplications and additions, per second */
};

/* The memory of choices for one device and library version. */
struct wk_choices;

/* Read the file, if there is one. One of another schema, device or library, or a damaged one, counts as none (with a warning when
 * damaged) and is replaced. path NULL: nothing is kept. End it with wk_choices_free. */
struct wk_choices *wk_choices_open(const char *path, const char *device, const char *library);
void wk_choices_free(struct wk_choices *c);
/* NULL where nothing is known. Lent until the next put. */
const struct wk_choice *wk_choices_find(const struct wk_choices *c, const char *key);
/* Remember. */
void wk_choices_put(struct wk_choices *c, const char *key, const struct wk_choice *choice);
/* Write the file, by rename, if something was put. What others wrote there meanwhile stays and wins: so all later runs choose
 * alike. */
int wk_choices_save(struct wk_choices *c, struct hg_err *err);

/* Path of the file of a device and library: in $HPCGRID_CACHE, else $XDG_CACHE_HOME/hpcgrid, else ~/.cache/hpcgrid; NULL if none of these
 * is set. Yours. */
char *wk_choices_path(const char *device, const char *library);

#endif
