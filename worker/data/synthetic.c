/* SPDX-License-Identifier: Apache-2.0 */
#include "data/synthetic.h"

#include <math.h>
#include <stdlib.h>

#include "backends/rng.h"
#include "base/alloc.h"
#include "data/features_block.h"

/* Sequences are cut out of one pool of random tokens, so a million of them take little memory. */
#define POOL 65536
#define QUESTION_TOKENS 12
#define ANSWER_TOKENS_MAX 30
#define LENGTH_MIN 8 /* [CLS] q [SEP] text [SEP] with something in them */

/* Second counter word: what a number is for. */
enum { SITE_TOKEN = 0x53590001, SITE_LENGTH, SITE_PLACE, SITE_LABEL };

const char *const wk_lengths_names[] = { "fixed", "uniform", "normal", "lognormal", "squad", NULL };

/* Lengths of the 10,784 windows of dev-v1.1 (384 tokens, overlap 128) in order, at 0/32, 1/32, ...
 * 32/32 of their number (`hpcgrid-worker features` gives the same figures). */
static const uint16_t squad_quantiles[] = {
    41,  75,  94,  108, 116, 121, 126, 130, 133, 136, 140, 143, 147, 151, 155, 159, 164,
    168, 172, 178, 182, 188, 194, 200, 207, 215, 222, 235, 251, 267, 291, 342, 384,
};
#define SQUAD_STEPS (sizeof squad_quantiles / sizeof *squad_quantiles - 1)

static void draw(const struct wk_synthetic_options *o, uint32_t site, uint64_t i, uint32_t out[4])
{
    wk_philox(o->seed, (uint32_t)i, site, (uint32_t)(i >> 32), 0, out);
}

/* One number of N(0, 1), by Box and Muller. */
static double normal(const uint32_t bits[4])
{
    return sqrt(-2 * log(wk_rng_unit(bits[0]))) * cos(2 * M_PI * wk_rng_unit(bits[1]));
}

static double squad_length(double unit)
{
    double at = unit * (double)SQUAD_STEPS;
    size_t i = (size_t)at < SQUAD_STEPS ? (size_t)at : SQUAD_STEPS - 1;

    return squad_quantiles[i] + (at - (double)i) * (squad_quantiles[i + 1] - squad_quantiles[i]);
}

static double draw_length(const struct wk_synthetic_options *o, const uint32_t bits[4])
{
    double log_variance;

    switch (o->lengths) {
    case WK_LENGTHS_UNIFORM:
        return o->min_length + floor(wk_rng_unit(bits[0]) * (o->max_length - o->min_length + 1.0));
    case WK_LENGTHS_NORMAL:
        return o->mean + o->sd * normal(bits);
    case WK_LENGTHS_LOGNORMAL:
        log_variance = log1p(o->sd * o->sd / (o->mean * o->mean));
        return exp(log(o->mean) - log_variance / 2 + sqrt(log_variance) * normal(bits));
    case WK_LENGTHS_SQUAD:
        return squad_length(wk_rng_unit(bits[0]));
    case WK_LENGTHS_FIXED:
        break;
    }
    return o->max_length;
}

static uint32_t length_of(const struct wk_synthetic_options *o, size_t i)
{
    uint32_t bits[4];
    double length;

    draw(o, SITE_LENGTH, i, bits);
    length = floor(draw_length(o, bits) + 0.5);
    if (!(length > o->min_length))
        return o->min_length;
    return length > o->max_length ? o->max_length : (uint32_t)length;
}

static bool is_special(const struct wk_wordpiece_special *s, uint32_t id)
{
    return id == s->pad || id == s->unk || id == s->cls || id == s->sep || id == s->mask;
}

static void fill_pool(const struct wk_synthetic_options *o, uint32_t *pool, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits[4];

        draw(o, SITE_TOKEN, i, bits);
        pool[i] = bits[0] % o->vocab_size;
        while (is_special(&o->special, pool[i]))
            pool[i] = (pool[i] + 1) % o->vocab_size;
    }
}

/* Half of a short sequence is question. */
static uint32_t question_length(uint32_t length)
{
    uint32_t half = (length - 3) / 2;

    return half < QUESTION_TOKENS ? half : QUESTION_TOKENS;
}

static void make_feature(const struct wk_synthetic_options *o, size_t i, struct wk_feature *f,
                         struct wk_feature_question *q)
{
    uint32_t length = length_of(o, i), bits[4], span;

    draw(o, SITE_PLACE, i, bits);
    *q = (struct wk_feature_question){ .at = bits[0] % POOL, .n = question_length(length) };
    *f = (struct wk_feature){ .question = (uint32_t)i,
                              .at = bits[1] % POOL,
                              .n = length - 3 - q->n };
    if (o->labels == WK_LABELS_DUMMY)
        return;
    draw(o, SITE_LABEL, i, bits);
    f->start = 2 + q->n + bits[0] % f->n;
    span = 2 + q->n + f->n - f->start; /* from there to the end of the text */
    f->end = f->start + bits[1] % (span < ANSWER_TOKENS_MAX ? span : ANSWER_TOKENS_MAX);
}

static int check_options(const struct wk_synthetic_options *o, struct hg_err *err)
{
    if (o->n < 1 || o->n > WK_SYNTHETIC_MAX)
        return hg_err_set(err, HG_E_INPUT, "%zu synthetic samples requested; allowed: 1 to %d",
                          o->n, WK_SYNTHETIC_MAX);
    if (o->min_length < LENGTH_MIN || o->max_length < o->min_length ||
        o->max_length > WK_FEATURE_LENGTH_MAX)
        return hg_err_set(err, HG_E_INPUT, "lengths from %u to %u: they must lie within %d to %d",
                          o->min_length, o->max_length, LENGTH_MIN, WK_FEATURE_LENGTH_MAX);
    if (!(o->mean > 0) || !(o->sd >= 0) || !isfinite(o->mean) || !isfinite(o->sd))
        return hg_err_set(err, HG_E_INPUT, "mean %g and sd %g of the lengths", o->mean, o->sd);
    if (o->vocab_size < 16)
        return hg_err_set(err, HG_E_INPUT, "a vocabulary of %u tokens", o->vocab_size);
    return 0;
}

int wk_synthetic_build(const struct wk_synthetic_options *o, struct wk_features *out,
                       struct hg_err *err)
{
    size_t n_pool = POOL + (size_t)o->max_length;
    struct wk_feature *items;
    struct wk_feature_question *questions;
    uint32_t *pool;
    int rc;

    *out = (struct wk_features){ 0 };
    if (check_options(o, err) < 0)
        return -1;
    items = hg_alloc(o->n * sizeof *items);
    questions = hg_alloc(o->n * sizeof *questions);
    pool = hg_alloc(n_pool * sizeof *pool);
    fill_pool(o, pool, n_pool);
    for (size_t i = 0; i < o->n; i++)
        make_feature(o, i, &items[i], &questions[i]);
    rc = wk_block_pack(&(struct wk_features){ .max_length = o->max_length,
                                              .pad = o->special.pad,
                                              .cls = o->special.cls,
                                              .sep = o->special.sep,
                                              .n = o->n,
                                              .n_questions = o->n,
                                              .items = items,
                                              .questions = questions,
                                              .question_ids = pool,
                                              .n_question_ids = n_pool,
                                              .context_ids = pool,
                                              .n_context = n_pool },
                       out, err);
    free(items);
    free(questions);
    free(pool);
    return rc;
}
