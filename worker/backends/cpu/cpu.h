/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cpu backend share. */
#ifndef WK_BACKENDS_CPU_CPU_H
#define WK_BACKENDS_CPU_CPU_H

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels_tokens.h"

struct cpu {
    struct wk_dev dev; /* first */
    const struct wk_kernels *k;
    const struct wk_token_kernels *tokens;
    struct wk_span scratch;  /* grows to what the largest op needs */
    struct wk_span operands; /* room for 16-bit operands as reals; half.c */
    size_t operands_taken;
};

static inline struct cpu *cpu_of(struct wk_dev *dev)
{
    return (struct cpu *)dev;
}

/* n reals that live until the next op. wk_backend.reserve takes what the largest op needs; more than that ends the process where there
 * is no memory for it. */
wk_real *wk_cpu_scratch(struct cpu *c, size_t n);

/* Reals of scratch that ops take: for sequences of at most so many rows, a thread each; for a sum of so many squares. */
size_t wk_cpu_attention_scratch(int longest);
size_t wk_cpu_square_scratch(size_t n);

/* A thread's share of the rows: whole tiles, as even as they go. */
static inline void wk_cpu_share(long rows, long tile, int part, int parts, long *first, long *n)
{
    long tiles = (rows + tile - 1) / tile;
    long from = tiles * part / parts * tile, to = tiles * (part + 1) / parts * tile;

    *first = from < rows ? from : rows;
    *n = (to < rows ? to : rows) - *first;
}

/* Ops over token sequences: tokens.c, attention.c. */
void wk_cpu_add(struct wk_dev *dev, struct wk_span y, struct wk_span x);
void wk_cpu_embed_forward(struct wk_dev *dev, struct wk_span y, struct wk_span ids,
                          struct wk_span types, const struct wk_packing *p, struct wk_span word,
                          struct wk_span position, struct wk_span type, int cols);
void wk_cpu_embed_backward(struct wk_dev *dev, struct wk_span d_word, struct wk_span d_position,
                           struct wk_span d_type, struct wk_span d_y, struct wk_span ids,
                           struct wk_span types, const struct wk_packing *p, int padding, int cols);
void wk_cpu_token_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                          const struct wk_packing *p, int cols, double drop, struct wk_rng rng);
void wk_cpu_norm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                         struct wk_span x, struct wk_span residual, struct wk_span weight,
                         struct wk_span bias, const struct wk_packing *p, int cols, double eps,
                         double drop, struct wk_rng rng);
void wk_cpu_norm_backward(struct wk_dev *dev, struct wk_span d_sum, struct wk_span d_x,
                          struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y,
                          struct wk_span sum, struct wk_span weight, struct wk_span saved,
                          const struct wk_packing *p, int cols, double drop, struct wk_rng rng);
void wk_cpu_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span x, enum wk_gelu form);
void wk_cpu_gelu_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_y,
                          struct wk_span x, enum wk_gelu form);
void wk_cpu_attention_forward(struct wk_dev *dev, const struct wk_attention *a,
                              const struct wk_packing *p, struct wk_span out, struct wk_span lse,
                              const struct wk_qkv *in);
void wk_cpu_attention_backward(struct wk_dev *dev, const struct wk_attention *a,
                               const struct wk_packing *p, const struct wk_qkv *d_in,
                               struct wk_span d_out, struct wk_span out, struct wk_span lse,
                               const struct wk_qkv *in);
void wk_cpu_span_loss(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                      struct wk_span logits, const struct wk_packing *p, struct wk_span starts,
                      struct wk_span ends, double weight, struct wk_span scale);
void wk_cpu_adamw(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                  struct wk_span m, struct wk_span v, const struct wk_adamw *how);
void wk_cpu_square_sum(struct wk_dev *dev, struct wk_span sum, struct wk_span x);

/* update.c */
void wk_cpu_convert(struct wk_dev *dev, struct wk_span y, struct wk_span x);
void wk_cpu_control(struct wk_dev *dev, struct wk_span control, struct wk_span square_sum,
                    const struct wk_control *how);
/* Whether an update with this control is skipped; else the gradient's scale goes to *scale where there is a control. */
bool wk_cpu_skips(struct wk_span control, double *scale);

/* The number in a span of one element, or 1 where there is none. */
static inline wk_real wk_cpu_factor(struct wk_span scale)
{
    return scale.data ? *(const wk_real *)scale.data : 1;
}

#endif
