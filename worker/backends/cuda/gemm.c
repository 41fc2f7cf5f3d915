/* SPDX-License-Identifier: Apache-2.0 */
/* GEMMs through cuBLASLt, whose matrices are column-major: a row-major (rows, cols) tensor is a (cols, rows) matrix to it. So with ' for a
 * transposed operand
 *   FORWARD   y (out, rows) = weight' (out, in) x (in, rows)
 *   INPUT     x (in, rows) = weight (in, out) y (out, rows)
 *   WEIGHT    weight (in, out) = x (in, rows) y' (rows, out)
 *
 * Each shape has a plan: descriptors, the algorithm, and the variant, which is what a kernel of ours does after the GEMM instead of the
 * library's epilogue. The first use of a shape times the likely ones, ten runs between two events, and keeps the fastest, in memory and in a
 * file (search.h). Sums that are split over blocks are added in a fixed order, so results are the same bits each time. */
#include "backends/cuda/gemm.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/library.h"
#include "backends/cuda/own.h"
#include "backends/cuda/search.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/vec.h"

#define LIKELY 8 /* algorithms of a variant that are tried */

/* What a plan depends on. */
struct shape {
    int kind, rows, in, out, batch;
    ptrdiff_t x_step, y_step, weight_step, bias_step;
    short t, y_t;
    short add, gelu, bias;
    short alignment; /* of all operands together: bytes, a power of two up to 256 */
    short tf32;
};

enum variant {
    VARIANT_INSIDE, /* bias (or the sums for one) and GELU are in the library's epilogue */
    VARIANT_BEHIND, /* they are kernels of their own */
    N_VARIANTS,
    VARIANT_SINGLY = N_VARIANTS /* a batch that the library does not support: one by one */
};

struct plan {
    struct shape shape;
    enum variant variant;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algorithm;
};

struct wk_gemm {
    const struct wk_cublaslt *lib;
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    struct wk_choices *choices;
    bool by_shape; /* see wk_dev_options */
    struct wk_span workspace;
    cudaEvent_t start, end;
    struct {
        struct plan *items;
        size_t n, cap;
    } plans;
    size_t *table; /* of plans, 1 + index by the shape's hash; 0: free */
    size_t table_n;
};

_Static_assert(sizeof(cublasLtMatmulAlgo_t) == WK_CHOICE_BYTES, "an algorithm is kept as bytes");

static const char *const kinds[] = { "forward", "input", "weight" };

/* ---- Descriptors ---- */

static cudaDataType_t data_type(enum wk_cuda_type t)
{
    return t == WK_CUDA_BF16 ? CUDA_R_16BF : t == WK_CUDA_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static bool make_layout(const struct wk_gemm *g, cublasLtMatrixLayout_t *layout, cudaDataType_t t,
                        int rows, int cols, int batch, ptrdiff_t step)
{
    int64_t offset = step;

    if (g->lib->cublasLtMatrixLayoutCreate(layout, t, (uint64_t)rows, (uint64_t)cols, rows) != 0)
        return false;
    if (batch <= 1)
        return true;
    return g->lib->cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                    &batch, sizeof batch) == 0 &&
           g->lib->cublasLtMatrixLayoutSetAttribute(
               *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset) == 0;
}

static bool set(const struct wk_gemm *g, cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a,
                const void *value, size_t size)
{
    return g->lib->cublasLtMatmulDescSetAttribute(d, a, value, size) == 0;
}

/* The library's epilogue. */
static cublasLtEpilogue_t epilogue_of(const struct shape *s, enum variant v)
{
    if (v == VARIANT_BEHIND)
        return CUBLASLT_EPILOGUE_DEFAULT;
    if (s->kind == WK_GEMM_WEIGHT)
        return s->bias ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT;
    if (s->kind == WK_GEMM_INPUT)
        return s->gelu ? CUBLASLT_EPILOGUE_DGELU : CUBLASLT_EPILOGUE_DEFAULT;
    if (s->gelu)
        return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    return s->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/* The library reads and writes biases and `pre` 16 bytes at a time, and requires the rows of `pre` a multiple of 8 elements apart. Its GELU is
 * accurate enough for 16 bits only. */
static bool has_variants(const struct wk_gemm *g, const struct shape *s)
{
    int pre_cols = s->kind == WK_GEMM_FORWARD ? s->out : s->in;

    if (g->by_shape || getenv("HPCGRID_PLAIN_PRODUCTS") || s->alignment < 16 ||
        (s->gelu && (s->t == WK_CUDA_F32 || pre_cols % 8 != 0)))
        return false;
    if (s->kind == WK_GEMM_FORWARD)
        return s->t == s->y_t && (s->bias || s->gelu);
    return s->kind == WK_GEMM_INPUT ? s->gelu : s->bias && s->batch == 1;
}

static bool set_epilogue(const struct wk_gemm *g, struct plan *p)
{
    cublasLtEpilogue_t epilogue = epilogue_of(&p->shape, p->variant);
    int64_t ld = p->shape.kind == WK_GEMM_FORWARD ? p->shape.out : p->shape.in;
    int64_t step = p->shape.bias_step;
    cudaDataType_t real = CUDA_R_32F;

    if (!set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue))
        return false;
    if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || epilogue == CUBLASLT_EPILOGUE_DGELU)
        return set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    if (epilogue == CUBLASLT_EPILOGUE_BGRADB)
        return set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &real, sizeof real);
    if (epilogue == CUBLASLT_EPILOGUE_BIAS && p->shape.batch > 1)
        return set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &step, sizeof step);
    return true;
}

static bool make_layouts(const struct wk_gemm *g, struct plan *p)
{
    const struct shape *s = &p->shape;
    cudaDataType_t t = data_type((enum wk_cuda_type)s->t),
                   y_t = data_type((enum wk_cuda_type)s->y_t);

    switch ((enum wk_gemm_kind)s->kind) {
    case WK_GEMM_FORWARD:
        return make_layout(g, &p->a, t, s->in, s->out, s->batch, s->weight_step) &&
               make_layout(g, &p->b, t, s->in, s->rows, s->batch, s->x_step) &&
               make_layout(g, &p->d, y_t, s->out, s->rows, s->batch, s->y_step);
    case WK_GEMM_INPUT:
        return make_layout(g, &p->a, t, s->in, s->out, s->batch, s->weight_step) &&
               make_layout(g, &p->b, y_t, s->out, s->rows, s->batch, s->y_step) &&
               make_layout(g, &p->d, t, s->in, s->rows, s->batch, s->x_step);
    case WK_GEMM_WEIGHT:
        return make_layout(g, &p->a, t, s->in, s->rows, s->batch, s->x_step) &&
               make_layout(g, &p->b, y_t, s->out, s->rows, s->batch, s->y_step) &&
               make_layout(g, &p->d, CUDA_R_32F, s->in, s->out, s->batch, s->weight_step);
    }
    return false;
}

static void plan_done(const struct wk_gemm *g, struct plan *p)
{
    if (p->product)
        g->lib->cublasLtMatmulDescDestroy(p->product);
    if (p->a)
        g->lib->cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        g->lib->cublasLtMatrixLayoutDestroy(p->b);
    if (p->d)
        g->lib->cublasLtMatrixLayoutDestroy(p->d);
    *p = (struct plan){ 0 };
}

/* A plan without its algorithm. */
static bool plan_make(const struct wk_gemm *g, const struct shape *s, enum variant v,
                      struct plan *p)
{
    cublasComputeType_t compute = s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cublasOperation_t turned = CUBLAS_OP_T;

    *p = (struct plan){ .shape = *s, .variant = v };
    if (g->lib->cublasLtMatmulDescCreate(&p->product, compute, CUDA_R_32F) != 0 ||
        !make_layouts(g, p) || !set_epilogue(g, p) ||
        (s->kind == WK_GEMM_FORWARD &&
         !set(g, p->product, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned)) ||
        (s->kind == WK_GEMM_WEIGHT &&
         !set(g, p->product, CUBLASLT_MATMUL_DESC_TRANSB, &turned, sizeof turned))) {
        plan_done(g, p);
        return false;
    }
    return true;
}

/* ---- Running ---- */

/* Pointers that the library's epilogue reads or writes. It overwrites the sums for a bias, which must be added to others: they go to scratch
 * first. */
static bool set_pointers(struct wk_cuda *c, const struct plan *p, const struct wk_gemm_call *q)
{
    const struct wk_gemm *g = c->gemm;
    cublasLtEpilogue_t epilogue = epilogue_of(&p->shape, p->variant);
    void *sums = NULL;

    if (epilogue == CUBLASLT_EPILOGUE_BGRADB) {
        sums = wk_cuda_scratch(c, (size_t)q->out * sizeof(float));
        return sums && set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &sums, sizeof sums);
    }
    if ((epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) &&
        !set(g, p->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &q->bias, sizeof q->bias))
        return false;
    if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || epilogue == CUBLASLT_EPILOGUE_DGELU)
        return set(g, p->product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &q->pre,
                   sizeof q->pre);
    return true;
}

/* Where the GEMM writes: with a GELU kernel after it, FORWARD writes to `pre`. */
static void *target_of(const struct plan *p, const struct wk_gemm_call *q)
{
    if (q->kind == WK_GEMM_WEIGHT)
        return q->weight;
    if (q->kind == WK_GEMM_INPUT)
        return q->x;
    return q->gelu && p->variant == VARIANT_BEHIND ? q->pre : q->y;
}

static int multiply(struct wk_cuda *c, const struct plan *p, const struct wk_gemm_call *q, void *d)
{
    const struct wk_gemm *g = c->gemm;
    const float one = 1, keep = q->add ? 1 : 0;
    const void *a = q->kind == WK_GEMM_WEIGHT ? q->x : q->weight;
    const void *b = q->kind == WK_GEMM_FORWARD ? q->x : q->y;

    if (!set_pointers(c, p, q))
        return -1;
    return (int)g->lib->cublasLtMatmul(g->handle, p->product, &one, a, p->a, b, p->b, &keep, d,
                                       p->d, d, p->d, &p->algorithm, g->workspace.data,
                                       WK_GEMM_WORKSPACE, (cudaStream_t)c->stream);
}

/* The kernels after a GEMM, for number k of a batch. */
static int finish(struct wk_cuda *c, const struct plan *p, const struct wk_gemm_call *q, void *d,
                  int k)
{
    size_t size = q->y_t == WK_CUDA_F32 ? 4 : 2, bias_size = q->t == WK_CUDA_F32 ? 4 : 2;
    char *y = (char *)d + (ptrdiff_t)size * k * q->y_step;
    const char *bias = (const char *)q->bias + (ptrdiff_t)bias_size * k * q->bias_step;
    int code = 0;

    if (q->kind == WK_GEMM_FORWARD && q->bias && p->variant == VARIANT_BEHIND)
        code = wk_cuda_add_bias(c->stream, q->y_t, y, q->t, bias, q->rows, q->out);
    if (code || !q->gelu || p->variant == VARIANT_INSIDE)
        return code;
    if (q->kind == WK_GEMM_FORWARD)
        return wk_cuda_gelu_forward(c->stream, q->t, q->y, d, (size_t)q->rows * (size_t)q->out, 1);
    return wk_cuda_gelu_backward(c->stream, q->t, d, d, q->pre, (size_t)q->rows * (size_t)q->in, 1);
}

/* Gradients of biases, added: from the sums that the library made, or from the whole. */
static int finish_bias(struct wk_cuda *c, const struct plan *p, const struct wk_gemm_call *q)
{
    size_t size = q->y_t == WK_CUDA_F32 ? 4 : 2;
    int code = 0;

    if (q->bias && p->variant == VARIANT_INSIDE)
        return wk_cuda_add(c->stream, WK_CUDA_F32, q->bias,
                           wk_cuda_scratch(c, (size_t)q->out * sizeof(float)), (size_t)q->out);
    for (int k = 0; q->bias && k < p->shape.batch && code == 0; k += WK_CUDA_BIASES) {
        int left = p->shape.batch - k, batch = left < WK_CUDA_BIASES ? left : WK_CUDA_BIASES;
        size_t bytes = wk_cuda_bias_backward_scratch(batch, q->rows, q->out);

        code = wk_cuda_bias_backward(c->stream, (float *)q->bias + k * q->bias_step, q->bias_step,
                                     q->y_t, (const char *)q->y + (ptrdiff_t)size * k * q->y_step,
                                     q->y_step, batch, q->rows, q->out, wk_cuda_scratch(c, bytes));
        wk_cuda_check(c, code, "bias_backward");
    }
    return code;
}

static int run_plan(struct wk_cuda *c, const struct plan *p, const struct wk_gemm_call *q, void *d)
{
    int code = multiply(c, p, q, d);

    if (code == 0)
        wk_cuda_check(c, 0, kinds[q->kind]);
    if (code == 0 && q->kind == WK_GEMM_WEIGHT)
        return finish_bias(c, p, q);
    for (int k = 0; code == 0 && k < p->shape.batch; k++)
        code = finish(c, p, q, d, k);
    return code;
}

/* ---- Choosing ---- */

struct trial {
    struct wk_cuda *c;
    struct wk_gemm_call q; /* with another bias if that is a target too */
    void *d;               /* instead of the call's own target: tries must leave no trace */
    struct plan plans[N_VARIANTS];
    cublasLtMatmulHeuristicResult_t likely[N_VARIANTS][LIKELY];
    int n_likely[N_VARIANTS];
};

/* Bytes up to the end of the GEMM's target. */
static size_t target_bytes(const struct wk_gemm_call *q)
{
    size_t rows = (size_t)q->rows, in = (size_t)q->in, out = (size_t)q->out;
    size_t more = q->batch > 1 ? (size_t)q->batch - 1 : 0;

    if (q->kind == WK_GEMM_WEIGHT)
        return (in * out + more * (size_t)q->weight_step) * 4;
    if (q->kind == WK_GEMM_INPUT)
        return rows * in * (q->t == WK_CUDA_F32 ? 4 : 2);
    return (rows * out + more * (size_t)q->y_step) * (q->y_t == WK_CUDA_F32 ? 4 : 2);
}

static double flops_of(const struct wk_gemm_call *q)
{
    return 2.0 * q->rows * q->in * q->out * (q->batch > 1 ? q->batch : 1);
}

static void look_up(struct trial *t, enum variant v, const struct shape *s)
{
    const struct wk_gemm *g = t->c->gemm;
    struct plan *p = &t->plans[v];
    uint32_t alignment = (uint32_t)s->alignment;
    static const cublasLtMatmulPreferenceAttributes_t all[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
    };

    if (!plan_make(g, s, v, p))
        return;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        g->lib->cublasLtMatmulPreferenceSetAttribute(g->preference, all[i], &alignment,
                                                     sizeof alignment);
    if (!set_pointers(t->c, p, &t->q) ||
        g->lib->cublasLtMatmulAlgoGetHeuristic(g->handle, p->product, p->a, p->b, p->d, p->d,
                                               g->preference, LIKELY, t->likely[v],
                                               &t->n_likely[v]) != 0)
        t->n_likely[v] = 0;
}

/* Candidates are the variants' algorithms in turn: the likely ones of both first. */
static bool candidate(struct trial *t, int number)
{
    enum variant v = (enum variant)(number % N_VARIANTS);
    int i = number / N_VARIANTS;

    if (i >= t->n_likely[v] || t->likely[v][i].state != CUBLAS_STATUS_SUCCESS)
        return false;
    t->plans[v].algorithm = t->likely[v][i].algo;
    return true;
}

/* The host queues all runs and waits once, so the device goes from one to the next as in a step. HPCGRID_SEARCH_REPEATS: fewer, where times
 * mean nothing. */
static double try_some(void *context, int number, int repeats)
{
    const char *most = getenv("HPCGRID_SEARCH_REPEATS");
    struct trial *t = context;
    struct wk_gemm *g = t->c->gemm;
    cudaStream_t stream = (cudaStream_t)t->c->stream;
    float ms = 0;
    int code;

    if (!candidate(t, number))
        return -1;
    if (most && atoi(most) > 0 && atoi(most) < repeats)
        repeats = atoi(most);
    code = (int)cudaEventRecord(g->start, stream);
    for (int i = 0; i < repeats && code == 0; i++)
        code = run_plan(t->c, &t->plans[number % N_VARIANTS], &t->q, t->d);
    if (code != 0 || cudaEventRecord(g->end, stream) != 0 ||
        wk_cuda_await(t->c, g->end, NULL) != 0 ||
        cudaEventElapsedTime(&ms, g->start, g->end) != 0) {
        cudaGetLastError(); /* the next launch would take it for its own */
        return -1;
    }
    return (double)ms / 1000 / repeats;
}

static void write_key(const struct shape *s, char key[160])
{
    static const char *const types[] = { "fp32", "bf16", "fp16" };

    snprintf(key, 160, "%s %s-%s %dx%dx%d%s%s%s%s", kinds[s->kind], s->tf32 ? "tf32" : types[s->t],
             types[s->y_t], s->rows, s->in, s->out, s->bias ? " bias" : "", s->gelu ? " gelu" : "",
             s->add ? " add" : "", s->batch > 1 ? " batch" : "");
    if (s->batch > 1)
        snprintf(key + strlen(key), 160 - strlen(key), "%d %td %td %td", s->batch, s->x_step,
                 s->y_step, s->weight_step);
    if (s->alignment < 256)
        snprintf(key + strlen(key), 160 - strlen(key), " align%d", s->alignment);
}

/* What an earlier run found, if the library still supports it: which depends on the epilogue's pointers, too. */
static bool remembered(struct wk_cuda *c, const struct wk_gemm_call *q, const char *key,
                       const struct shape *s, struct plan *p)
{
    const struct wk_gemm *g = c->gemm;
    const struct wk_choice *known = g->by_shape ? NULL : wk_choices_find(g->choices, key);
    cublasLtMatmulHeuristicResult_t result;

    if (!known || known->variant >= N_VARIANTS ||
        (known->variant == VARIANT_INSIDE && !has_variants(g, s)) ||
        !plan_make(g, s, (enum variant)known->variant, p))
        return false;
    memcpy(&p->algorithm, known->algorithm, sizeof p->algorithm);
    if (set_pointers(c, p, q) &&
        g->lib->cublasLtMatmulAlgoCheck(g->handle, p->product, p->a, p->b, p->d, p->d,
                                        &p->algorithm, &result) == 0 &&
        result.workspaceSize <= WK_GEMM_WORKSPACE)
        return true;
    plan_done(g, p);
    return false;
}

/* Did every try fail because the device has failed? */
static bool device_failed(struct wk_cuda *c)
{
    cudaError_t code = cudaStreamQuery((cudaStream_t)c->stream);

    cudaGetLastError();
    return code != cudaErrorNotReady && !wk_cuda_check(c, (int)code, "a GEMM");
}

/* The best of all candidates into the plan. While a graph is recorded nothing can be timed, and without memory for a copy of the
 * target nothing can be tried: then cuBLASLt's top heuristic is used, and not remembered. The same holds if a choice may depend on
 * the shape only. */
static bool search(struct wk_cuda *c, const struct wk_gemm_call *q, const struct shape *s,
                   const char *key, struct plan *p)
{
    size_t bytes = (target_bytes(q) + 255) / 256 * 256, more = q->batch > 1 ? (size_t)q->batch : 1;
    struct trial t = { .c = c, .q = *q };
    struct wk_choice choice = { 0 };
    int best = -1;

    look_up(&t, VARIANT_BEHIND, s);
    if (has_variants(c->gemm, s))
        look_up(&t, VARIANT_INSIDE, s);
    more = ((more - 1) * (size_t)q->bias_step + (size_t)q->out) * sizeof(float);
    t.d = c->recording || c->gemm->by_shape ? NULL : wk_cuda_alloc(&c->dev, bytes + more);
    if (t.d && q->kind == WK_GEMM_WEIGHT && q->bias)
        t.q.bias = (char *)t.d + bytes;
    if (t.d)
        best = wk_search_best(N_VARIANTS * LIKELY, try_some, &t, &choice.seconds);
    if (t.d && best < 0 && device_failed(c))
        goto out;
    for (int i = 0; best < 0 && i < N_VARIANTS * LIKELY; i++)
        if (candidate(&t, i))
            best = i;
    if (best >= 0) {
        candidate(&t, best);
        choice.variant = best % N_VARIANTS;
        choice.tflops = choice.seconds > 0 ? flops_of(q) / choice.seconds / 1e12 : 0;
        *p = t.plans[choice.variant];
        t.plans[choice.variant] = (struct plan){ 0 };
        memcpy(choice.algorithm, &p->algorithm, sizeof choice.algorithm);
        if (t.d)
            wk_choices_put(c->gemm->choices, key, &choice);
    }
out:
    for (int v = 0; v < N_VARIANTS; v++)
        plan_done(c->gemm, &t.plans[v]);
    wk_cuda_free(&c->dev, t.d);
    return best >= 0;
}

/* ---- Plans by shape ---- */

static size_t hash_of(const struct shape *s)
{
    const unsigned char *p = (const unsigned char *)s;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (size_t i = 0; i < sizeof *s; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return (size_t)h;
}

static size_t *slot_of(struct wk_gemm *g, const struct shape *s)
{
    size_t at = hash_of(s) & (g->table_n - 1);

    while (g->table[at] && memcmp(&g->plans.items[g->table[at] - 1].shape, s, sizeof *s) != 0)
        at = (at + 1) & (g->table_n - 1);
    return &g->table[at];
}

/* Keep the table at most half full. */
static void make_room(struct wk_gemm *g)
{
    if (2 * (g->plans.n + 1) <= g->table_n)
        return;
    free(g->table);
    g->table_n = g->table_n ? 2 * g->table_n : 256;
    g->table = hg_alloc_zeroed(g->table_n, sizeof *g->table);
    for (size_t i = 0; i < g->plans.n; i++)
        *slot_of(g, &g->plans.items[i].shape) = i + 1;
}

static short alignment_of(const struct wk_gemm_call *q)
{
    uintptr_t all = (uintptr_t)q->x | (uintptr_t)q->y | (uintptr_t)q->weight |
                    (uintptr_t)(q->gelu ? q->pre : NULL) | 256;

    if (q->kind == WK_GEMM_FORWARD)
        all |= (uintptr_t)q->bias;
    if (q->batch > 1)
        all |= 2 * (uintptr_t)(q->x_step | q->y_step | q->weight_step |
                               (q->kind == WK_GEMM_FORWARD ? q->bias_step : 0));
    return (short)(all & (~all + 1));
}

static struct shape shape_of(const struct wk_cuda *c, const struct wk_gemm_call *q)
{
    struct shape s;

    memset(&s, 0, sizeof s); /* also between members: it is compared as bytes */
    s.kind = (int)q->kind;
    s.rows = q->rows;
    s.in = q->in;
    s.out = q->out;
    s.batch = q->batch > 1 ? q->batch : 1;
    s.x_step = q->x_step;
    s.y_step = q->y_step;
    s.weight_step = q->weight_step;
    s.bias_step = q->bias_step;
    s.t = (short)q->t;
    s.y_t = (short)q->y_t;
    s.add = q->add;
    s.gelu = q->gelu;
    s.bias = q->kind != WK_GEMM_INPUT && q->bias;
    s.alignment = !c->by_shape ? alignment_of(q) : q->t == WK_CUDA_F32 ? 4 : 2;
    s.tf32 = c->dev.precision == WK_TF32;
    return s;
}

static const struct plan *plan_of(struct wk_cuda *c, const struct wk_gemm_call *q)
{
    struct wk_gemm *g = c->gemm;
    struct shape s = shape_of(c, q);
    struct plan made = { 0 }, *p;
    size_t *slot;
    char key[160];

    make_room(g);
    slot = slot_of(g, &s);
    if (*slot)
        return &g->plans.items[*slot - 1];
    write_key(&s, key);
    if (!remembered(c, q, key, &s, &made) && !search(c, q, &s, key, &made)) {
        made.shape = s;
        made.variant = VARIANT_SINGLY;
    }
    if (made.variant == VARIANT_SINGLY && s.batch == 1) {
        if (c->dev.error.code == HG_E_NONE)
            hg_err_set(&c->dev.error, HG_E_ENV, "cuBLASLt has no algorithm for %s on %s", key,
                       c->dev.name);
        return NULL;
    }
    p = HG_VEC_PUSH(&g->plans);
    *p = made;
    *slot = g->plans.n;
    return p;
}

static void run_singly(struct wk_cuda *c, const struct wk_gemm_call *q)
{
    ptrdiff_t size = q->t == WK_CUDA_F32 ? 4 : 2, y_size = q->y_t == WK_CUDA_F32 ? 4 : 2;
    ptrdiff_t weight_size = q->kind == WK_GEMM_WEIGHT ? 4 : size;

    for (int k = 0; k < q->batch; k++) {
        struct wk_gemm_call one = *q;

        one.batch = 1;
        one.x = (char *)q->x + k * q->x_step * size;
        one.y = (char *)q->y + k * q->y_step * y_size;
        one.weight = (char *)q->weight + k * q->weight_step * weight_size;
        one.bias = q->bias ? (char *)q->bias + k * q->bias_step * weight_size : NULL;
        one.x_step = one.y_step = one.weight_step = one.bias_step = 0;
        wk_gemm_run(c, &one);
    }
}

void wk_gemm_run(struct wk_cuda *c, const struct wk_gemm_call *q)
{
    const struct plan *p;
    int code;

    if (c->dev.error.code != HG_E_NONE || q->rows < 1)
        return;
    p = plan_of(c, q);
    if (!p)
        return;
    if (p->variant == VARIANT_SINGLY) {
        run_singly(c, q);
        return;
    }
    code = run_plan(c, p, q, target_of(p, q));
    c->unfit |= c->recording && code != 0;
    if (code != 0 && !c->recording && c->dev.error.code == HG_E_NONE)
        hg_err_set(&c->dev.error, HG_E_ENV, "cuBLASLt failed with status %d (%d x %d x %d)", code,
                   q->rows, q->in, q->out);
    wk_cuda_check(c, 0, kinds[q->kind]);
}

/* ---- Opening ---- */

void wk_gemm_version(char out[32])
{
    const struct wk_cublaslt *lib = wk_cublaslt_get(NULL);
    size_t v = lib ? lib->cublasLtGetVersion() : 0;

    snprintf(out, 32, "%zu.%zu.%zu", v / 10000, v / 100 % 100, v % 100);
}

static void open_choices(struct wk_gemm *g, const struct wk_cuda *c)
{
    char version[32];
    char *path;

    wk_gemm_version(version);
    path = wk_choices_path(c->dev.name, version);
    g->choices = wk_choices_open(path, c->dev.name, version);
    free(path);
}

static bool open_preference(struct wk_gemm *g)
{
    const struct wk_cublaslt *lib = g->lib;
    size_t workspace = WK_GEMM_WORKSPACE;
    uint32_t ordered = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

    return lib->cublasLtMatmulPreferenceCreate(&g->preference) == 0 &&
           lib->cublasLtMatmulPreferenceSetAttribute(g->preference,
                                                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                     &workspace, sizeof workspace) == 0 &&
           lib->cublasLtMatmulPreferenceSetAttribute(g->preference,
                                                     CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                     &ordered, sizeof ordered) == 0;
}

struct wk_gemm *wk_gemm_open(struct wk_cuda *c, struct hg_err *err)
{
    struct wk_gemm *g = hg_alloc_zeroed(1, sizeof *g);

    c->gemm = g;
    g->by_shape = c->by_shape;
    g->lib = wk_cublaslt_get(err);
    if (!g->lib)
        goto fail;
    open_choices(g, c);
    if (wk_dev_alloc(&c->dev, WK_MEM_WORKSPACE, WK_U8, WK_GEMM_WORKSPACE, &g->workspace, err) < 0)
        goto fail;
    if (g->lib->cublasLtCreate(&g->handle) != 0 || !open_preference(g) ||
        cudaEventCreate(&g->start) != 0 || cudaEventCreate(&g->end) != 0) {
        hg_err_set(err, HG_E_ENV, "cuBLASLt cannot start on %s", c->dev.name);
        goto fail;
    }
    return g;
fail:
    wk_gemm_close(g);
    c->gemm = NULL;
    return NULL;
}

void wk_gemm_close(struct wk_gemm *g)
{
    struct hg_err err = HG_ERR_INIT;

    if (!g)
        return;
    for (size_t i = 0; i < g->plans.n; i++)
        plan_done(g, &g->plans.items[i]);
    HG_VEC_DONE(&g->plans);
    free(g->table);
    if (g->choices && wk_choices_save(g->choices, &err) < 0)
        hg_warn("the chosen GEMM algorithms are not saved: %s", err.text);
    wk_choices_free(g->choices);
    if (g->start)
        cudaEventDestroy(g->start);
    if (g->end)
        cudaEventDestroy(g->end);
    if (g->preference)
        g->lib->cublasLtMatmulPreferenceDestroy(g->preference);
    if (g->handle)
        g->lib->cublasLtDestroy(g->handle);
    free(g); /* the workspace ends with the device's memory */
}
