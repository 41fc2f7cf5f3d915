/* SPDX-License-Identifier: Apache-2.0 */
/* Cells written as text in a test, and what came of two of them. */
#ifndef HG_TESTS_WORKER_CELLS_H
#define HG_TESTS_WORKER_CELLS_H

#include <stdlib.h>

#include "base/fs.h"
#include "train/loop.h"
#include "train/train.h"
#include "worker.h"

/* The file that cells go through; cell_make_file and cell_remove_file are a group's setup and teardown. */
static char cell_path[] = "/tmp/hpcgrid-test-XXXXXX";

static inline int cell_make_file(void **state)
{
    (void)state;
    return mkstemp(cell_path) < 0 ? -1 : 0;
}

static inline int cell_remove_file(void **state)
{
    (void)state;
    return remove(cell_path);
}

/* Fails the test with the first thing that is wrong with the cell. */
static inline void cell_load(struct wk_config *c, const char *text)
{
    struct hg_errs errs = HG_ERRS_INIT;

    assert_int_equal(hg_fs_replace(cell_path, text, strlen(text), 0600, NULL), 0);
    if (wk_config_load(cell_path, c, &errs) < 0)
        fail_msg("%s", errs.items[0].text);
}

/* Largest relative difference of two trainings' losses; infinite where one has other steps or no number. */
static inline double losses_apart(const struct wk_result *a, const struct wk_result *b)
{
    double worst = 0;

    if (a->step_loss.n != b->step_loss.n || a->step_loss.n == 0)
        return INFINITY;
    for (size_t i = 0; i < a->step_loss.n; i++) {
        double x = a->step_loss.items[i], y = b->step_loss.items[i];

        worst = isfinite(x) && isfinite(y) ? fmax(worst, fabs(x - y) / y) : INFINITY;
    }
    return worst;
}

#endif
