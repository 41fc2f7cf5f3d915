/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "analysis/comparable.h"

/* Members of a cell or result whose product is an amount of work. The work is in proportion to each (to the edge of a grid it is
 * not). */
static const char *const work_keys[] = { "epochs",       "samples",   "train_samples",
                                         "examples",     "sequences", "train_examples",
                                         "problem_size", "elements",  "particles",
                                         "cells",        "timesteps", "iterations",
                                         "work" };

bool hg_work_is_key(const struct hg_report *r, const char *key)
{
    for (size_t i = 0; r->work && r->work[i]; i++)
        if (strcmp(r->work[i], key) == 0)
            return true;
    if (r->work)
        return false;
    for (size_t i = 0; i < sizeof work_keys / sizeof *work_keys; i++)
        if (strcmp(work_keys[i], key) == 0)
            return true;
    return strcmp(key, "steps") == 0;
}

static double number_of(const struct hg_result *r, const char *key)
{
    const json_t *value = hg_comparable_get(r, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

int hg_work_settle(struct hg_builder *b)
{
    const struct hg_results *set = NULL;
    struct hg_report *r = b->r;
    int rc = 0;

    r->work = b->options->work;
    for (size_t s = 0; s < r->n_sets && !r->work; s++) {
        set = &r->sets[s];
        r->work = set->work;
    }
    if (!b->options->work && !r->work)
        set = NULL;
    for (size_t i = 0; r->work && r->work[i]; i++) {
        char pointer[48];

        snprintf(pointer, sizeof pointer, "/report/work/%zu", i);
        if (hg_builder_key(b, "--work", r->work[i], set, pointer) == HG_MAP_NONE)
            rc = -1;
    }
    return rc;
}

/* Samples of one optimizer step. */
static double global_batch(const struct hg_result *r)
{
    double batch = number_of(r, "global_batch");

    return isnan(batch) ? number_of(r, "batch_size") * r->devices : batch;
}

/* own / base of one member; 1 if neither has it, NaN if only one has. */
static double ratio_of(const struct hg_result *own, const struct hg_result *base, const char *key,
                       bool *found)
{
    const json_t *a = hg_comparable_get(own, key), *b = hg_comparable_get(base, key);

    if (!a && !b)
        return 1;
    if (a && b && !json_is_number(a) && hg_json_equal(a, b)) /* "size": "large" */
        return 1;
    *found = true;
    return number_of(own, key) / number_of(base, key);
}

/* Work as the members give it: the product of the requested keys, or steps times the batch, or the product of all amounts. */
static double declared(const struct hg_report *r, const struct hg_result *own,
                       const struct hg_result *base)
{
    bool found = false;
    double work = 1;

    for (size_t i = 0; r->work && r->work[i]; i++)
        work *= ratio_of(own, base, r->work[i], &found);
    if (r->work)
        return work;
    work = ratio_of(own, base, "steps", &found);
    if (found)
        return work * global_batch(own) / global_batch(base);
    for (size_t i = 0; i < sizeof work_keys / sizeof *work_keys; i++)
        work *= ratio_of(own, base, work_keys[i], &found);
    return found ? work : NAN;
}

/* Samples that were trained, as measured. */
static double trained(const struct hg_result *r)
{
    double rate = hg_result_number(r, "samples_per_s"), time_s = hg_result_number(r, "train_s");

    return rate > 0 && time_s > 0 ? rate * time_s : NAN;
}

/* Is the metric, up to its first dot, this one? */
static bool is_metric(const struct hg_report *r, const char *name)
{
    size_t n = strlen(name);

    return strncmp(r->metric, name, n) == 0 && (r->metric[n] == '\0' || r->metric[n] == '.');
}

double hg_work_ratio(const struct hg_report *r, const struct hg_result *own,
                     const struct hg_result *base)
{
    bool found;
    double work;

    if (is_metric(r, "step_s"))
        return global_batch(own) / global_batch(base);
    if (is_metric(r, "epoch_s"))
        return declared(r, own, base) /
               (hg_work_is_key(r, "epochs") ? ratio_of(own, base, "epochs", &found) : 1);
    if (is_metric(r, "init_s") || is_metric(r, "eval_s"))
        return NAN;
    work = declared(r, own, base);
    return isnan(work) ? trained(own) / trained(base) : work;
}
