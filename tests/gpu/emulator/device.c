/* SPDX-License-Identifier: Apache-2.0 */
/* The device that the emulated kernels run on: host memory, no streams, and products in plain loops. It stands in for open.c, device.c, steps.c
 * and gemm.c of the cuda backend; its ops (ops.c) and kernels are the real ones. Allocations are of exactly the bytes asked for,
 * and scratch is new for every op and full of NaN, so that a sanitizer and the comparison see who relies on more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/device.h"
#include "backends/cuda/gemm.h"
#include "backends/cuda/open.h"
#include "backends/cuda/steps.h"
#include "backends/half.h"
#include "base/alloc.h"
#include "gelu.h"

struct wk_cuda_own {
    void *scratch;
    size_t scratch_bytes;
};

static void *room(size_t bytes)
{
    return aligned_alloc(256, (bytes / 256 + 1) * 256);
}

/* ---- device.h ---- */

struct wk_dev *wk_cuda_open(const struct wk_backend *table, const struct wk_dev_options *options,
                            struct hg_err *err)
{
    struct wk_cuda *c = hg_alloc_zeroed(1, sizeof *c);

    (void)err;
    c->own = hg_alloc_zeroed(1, sizeof *c->own);
    c->step = hg_alloc_zeroed(1, sizeof *c->step);
    c->factors = hg_alloc_zeroed(1, sizeof *c->factors);
    c->dev.backend = table;
    c->dev.threads = options->threads;
    c->dev.precision = options->precision;
    c->dev.working = options->precision == WK_MIXED_BF16   ? WK_BF16
                     : options->precision == WK_MIXED_FP16 ? WK_F16
                                                           : WK_REAL;
    snprintf(c->dev.name, sizeof c->dev.name, "emulated GPU");
    c->dev.rounds_rows = c->dev.keeps_tokens = true;
    c->capability = 90;
    return &c->dev;
}

void wk_cuda_close(struct wk_dev *dev)
{
    struct wk_cuda *c = wk_cuda_of(dev);

    if (!dev)
        return;
    free(c->own->scratch);
    free(c->own);
    free(c->step);
    free(c->factors);
    free(c);
}

void wk_cuda_describe(struct wk_dev *dev, struct hg_buf *out)
{
    hg_buf_printf(out, "device %s\n", dev->name);
}

void *wk_cuda_alloc(struct wk_dev *dev, size_t bytes)
{
    void *data = NULL;

    (void)dev;
    /* aligned as the runtime's memory is, and the sanitizer sees its end */
    return posix_memalign(&data, 256, bytes ? bytes : 1) == 0 ? memset(data, 0, bytes) : NULL;
}

void wk_cuda_free(struct wk_dev *dev, void *data)
{
    (void)dev;
    free(data);
}

void wk_cuda_upload(struct wk_dev *dev, struct wk_span to, const void *host)
{
    (void)dev;
    if (to.n)
        memcpy(to.data, host, to.n * wk_type_size(to.type));
}

void wk_cuda_download(struct wk_dev *dev, void *host, struct wk_span from)
{
    (void)dev;
    if (from.n)
        memcpy(host, from.data, from.n * wk_type_size(from.type));
}

void wk_cuda_copy(struct wk_cuda *c, void *to, const void *from, size_t bytes)
{
    (void)c;
    if (bytes)
        memcpy(to, from, bytes);
}

size_t wk_cuda_available(struct wk_dev *dev)
{
    (void)dev;
    return 0;
}

/* Steps run as they are called: nothing is recorded. */
bool wk_cuda_step_begin(struct wk_dev *dev, const struct wk_step *s)
{
    const struct wk_cuda_step numbers = { .number = s->number,
                                          .lr = (float)s->lr,
                                          .taken = (float)s->update };

    wk_cuda_send_step(wk_cuda_of(dev), &numbers);
    return true;
}

bool wk_cuda_step_end(struct wk_dev *dev)
{
    (void)dev;
    return false;
}

void wk_cuda_mark(struct wk_dev *dev, enum wk_mark what)
{
    (void)dev;
    (void)what;
}

int wk_cuda_times(struct wk_dev *dev, struct wk_lap *laps, int most)
{
    (void)dev;
    (void)laps;
    (void)most;
    return 0;
}

bool wk_cuda_aside(struct wk_dev *dev, bool on)
{
    (void)dev;
    (void)on;
    return true;
}

void wk_cuda_join(struct wk_dev *dev)
{
    (void)dev;
}

int wk_cuda_sync(struct wk_dev *dev, struct hg_err *err)
{
    if (dev->error.code == HG_E_NONE)
        return 0;
    *err = dev->error;
    dev->error = (struct hg_err)HG_ERR_INIT;
    return -1;
}

bool wk_cuda_check(struct wk_cuda *c, int code, const char *what)
{
    if (code && c->dev.error.code == HG_E_NONE)
        hg_err_set(&c->dev.error, HG_E_ENV, "%s: launch refused (%d)", what, code);
    return code == 0;
}

void *wk_cuda_scratch(struct wk_cuda *c, size_t bytes)
{
    free(c->own->scratch);
    wk_dev_book(&c->dev, WK_MEM_WORKSPACE, (ptrdiff_t)bytes - (ptrdiff_t)c->own->scratch_bytes);
    c->own->scratch_bytes = bytes;
    c->own->scratch = bytes ? room(bytes) : NULL;
    if (c->own->scratch)
        memset(c->own->scratch, 0xff, (bytes / 256 + 1) * 256);
    return c->own->scratch;
}

void wk_cuda_send_step(struct wk_cuda *c, const struct wk_cuda_step *step)
{
    *c->step = c->step_sent = *step;
}

/* ---- gemm.h ---- */

struct wk_gemm *wk_gemm_open(struct wk_cuda *c, struct hg_err *err)
{
    (void)c;
    (void)err;
    return NULL;
}

void wk_gemm_close(struct wk_gemm *g)
{
    (void)g;
}

void wk_gemm_version(char out[32])
{
    snprintf(out, 32, "none");
}

static float get(enum wk_cuda_type t, const void *data, size_t i)
{
    if (t == WK_CUDA_F32)
        return ((const float *)data)[i];
    return (t == WK_CUDA_BF16 ? wk_bf16_decode : wk_f16_decode)(((const uint16_t *)data)[i]);
}

static void set(enum wk_cuda_type t, void *data, size_t i, double x)
{
    if (t == WK_CUDA_F32)
        ((float *)data)[i] = (float)x;
    else
        ((uint16_t *)data)[i] = (t == WK_CUDA_BF16 ? wk_bf16_encode : wk_f16_encode)((float)x);
}

static void forward(const struct wk_gemm_call *p)
{
    for (int row = 0; row < p->rows; row++)
        for (int col = 0; col < p->out; col++) {
            size_t at = (size_t)row * (size_t)p->out + (size_t)col;
            double sum = p->bias ? (double)get(p->t, p->bias, (size_t)col) : 0;

            for (int k = 0; k < p->in; k++)
                sum += (double)get(p->t, p->x, (size_t)row * (size_t)p->in + (size_t)k) *
                       (double)get(p->t, p->weight, (size_t)col * (size_t)p->in + (size_t)k);
            if (p->gelu)
                set(p->t, p->pre, at, sum);
            set(p->y_t, p->y, at, p->gelu ? gelu(sum) : sum);
        }
}

static void input(const struct wk_gemm_call *p)
{
    for (int row = 0; row < p->rows; row++)
        for (int col = 0; col < p->in; col++) {
            size_t at = (size_t)row * (size_t)p->in + (size_t)col;
            double sum = p->add ? (double)get(p->t, p->x, at) : 0;

            for (int k = 0; k < p->out; k++)
                sum += (double)get(p->t, p->y, (size_t)row * (size_t)p->out + (size_t)k) *
                       (double)get(p->t, p->weight, (size_t)k * (size_t)p->in + (size_t)col);
            set(p->t, p->x, at, p->gelu ? sum * gelu_slope((double)get(p->t, p->pre, at)) : sum);
        }
}

static void weight(const struct wk_gemm_call *p)
{
    float *d_weight = p->weight, *d_bias = p->bias;

    for (int row = 0; row < p->out; row++) {
        double bias = 0;

        for (int col = 0; col < p->in; col++) {
            float *to = &d_weight[(size_t)row * (size_t)p->in + (size_t)col];
            double sum = 0;

            for (int k = 0; k < p->rows; k++)
                sum += (double)get(p->t, p->y, (size_t)k * (size_t)p->out + (size_t)row) *
                       (double)get(p->t, p->x, (size_t)k * (size_t)p->in + (size_t)col);
            *to = (p->add ? *to : 0) + (float)sum;
        }
        for (int k = 0; k < p->rows; k++)
            bias += (double)get(p->t, p->y, (size_t)k * (size_t)p->out + (size_t)row);
        if (d_bias)
            d_bias[row] += (float)bias;
    }
}

static void *moved(void *data, enum wk_cuda_type t, ptrdiff_t elements)
{
    return data ? (char *)data + elements * (t == WK_CUDA_F32 ? 4 : 2) : NULL;
}

void wk_gemm_run(struct wk_cuda *c, const struct wk_gemm_call *p)
{
    enum wk_cuda_type w = p->kind == WK_GEMM_WEIGHT ? WK_CUDA_F32 : p->t;
    enum wk_cuda_type y = p->kind == WK_GEMM_FORWARD ? p->y_t : p->t;

    (void)c;
    for (int k = 0; k < (p->batch ? p->batch : 1); k++) {
        struct wk_gemm_call one = *p;

        one.x = moved(p->x, p->t, k * p->x_step);
        one.y = moved(p->y, y, k * p->y_step);
        one.weight = moved(p->weight, w, k * p->weight_step);
        one.bias = moved(p->bias, w, k * p->bias_step);
        (p->kind == WK_GEMM_FORWARD ? forward : p->kind == WK_GEMM_INPUT ? input : weight)(&one);
    }
}
