/* SPDX-License-Identifier: Apache-2.0 */
/* libcublasLt on the CPU for the mock runtime: descriptors, a few algorithms, which add up in orders of their own and are not the same
 * for operands that lie badly, and products with the epilogues that gemm.c may ask for. What the library refuses is refused here too: types and epilogues that its tables do not have, an epilogue whose
 * pointer it was not shown, more workspace than it was given. Where it would read or write beyond what an address allows, as with
 * operands that are not aligned as its algorithm was told, the product fails. */
#include <cublasLt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/half.h"
#include "gelu.h"
#include "gpu/emulator/runtime.h"

#define ALGORITHMS 3
#define VECTOR 16               /* bytes that an epilogue moves at a time */
#define NEEDS ((size_t)1 << 20) /* workspace of the second algorithm */

/* What an algorithm's 64 bytes hold. */
enum { NUMBER, OPERANDS, BIAS, AUX }; /* and the alignments that it was chosen for */

struct product {
    cublasComputeType_t compute;
    cublasLtEpilogue_t epilogue;
    cublasOperation_t a, b;
    void *bias, *aux;
    int64_t aux_ld, bias_step;
    cudaDataType_t bias_type;
};

struct layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld, step;
    int batch;
};

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Descriptors ---- */

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    struct product *p = calloc(1, sizeof *p);

    if (scale != CUDA_R_32F ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)) {
        free(p);
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    p->compute = compute;
    p->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p->a = p->b = CUBLAS_OP_N;
    p->bias_type = (cudaDataType_t)-1;
    *d = (cublasLtMatmulDesc_t)p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t a, const void *value,
                                              size_t size)
{
    struct product *p = (struct product *)d;
    void *to = a == CUBLASLT_MATMUL_DESC_EPILOGUE               ? (void *)&p->epilogue
               : a == CUBLASLT_MATMUL_DESC_TRANSA               ? (void *)&p->a
               : a == CUBLASLT_MATMUL_DESC_TRANSB               ? (void *)&p->b
               : a == CUBLASLT_MATMUL_DESC_BIAS_POINTER         ? (void *)&p->bias
               : a == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE    ? (void *)&p->bias_step
               : a == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE       ? (void *)&p->bias_type
               : a == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD      ? (void *)&p->aux_ld
               : a == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ? (void *)&p->aux
                                                                : NULL;

    if (!to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    struct layout *m = malloc(sizeof *m);

    *m = (struct layout){ .type = type, .rows = rows, .cols = cols, .ld = ld, .batch = 1 };
    *l = (cublasLtMatrixLayout_t)m;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t a,
                                                const void *value, size_t size)
{
    struct layout *m = (struct layout *)l;

    if (a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        memcpy(&m->batch, value, size);
    else if (a == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        memcpy(&m->step, value, size);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

struct preference {
    uint32_t alignment; /* the least of all operands */
    uint64_t workspace;
};

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
    struct preference *made = malloc(sizeof *made);

    *made = (struct preference){ .alignment = 256 };
    *p = (cublasLtMatmulPreference_t)made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t a,
                                                    const void *value, size_t size)
{
    struct preference *to = (struct preference *)p;

    if (a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        memcpy(&to->workspace, value, size);
    else if (a >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
             a <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
        memcpy(&to->alignment, value, size); /* gemm.c says the same of all four */
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- What can be done ---- */

static bool halves(cudaDataType_t t)
{
    return t == CUDA_R_16BF || t == CUDA_R_16F;
}

static bool has_bias(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           e == CUBLASLT_EPILOGUE_BGRADA || e == CUBLASLT_EPILOGUE_BGRADB ||
           e == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

static bool has_aux(cublasLtEpilogue_t e)
{
    return e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || e == CUBLASLT_EPILOGUE_DGELU ||
           e == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

/* Rows of the library's table for products in float: operands of one type, an output of theirs or float, a bias like the output. */
static bool types_fit(const struct product *p, const struct layout *a, const struct layout *b,
                      const struct layout *d)
{
    return a->type == b->type && (halves(a->type) || a->type == CUDA_R_32F) &&
           (d->type == a->type || d->type == CUDA_R_32F) &&
           (p->compute == CUBLAS_COMPUTE_32F || a->type == CUDA_R_32F) &&
           ((int)p->bias_type < 0 || p->bias_type == d->type);
}

/* Shapes and types that fit each other, and the epilogues as the library's table has them. */
static cublasStatus_t judge(const struct product *p, const struct layout *a, const struct layout *b,
                            const struct layout *d)
{
    uint64_t m = p->a == CUBLAS_OP_N ? a->rows : a->cols;
    uint64_t k = p->a == CUBLAS_OP_N ? a->cols : a->rows;
    uint64_t n = p->b == CUBLAS_OP_N ? b->cols : b->rows;
    uint64_t b_k = p->b == CUBLAS_OP_N ? b->rows : b->cols;

    if (k != b_k || m != d->rows || n != d->cols || a->batch != d->batch || b->batch != d->batch ||
        (has_bias(p->epilogue) && !p->bias) || (has_aux(p->epilogue) && !p->aux))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!types_fit(p, a, b, d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    switch (p->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
        return d->batch == 1 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
        return p->aux_ld % 8 == 0 && p->aux_ld >= (int64_t)d->rows && halves(d->type) &&
                       d->batch == 1
                   ? CUBLAS_STATUS_SUCCESS
                   : CUBLAS_STATUS_NOT_SUPPORTED;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}

static size_t needs(const cublasLtMatmulAlgo_t *algorithm)
{
    return (algorithm->data[NUMBER] - 1000) % ALGORITHMS == 1 ? NEEDS : 0;
}

/* The largest power of two that divides an address, at most 256. */
static uint64_t alignment(const void *p)
{
    uintptr_t all = (uintptr_t)p | 256;

    return all & (~all + 1);
}

/* Do the addresses hold what the algorithm was chosen for? */
static bool aligned(const cublasLtMatmulAlgo_t *algorithm, const struct product *p,
                    const void *const *operands, int n)
{
    for (int i = 0; i < n; i++)
        if (alignment(operands[i]) < algorithm->data[OPERANDS])
            return false;
    if (has_bias(p->epilogue) &&
        (alignment(p->bias) < algorithm->data[BIAS] || alignment(p->bias) < VECTOR))
        return false;
    return !has_aux(p->epilogue) ||
           (alignment(p->aux) >= algorithm->data[AUX] && alignment(p->aux) >= VECTOR);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    const struct product *p = (struct product *)desc;
    const struct preference *wanted = (struct preference *)preference;
    cublasStatus_t status = judge(p, (struct layout *)a, (struct layout *)b, (struct layout *)d);

    (void)handle, (void)c;
    *n = 0;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    for (uint64_t k = 0; *n < most && k < ALGORITHMS; k++) {
        cublasLtMatmulHeuristicResult_t *r = &results[*n];

        if (k == 1 && wanted->workspace < NEEDS)
            continue;
        memset(r, 0, sizeof *r);
        r->algo.data[NUMBER] = 1000 + k + (wanted->alignment < VECTOR ? ALGORITHMS : 0);
        r->algo.data[OPERANDS] = wanted->alignment;
        r->algo.data[BIAS] = alignment(p->bias);
        r->algo.data[AUX] = alignment(p->aux);
        r->workspaceSize = needs(&r->algo);
        ++*n;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    const struct product *p = (struct product *)desc;

    (void)handle, (void)c;
    memset(result, 0, sizeof *result);
    if (algorithm->data[NUMBER] < 1000 || algorithm->data[NUMBER] >= 1000 + 2 * ALGORITHMS ||
        !aligned(algorithm, p, NULL, 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    result->workspaceSize = needs(algorithm);
    return judge(p, (struct layout *)a, (struct layout *)b, (struct layout *)d);
}

/* ---- Products ---- */

struct job {
    struct product p;
    struct layout a, b, d;
    const void *a_data, *b_data, *c_data;
    void *d_data;
    float alpha, beta;
    size_t parts; /* that a sum is made of: the algorithm's own */
};

static float get(cudaDataType_t t, const void *data, size_t i)
{
    if (t == CUDA_R_32F)
        return ((const float *)data)[i];
    return (t == CUDA_R_16BF ? wk_bf16_decode : wk_f16_decode)(((const uint16_t *)data)[i]);
}

static void put(cudaDataType_t t, void *data, size_t i, double x)
{
    if (t == CUDA_R_32F)
        ((float *)data)[i] = (float)x;
    else
        ((uint16_t *)data)[i] = (t == CUDA_R_16BF ? wk_bf16_encode : wk_f16_encode)((float)x);
}

/* Row i of op(matrix), or column i where the product wants columns, as k floats behind each other. */
static float *unfold(const struct layout *l, const void *data, int64_t offset, size_t n, size_t k,
                     bool along)
{
    float *out = malloc(n * k * sizeof *out + 1);

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            out[i * k + j] =
                get(l->type, data,
                    (size_t)offset + (along ? j + i * (size_t)l->ld : i + j * (size_t)l->ld));
    return out;
}

/* In double within a part; parts are added up in float. */
static float dot(const float *x, const float *y, size_t n, size_t parts)
{
    float all = 0;

    for (size_t part = 0; part < parts; part++) {
        size_t end = n * (part + 1) / parts;
        double sum = 0;

#pragma omp simd reduction(+ : sum)
        for (size_t i = n * part / parts; i < end; i++)
            sum += (double)x[i] * (double)y[i];
        all += (float)sum;
    }
    return all;
}

static cudaDataType_t bias_type(const struct job *j)
{
    return (int)j->p.bias_type >= 0 ? j->p.bias_type : j->d.type;
}

/* Element (row, col) of number `batch` behind the product. */
static double epilogue(const struct job *j, double x, size_t row, size_t col, int batch)
{
    size_t aux = row + col * (size_t)j->p.aux_ld;

    switch (j->p.epilogue) {
    case CUBLASLT_EPILOGUE_BIAS:
        return x + (double)get(bias_type(j), j->p.bias, (size_t)(batch * j->p.bias_step) + row);
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
        x += (double)get(bias_type(j), j->p.bias, row);
        put(j->d.type, j->p.aux, aux, x);
        return gelu(x);
    case CUBLASLT_EPILOGUE_DGELU:
        return x * gelu_slope((double)get(j->d.type, j->p.aux, aux));
    default:
        return x;
    }
}

/* Sums over k of the operand of D's columns. */
static void bias_gradient(const struct job *j, const float *b, size_t n, size_t k)
{
    for (size_t col = 0; col < n; col++) {
        double sum = 0;

        for (size_t i = 0; i < k; i++)
            sum += (double)b[col * k + i];
        put(bias_type(j), j->p.bias, col, sum);
    }
}

static void multiply(const struct job *j, int batch)
{
    size_t m = j->d.rows, n = j->d.cols, k = j->p.a == CUBLAS_OP_N ? j->a.cols : j->a.rows;
    float *a = unfold(&j->a, j->a_data, batch * j->a.step, m, k, j->p.a != CUBLAS_OP_N);
    float *b = unfold(&j->b, j->b_data, batch * j->b.step, n, k, j->p.b == CUBLAS_OP_N);

    for (size_t col = 0; col < n; col++)
        for (size_t row = 0; row < m; row++) {
            size_t at = (size_t)(batch * j->d.step) + row + col * (size_t)j->d.ld;
            double x = (double)j->alpha * (double)dot(a + row * k, b + col * k, k, j->parts);

            if (j->beta != 0)
                x += (double)j->beta * (double)get(j->d.type, j->c_data, at);
            put(j->d.type, j->d_data, at, epilogue(j, x, row, col, batch));
        }
    if (j->p.epilogue == CUBLASLT_EPILOGUE_BGRADB)
        bias_gradient(j, b, n, k);
    free(a);
    free(b);
}

static int run(void *job)
{
    const struct job *j = job;

    for (int k = 0; k < j->d.batch; k++)
        multiply(j, k);
    return 0;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a_data, cublasLtMatrixLayout_t a, const void *b_data,
                              cublasLtMatrixLayout_t b, const void *beta, const void *c_data,
                              cublasLtMatrixLayout_t c, void *d_data, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes,
                              cudaStream_t stream)
{
    const void *const operands[] = { a_data, b_data, c_data, d_data };
    cublasStatus_t status =
        judge((struct product *)desc, (struct layout *)a, (struct layout *)b, (struct layout *)d);
    struct job *j;

    (void)handle, (void)c;
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (!algorithm || algorithm->data[NUMBER] < 1000 || alignment(workspace) < 256 ||
        bytes < needs(algorithm))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!aligned(algorithm, (struct product *)desc, operands, 4))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    j = malloc(sizeof *j);
    *j = (struct job){ .p = *(struct product *)desc,
                       .a = *(struct layout *)a,
                       .b = *(struct layout *)b,
                       .d = *(struct layout *)d,
                       .a_data = a_data,
                       .b_data = b_data,
                       .c_data = c_data,
                       .d_data = d_data,
                       .alpha = *(const float *)alpha,
                       .beta = *(const float *)beta,
                       .parts = (size_t)(algorithm->data[NUMBER] - 999) };
    return emu_stream_launch(stream, run, j, free) == 0 ? CUBLAS_STATUS_SUCCESS
                                                        : CUBLAS_STATUS_EXECUTION_FAILED;
}
