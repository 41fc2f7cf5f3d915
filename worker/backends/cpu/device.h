/* SPDX-License-Identifier: Apache-2.0 */
/* An open cpu device: its memory, and what its ops share. */
#ifndef WK_BACKENDS_CPU_DEVICE_H
#define WK_BACKENDS_CPU_DEVICE_H

#include <omp.h>

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels_tokens.h"

struct cpu {
    struct wk_dev dev; /* first */
    const struct wk_kernels *k;
    const struct wk_token_kernels *tokens;
    const struct wk_backend *plain; /* ops over reals */
    const struct wk_backend *ops;   /* ops in the device's precision, for ops made of others */
    struct wk_span scratch;         /* grows to what the largest op needs */
    struct wk_span operands;        /* room for 16-bit operands as reals; half.c */
    size_t operands_taken;
};

static inline struct cpu *cpu_of(struct wk_dev *dev)
{
    return (struct cpu *)dev;
}

/* Ops of the files that declare nothing else. */
extern const struct wk_backend wk_cpu_batchnorm_ops, wk_cpu_dense_ops, wk_cpu_loss_ops,
    wk_cpu_optim_ops, wk_cpu_tokens_ops;

/* Methods of struct wk_backend. */
void *wk_cpu_alloc(struct wk_dev *dev, size_t bytes);
void wk_cpu_free(struct wk_dev *dev, void *data);
void wk_cpu_upload(struct wk_dev *dev, struct wk_span to, const void *host);
void wk_cpu_download(struct wk_dev *dev, void *host, struct wk_span from);
int wk_cpu_sync(struct wk_dev *dev, struct hg_err *err);
size_t wk_cpu_available(struct wk_dev *dev);

/* n reals that live until the next op. wk_backend.reserve takes what the largest op needs; more than that ends the process if there is no memory
 * for it. */
wk_real *wk_cpu_scratch(struct cpu *c, size_t n);

/* Threads for a pass over n elements: below so many it is not worth a second one. */
#define WK_CPU_PASS_SHARE_MIN (1 << 18)
static inline int wk_cpu_pass_threads(const struct wk_dev *dev, size_t n)
{
    return n < WK_CPU_PASS_SHARE_MIN ? 1 : dev->threads;
}

/* A thread's share of the rows: whole tiles, as even as they go. */
static inline void wk_cpu_share(long rows, long tile, int part, int parts, long *first, long *n)
{
    long tiles = (rows + tile - 1) / tile;
    long from = tiles * part / parts * tile, to = tiles * (part + 1) / parts * tile;

    *first = from < rows ? from : rows;
    *n = (to < rows ? to : rows) - *first;
}

struct wk_cpu_range {
    long first, n;
};

/* What this thread of a parallel region does of so many. */
static inline struct wk_cpu_range wk_cpu_my_share(size_t n, long tile)
{
    struct wk_cpu_range r;

    wk_cpu_share((long)n, tile, omp_get_thread_num(), omp_get_num_threads(), &r.first, &r.n);
    return r;
}

/* The number in a span of one element, or 1 if the span is absent. */
static inline wk_real wk_cpu_factor(struct wk_span scale)
{
    return scale.data ? *(const wk_real *)scale.data : 1;
}

#endif
