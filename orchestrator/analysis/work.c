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

/* Where amounts are looked up: hg_comparable_get, or what was asked for. */
typedef const json_t *(*getter)(const struct hg_result *r, const char *key);

static const json_t *get_asked(const struct hg_result *r, const char *key)
{
    return json_object_get(r->cell, key);
}

/* own / base of one member; 1 if neither has it, NaN if only one has. */
static double ratio_of(const struct hg_result *own, const struct hg_result *base, const char *key,
                       getter get, bool *found)
{
    const json_t *a = get(own, key), *b = get(base, key);

    if (!a && !b)
        return 1;
    if (a && b && !json_is_number(a) && hg_json_equal(a, b)) /* "size": "large" */
        return 1;
    *found = true;
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) / json_number_value(b)
                                                  : NAN;
}

/* Work as the members give it: the product of the requested keys, or steps times the batch, or the product of all amounts. 1 if there is
 * none of them. */
static double product(const struct hg_report *r, const struct hg_result *own,
                      const struct hg_result *base, getter get, bool *found)
{
    double work = 1;

    *found = false;
    for (size_t i = 0; r->work && r->work[i]; i++)
        work *= ratio_of(own, base, r->work[i], get, found);
    if (r->work)
        return work;
    work = ratio_of(own, base, "steps", get, found);
    if (*found)
        return work * global_batch(own) / global_batch(base);
    for (size_t i = 0; i < sizeof work_keys / sizeof *work_keys; i++)
        work *= ratio_of(own, base, work_keys[i], get, found);
    return work;
}

static double declared(const struct hg_report *r, const struct hg_result *own,
                       const struct hg_result *base)
{
    bool found;
    double work = product(r, own, base, hg_comparable_get, &found);

    return found || r->work ? work : NAN;
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
               (hg_work_is_key(r, "epochs")
                    ? ratio_of(own, base, "epochs", hg_comparable_get, &found)
                    : 1);
    if (is_metric(r, "init_s") || is_metric(r, "eval_s"))
        return NAN;
    work = declared(r, own, base);
    return isnan(work) ? own->trained / base->trained : work;
}

/* ---- Samples that nobody asked for ---- */

/* Rates may leave out the first steps; amounts are exact, but that an epoch ends within a step. */
#define RATE_TOLERANCE 0.25
#define COUNT_TOLERANCE 0.05

static bool is_far(double ratio, double tolerance)
{
    return ratio > 0 && fabs(log(ratio)) > log(1 + tolerance);
}

/* Steps and batches against what was asked for. A batch size that may be that of each device or of all is read as what speaks for the
 * result, unless its time did not fall. */
static double excess_of_steps(const struct hg_result *own, const struct hg_result *base,
                              double asked, double slack)
{
    double steps = own->steps / base->steps;
    double each = global_batch(own) / global_batch(base), all = each;

    if (isnan(number_of(own, "global_batch")) || isnan(number_of(base, "global_batch"))) {
        each = isnan(each) ? own->devices / base->devices : each;
        all = each * base->devices / own->devices;
        if (hg_result_number(own, "train_s") > 0.8 * hg_result_number(base, "train_s"))
            all = each;
    }
    if (!is_far(steps * all / asked, slack))
        return 1;
    return is_far(steps * each / asked, slack) ? steps * each / asked : 1;
}

/* What counts of steps may differ by: a step in each epoch of both. */
static double slack_of(const struct hg_result *own, const struct hg_result *base)
{
    double epochs = number_of(own, "epochs"), each = 1 / own->steps + 1 / base->steps;

    return COUNT_TOLERANCE + (isnan(each) ? 0 : (isnan(epochs) ? 1 : epochs) * each);
}

double hg_work_excess(const struct hg_report *r, const struct hg_result *own,
                      const struct hg_result *base)
{
    bool found;
    double slack = slack_of(own, base);
    double asked = product(r, own, base, r->work ? hg_comparable_get : get_asked, &found);
    double said = declared(r, own, base) / asked, counted = own->trained / base->trained / asked;
    double steps = excess_of_steps(own, base, asked, slack);

    if (is_metric(r, "init_s") || is_metric(r, "eval_s"))
        return NAN;
    return is_far(said, slack)               ? said
           : is_far(counted, RATE_TOLERANCE) ? counted
           : is_far(steps, COUNT_TOLERANCE)  ? steps
                                             : NAN;
}

bool hg_work_has_same_steps(const struct hg_result *a, const struct hg_result *b)
{
    double ratio = a->steps / b->steps;

    return !is_far(isnan(ratio) ? global_batch(b) / global_batch(a) : ratio, slack_of(a, b));
}
