/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/differences.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "analysis/comparable.h"
#include "analysis/work.h"

/* A loss is far off if it differs by this part of the larger one, and by LOSS_STEP or half of the larger one, and a score by a part of
 * its scale of 1 or 100; each in addition to how far the base's own runs lie apart. */
#define LOSS_PART 0.25
#define LOSS_STEP 0.1
#define SCORE_PART 0.1

/* Two results that are compared. */
struct pair {
    const struct hg_result *own, *other;
    void (*see)(void *context, const struct hg_difference *d);
    void *context;
};

static void see_input(void *context, const char *key)
{
    const struct pair *p = context;

    if (!hg_comparable_is_same(p->own, p->other, key))
        p->see(p->context,
               &(struct hg_difference){ HG_DIFFERENCE_INPUT, key, hg_comparable_get(p->own, key),
                                        hg_comparable_get(p->other, key) });
}

static void see_env(void *context, const char *key, const json_t *mine, const json_t *theirs)
{
    const struct pair *p = context;

    p->see(p->context, &(struct hg_difference){ HG_DIFFERENCE_ENV, key, mine, theirs });
}

/* Runs of one case that say the same: equal values are kept once. */
static bool is_alike(const struct hg_result *a, const struct hg_result *b)
{
    return a->comparable == b->comparable && a->inputs == b->inputs && a->platform == b->platform &&
           a->device == b->device;
}

static void compare_pair(struct pair *p)
{
    hg_comparable_each(p->own, p->other, see_input, p);
    hg_comparable_each_env(p->own, p->other, see_env, p);
}

/* ---- What came out ---- */

static double loss_of(const struct hg_result *r)
{
    return r->loss;
}

static double score_of(const struct hg_result *r)
{
    return r->score;
}

static bool is_loss_far(double a, double b, double spread)
{
    double larger = fmax(fabs(a), fabs(b));

    return fabs(a - b) > spread + LOSS_PART * larger + fmin(LOSS_STEP, larger / 2);
}

static bool is_score_far(double a, double b, double spread)
{
    double scale = fmax(a, b) > 1 ? 100 : 1;

    return fabs(a - b) > spread + SCORE_PART * scale && fmax(a, b) <= 100;
}

/* Did both learn the same thing equally long? */
static bool is_like(const struct hg_result *a, const struct hg_result *b)
{
    static const char *const keys[] = { "model",   "dataset", "epochs",    "samples",
                                        "seq_len", "padding", "parameters" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!hg_comparable_is_same(a, b, keys[i]))
            return false;
    return true;
}

/* The farthest of the runs from the base's first one. */
static void compare_end(const struct hg_side *own, const struct hg_side *base, const char *key,
                        double (*number)(const struct hg_result *r),
                        bool (*is_far)(double a, double b, double spread), struct pair *p)
{
    double b = number(base->runs[0]), low = b, high = b, far = b;
    json_t *mine, *theirs;
    bool silent = false;

    for (size_t i = 1; i < base->n && base != own; i++) {
        low = fmin(low, number(base->runs[i]));
        high = fmax(high, number(base->runs[i]));
    }
    for (size_t i = 0; i < own->n; i++) {
        silent = silent || (base != own && isnan(number(own->runs[i])) && !isnan(b));
        if (fabs(number(own->runs[i]) - b) > fabs(far - b))
            far = number(own->runs[i]);
    }
    if (!silent && !is_far(far, b, high - low))
        return;
    mine = silent ? NULL : json_real(far);
    theirs = json_real(b);
    p->see(p->context, &(struct hg_difference){ HG_DIFFERENCE_END, key, mine, theirs });
    json_decref(mine);
    json_decref(theirs);
}

/* A loss or score that is the metric itself is what is compared. */
static void compare_ends(const struct hg_report *r, const struct hg_side *own,
                         const struct hg_side *base, struct pair *p)
{
    if (!(hg_metric_is_time(r->metric) || hg_metric_is_rate(r->metric)) ||
        !is_like(own->runs[0], base->runs[0]))
        return;
    if (hg_work_has_same_steps(own->runs[0], base->runs[0])) /* fewer steps leave a higher loss */
        compare_end(own, base, "final_loss", loss_of, is_loss_far, p);
    compare_end(own, base, "score", score_of, is_score_far, p);
}

/* ---- All with all ---- */

/* Runs that all agree with the other side's first agree with each other. */
void hg_differences_each(const struct hg_report *r, const struct hg_side *own,
                         const struct hg_side *base,
                         void (*see)(void *context, const struct hg_difference *d), void *context)
{
    struct pair p = { .see = see, .context = context };

    if (own->n == 0 || base->n == 0)
        return;
    for (size_t i = 0; i < own->n + base->n - 1; i++) {
        size_t j = i < own->n ? 0 : i - own->n + 1;

        p.own = own->runs[j ? 0 : i];
        p.other = base->runs[j];
        if (i == 0 || !(j ? is_alike(p.other, base->runs[0]) : is_alike(p.own, own->runs[0])))
            compare_pair(&p);
    }
    compare_ends(r, own, base, &p);
}

void hg_differences_within(const struct hg_report *r, const struct hg_side *own,
                           void (*see)(void *context, const struct hg_difference *d), void *context)
{
    struct pair p = { .see = see, .context = context };

    for (size_t i = 1; i < own->n; i++) {
        p.own = own->runs[i];
        p.other = own->runs[0];
        if (!is_alike(p.own, p.other))
            compare_pair(&p);
    }
    if (own->n > 1)
        compare_ends(r, own, own, &p);
}

double hg_differences_samples(const struct hg_report *r, const struct hg_side *own,
                              const struct hg_side *base)
{
    double excess = NAN;

    for (size_t i = 0; i < own->n + base->n - (base->n > 0) && isnan(excess) && base->n; i++)
        excess = i < own->n ? hg_work_excess(r, own->runs[i], base->runs[0])
                            : hg_work_excess(r, own->runs[0], base->runs[i - own->n + 1]);
    return excess;
}

void hg_differences_value(const json_t *value, struct hg_buf *out)
{
    if (!value)
        hg_buf_puts(out, "unknown");
    else if (json_is_string(value))
        hg_buf_puts(out, json_string_value(value));
    else
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, out);
}
