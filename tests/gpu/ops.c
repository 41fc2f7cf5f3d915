/* SPDX-License-Identifier: Apache-2.0 */
/* Every op of a backend against its twin of the cpu backend in fp32, at many shapes.
 *
 *   ops [BACKEND [PRECISION [CASE]]]        CASE: all cases whose names begin so
 *   ops list                               the names of the cases
 *
 * Both get the same inputs, rounded to the type that the tested device works in. Each output is compared as a whole: the largest
 * difference over the largest value of the twin's, against the bound of the case, which says what it comes from. Then the op
 * runs a second time and must give the same bits. Exit code 77 where there is no such device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/half.h"
#include "gpu/ops.h"

#define N_OF(a) (sizeof(a) / sizeof *(a))

/* ---- One run of a case on one device ---- */

static void fail(const char *text)
{
    fprintf(stderr, "ops: %s\n", text);
    exit(1);
}

static float round_to(enum wk_type type, bool cut, float x)
{
    if (cut)
        return wk_bits_float((wk_float_bits(x) + 0x1000) & 0xffffe000);
    if (type == WK_BF16)
        return wk_bf16_decode(wk_bf16_encode(x));
    return type == WK_F16 ? wk_f16_decode(wk_f16_encode(x)) : x;
}

struct wk_span ops_alloc(struct ops_run *r, enum wk_type type, size_t n)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_span s;

    if (r->n_spans == OPS_SPANS_MAX)
        fail("a case has too many tensors");
    if (wk_dev_alloc(r->dev, WK_MEM_ACTIVATIONS, type, n, &s, &err) < 0)
        fail(err.text);
    r->spans[r->n_spans++] = s;
    return s;
}

static struct wk_span put(struct ops_run *r, enum wk_type type, const float *values, size_t n)
{
    struct wk_span s = ops_alloc(r, type, n);
    uint16_t *halves = malloc((n + 1) * sizeof *halves);

    if (!halves)
        fail("out of memory");
    if (type == WK_REAL) {
        r->dev->backend->upload(r->dev, s, values);
    } else {
        for (size_t i = 0; i < n; i++)
            halves[i] = type == WK_BF16 ? wk_bf16_encode(values[i]) : wk_f16_encode(values[i]);
        r->dev->backend->upload(r->dev, s, halves);
    }
    free(halves);
    return s;
}

float ops_noise(uint32_t what, size_t i)
{
    uint32_t bits[4];

    wk_philox(12345, (uint32_t)i, what, 0, 0, bits);
    return (float)(2 * wk_rng_unit(bits[0]) - 1);
}

/* n numbers, of which the first `filled` look random and the others are 0; activations are rounded. */
static struct wk_span noise(struct ops_run *r, bool activations, size_t n, size_t filled,
                            uint32_t what, float scale, float shift)
{
    float *values = calloc(n + 1, sizeof *values);
    struct wk_span s;

    if (!values)
        fail("out of memory");
    for (size_t i = 0; i < filled; i++)
        values[i] = shift + scale * ops_noise(what, i);
    for (size_t i = 0; activations && i < filled; i++)
        values[i] = round_to(r->rounded, r->cut, values[i]);
    s = put(r, activations ? r->working : WK_REAL, values, n);
    free(values);
    return s;
}

struct wk_span ops_real(struct ops_run *r, size_t n, uint32_t what, float scale, float shift)
{
    return noise(r, false, n, n, what, scale, shift);
}

struct wk_span ops_work(struct ops_run *r, size_t n, uint32_t what, float scale, float shift)
{
    return noise(r, true, n, n, what, scale, shift);
}

struct wk_span ops_ints(struct ops_run *r, const int32_t *values, size_t n)
{
    struct wk_span s = ops_alloc(r, WK_I32, n);

    r->dev->backend->upload(r->dev, s, values);
    return s;
}

struct wk_span ops_bytes(struct ops_run *r, const uint8_t *values, size_t n)
{
    struct wk_span s = ops_alloc(r, WK_U8, n);

    r->dev->backend->upload(r->dev, s, values);
    return s;
}

/* Rows of width `cols` for a packing: noise for its rows, zeros for those that only fill up. */
struct wk_span ops_rows(struct ops_run *r, const struct ops_packing *p, size_t cols, uint32_t what,
                        float scale)
{
    return noise(r, true, (size_t)p->p.rows * cols, (size_t)p->rows * cols, what, scale, 0);
}

/* The first n values; says whether the others are zeros. */
static bool keep(struct ops_run *r, const char *name, struct wk_span s, size_t n)
{
    struct ops_output *o = &r->outputs[r->n_outputs++];
    struct wk_span real = s;

    if (r->n_outputs > OPS_OUTPUTS_MAX)
        fail("a case has too many outputs");
    *o = (struct ops_output){ name, n, malloc((s.n + 1) * sizeof(float)) };
    if (!o->values)
        fail("out of memory");
    if (s.type == WK_BF16 || s.type == WK_F16) {
        real = ops_alloc(r, WK_REAL, s.n);
        r->dev->backend->convert(r->dev, real, s);
    }
    r->dev->backend->download(r->dev, o->values, real);
    if (s.type == WK_I32)
        for (size_t i = 0; i < s.n; i++)
            o->values[i] = (float)((int32_t *)(void *)o->values)[i];
    for (size_t i = n; i < s.n; i++)
        if (o->values[i] != 0)
            return false;
    return true;
}

void ops_keep(struct ops_run *r, const char *name, struct wk_span s)
{
    keep(r, name, s, s.n);
}

static size_t rows_n(const struct ops_packing *p, struct wk_span s)
{
    return s.n / (size_t)p->p.rows * (size_t)p->rows;
}

void ops_keep_rows(struct ops_run *r, const char *name, const struct ops_packing *p,
                   struct wk_span s)
{
    keep(r, name, s, rows_n(p, s));
}

void ops_keep_clean(struct ops_run *r, const char *name, const struct ops_packing *p,
                    struct wk_span s)
{
    if (!keep(r, name, s, rows_n(p, s)))
        r->dirty = name;
}

/* ---- Packings ---- */

const struct ops_lengths ops_lengths[] = {
    { "one token", 1, { 1 }, { 1 } },
    { "odd lengths", 4, { 3, 17, 64, 65 }, { 3, 17, 64, 65 } },
    { "empty ones between", 5, { 0, 9, 0, 33, 0 }, { 0, 9, 0, 33, 0 } },
    { "padded", 3, { 40, 40, 40 }, { 40, 1, 23 } },
    { "384 and 1", 2, { 384, 1 }, { 384, 1 } },
    { "more than 512 rows", 3, { 384, 20, 384 }, { 384, 20, 384 } },
    { NULL, 0, { 0 }, { 0 } },
};

struct ops_packing ops_pack(struct ops_run *r, const struct ops_lengths *l)
{
    int32_t first[OPS_SEQUENCES_MAX + 1] = { 0 }, sample[OPS_SEQUENCES_MAX];
    int32_t sequence[1024];
    struct ops_packing p = { .p.sequences = l->sequences };

    for (int s = 0; s < l->sequences; s++) {
        first[s + 1] = first[s] + l->rows[s];
        sample[s] = 11 + 7 * s;
        for (int row = first[s]; row < first[s + 1]; row++)
            sequence[row] = s;
        if (l->rows[s] > p.p.longest)
            p.p.longest = l->rows[s];
    }
    p.rows = first[l->sequences];
    p.p.rows = p.rows + (r->tested ? OPS_FILL : 0);
    for (int row = p.rows; row < p.p.rows; row++)
        sequence[row] = -1;
    p.p.first = ops_ints(r, first, (size_t)l->sequences + 1);
    p.p.tokens = ops_ints(r, l->tokens, (size_t)l->sequences);
    p.p.sample = ops_ints(r, sample, (size_t)l->sequences);
    p.p.sequence = ops_ints(r, sequence, (size_t)p.p.rows);
    return p;
}

/* ---- Comparing ---- */

struct tester {
    struct wk_dev *reference, *tested;
    enum wk_type rounded;
    bool cut;      /* tf32 */
    int precision; /* place in a case's bounds */
    int failed, done;
};

static void run_case(struct ops_run *r, const struct ops_case *c, const int *shape)
{
    struct hg_err err = HG_ERR_INIT;

    c->run(r, shape);
    if (r->dev->backend->sync(r->dev, &err) < 0)
        fail(err.text);
}

static void end_run(struct ops_run *r)
{
    for (int i = 0; i < r->n_outputs; i++)
        free(r->outputs[i].values);
    for (int i = 0; i < r->n_spans; i++)
        wk_dev_free(r->dev, WK_MEM_ACTIVATIONS, &r->spans[i]);
}

/* The largest difference over the largest value, which counts as 0.1 if it is less: inputs are about 1, and some gradients are zero
 * but for rounding. NaN or infinity only where the twin has it. */
static double distance(const struct ops_output *a, const struct ops_output *b)
{
    double worst = 0, most = 0.1;

    for (size_t i = 0; i < b->n; i++) {
        double x = (double)a->values[i], y = (double)b->values[i];

        if (isnan(x) != isnan(y) || isinf(x) != isinf(y))
            return INFINITY;
        if (isnan(x) || isinf(x))
            continue;
        worst = fmax(worst, fabs(x - y));
        most = fmax(most, fabs(y));
    }
    return worst / most;
}

static void complain(struct tester *t, const struct ops_case *c, const int *shape, const char *what,
                     const char *why, double value, double bound)
{
    printf("FAILED %s (%d %d %d %d): %s: %s %.3g (bound %.3g)\n", c->name, shape[0], shape[1],
           shape[2], shape[3], what, why, value, bound);
    t->failed++;
}

/* Returns the distance of the worst output. */
static double compare(struct tester *t, const struct ops_case *c, const int *shape,
                      const struct ops_run *reference, const struct ops_run *tested,
                      const struct ops_run *again)
{
    double worst = 0, bound = c->bounds[t->precision];

    for (int i = 0; i < reference->n_outputs; i++) {
        const struct ops_output *a = &tested->outputs[i], *b = &reference->outputs[i];
        double d = distance(a, b);

        if (!(d <= bound))
            complain(t, c, shape, b->name, "differs by", d, bound);
        if (memcmp(a->values, again->outputs[i].values, a->n * sizeof *a->values) != 0)
            complain(t, c, shape, b->name, "other bits the second time",
                     distance(&again->outputs[i], a), 0);
        worst = fmax(worst, d);
    }
    if (tested->dirty)
        complain(t, c, shape, tested->dirty, "no zeros in rows that fill up", 0, 0);
    return worst;
}

static double one_shape(struct tester *t, const struct ops_case *c, const int *shape)
{
    struct ops_run reference = { .dev = t->reference, .rounded = t->rounded, .cut = t->cut };
    struct ops_run tested = { .dev = t->tested,
                              .working = t->tested->working,
                              .rounded = t->rounded,
                              .cut = t->cut,
                              .tested = t->tested->backend != t->reference->backend };
    struct ops_run again = tested;
    double worst;

    run_case(&reference, c, shape);
    run_case(&tested, c, shape);
    ops_shuffle(2 + (uint64_t)t->done);
    run_case(&again, c, shape);
    worst = compare(t, c, shape, &reference, &tested, &again);
    end_run(&reference);
    end_run(&tested);
    end_run(&again);
    t->done++;
    return worst;
}

static void one_case(struct tester *t, const struct ops_case *c)
{
    double worst = 0;
    int shapes = 0;

    for (const int *shape = c->shapes; shape[0] >= 0; shape += OPS_SHAPE, shapes++)
        worst = fmax(worst, one_shape(t, c, shape));
    printf("%-22s %3d shapes  worst %8.2g  bound %8.2g  %s\n", c->name, shapes, worst,
           c->bounds[t->precision], c->why);
    fflush(stdout);
}

/* ---- Devices ---- */

static struct wk_dev *open_device(const char *name, const char *precision)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_dev_options options = { .threads = 2 };
    const struct wk_backend *b = ops_backend(name);
    struct wk_dev *dev = NULL;

    if (!b)
        b = wk_backend_get(name, &err);
    if (b && wk_precision_find(precision, &options.precision, &err) == 0)
        dev = b->open(&options, &err);
    if (!dev) {
        fprintf(stderr, "ops: %s\n", err.text);
        exit(err.code == HG_E_ENV ? 77 : 2);
    }
    return dev;
}

/* An op that a backend lacks would end a training where it is first called. */
static void look_for_ops(struct tester *t)
{
#define OP(name, ...)                                            \
    if (!t->tested->backend->name) {                             \
        printf("FAILED: the backend has no op \"%s\"\n", #name); \
        t->failed++;                                             \
    }
#define OPTIONAL_OP(...)
#define FUSED_OP(...)                                  \
    if (t->tested->backend != t->reference->backend) { \
        OP(__VA_ARGS__)                                \
    }
#include "backends/ops.def"
}

static const struct ops_case *const sets[] = { ops_cases_rows, ops_cases_tokens,
                                               ops_cases_attention };

/* The names that the third word of the command may be. */
static int list(void)
{
    for (size_t i = 0; i < N_OF(sets); i++)
        for (const struct ops_case *c = sets[i]; c->name; c++)
            puts(c->name);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu", *precision = argc > 2 ? argv[2] : WK_PRECISION;
    struct tester t = { 0 };

    if (strcmp(name, "list") == 0)
        return list();
    t.reference = open_device("cpu", WK_PRECISION);
    ops_shuffle(1);
    t.tested = open_device(name, precision);
    t.precision = (int)t.tested->precision;
    t.rounded = t.tested->working;
    t.cut = t.tested->precision == WK_TF32;
    printf("%s, %s, against cpu, %s\n", t.tested->name, precision, WK_PRECISION);
    look_for_ops(&t);
    for (size_t i = 0; i < N_OF(sets); i++)
        for (const struct ops_case *c = sets[i]; c->name; c++)
            if (argc < 4 || strncmp(argv[3], c->name, strlen(argv[3])) == 0)
                one_case(&t, c);
    t.tested->backend->close(t.tested);
    t.reference->backend->close(t.reference);
    printf("%d shapes, %d failures\n", t.done, t.failed);
    return t.failed > 0 || t.done == 0;
}
