/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the cuda backend as C sees them: functions that launch, and nothing else. An op's contract is in
 * backends/backend.h; a function here does it for buffers on one stream.
 *
 * Rules for all functions
 *   - They return 0 or the cudaError_t of the launch (also for a shape that they do not support). They never wait, never allocate
 *     and never copy to or from the host, so that a step can be recorded as a graph.
 *   - Whatever changes from step to step and is not a shape is in device memory: the number of the step, the learning rate, the
 *     scale of gradients, where sequences begin. Grids depend on host shapes only.
 *   - No atomics on floating point: two runs give the same bits.
 *   - `t` is the type of activations and their gradients, all alike in a call; `w` that of the weights which are read beside them.
 *     Gradients of parameters, statistics, lse and losses are float. Functions add to gradients of parameters (d_weight, d_bias,
 *     ...) and overwrite all else. Sums are made in float or better.
 *   - `scratch` has as many bytes as wk_cuda_<op>_scratch says for the same shapes (0: scratch may be NULL), aligned to 256; its
 *     contents mean nothing before and after.
 *   - Rows of a packing from first[sequences] on belong to no sequence: they fill up a graph's bucket. There `sequence` is -1, ids
 *     and types are 0. Ops on rows treat them as position 0 of sample 0; attention (both ways, all its outputs) and the gradient of
 *     the loss write zeros there, so that they add nothing to any gradient. */
#ifndef WK_BACKENDS_CUDA_KERNELS_H
#define WK_BACKENDS_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *wk_stream; /* cudaStream_t */

enum wk_cuda_type { WK_CUDA_F32, WK_CUDA_BF16, WK_CUDA_F16 };

/* As struct wk_rng; the step is in device memory. */
struct wk_cuda_rng {
    uint64_t seed;
    uint32_t site;
    const uint32_t *step;
};

/* As struct wk_packing. `sequences` is exact; rows and longest are what the grid is made for, the pointers' contents may be
 * less. */
struct wk_cuda_packing {
    int sequences, rows, longest;
    const int32_t *first;    /* (sequences + 1) */
    const int32_t *tokens;   /* (sequences) */
    const int32_t *sample;   /* (sequences) */
    const int32_t *sequence; /* (rows) */
};

/* ---- Elementwise ---- */
int wk_cuda_fill(wk_stream s, enum wk_cuda_type t, void *y, size_t n, float value);
/* y (grains, grain) = 0 where spared (grains) is 0; grain is a multiple of 8, y aligned to 16 */
int wk_cuda_clear(wk_stream s, float *y, const uint8_t *spared, size_t grains, int grain);
/* y *= a, and times *by unless that is NULL */
int wk_cuda_scale(wk_stream s, enum wk_cuda_type t, void *y, size_t n, float a, const float *by);
int wk_cuda_add(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n);
/* y = x, rounded to nearest even; the types may be the same */
int wk_cuda_convert(wk_stream s, enum wk_cuda_type to, void *y, enum wk_cuda_type from,
                    const void *x, size_t n);
/* *sum = sum of x^2 */
int wk_cuda_square_sum(wk_stream s, float *sum, enum wk_cuda_type t, const void *x, size_t n,
                       void *scratch);
size_t wk_cuda_square_sum_scratch(size_t n);
/* y (rows, cols) += bias (cols); y may be float beside a bias of 16 bits */
int wk_cuda_add_bias(wk_stream s, enum wk_cuda_type t, void *y, enum wk_cuda_type w,
                     const void *bias, int rows, int cols);
/* d_bias (cols) += column sums of d_y (rows, cols), for each of a batch: number k of both is k steps of elements further. */
#define WK_CUDA_BIASES 4 /* most of a batch */
int wk_cuda_bias_backward(wk_stream s, float *d_bias, ptrdiff_t bias_step, enum wk_cuda_type t,
                          const void *d_y, ptrdiff_t y_step, int batch, int rows, int cols,
                          void *scratch);
size_t wk_cuda_bias_backward_scratch(int batch, int rows, int cols);

/* ---- Batches out of a resident data set ---- */
int wk_cuda_gather_u8(wk_stream s, enum wk_cuda_type t, void *y, const uint8_t *rows,
                      const int32_t *index, int n, int width, float mean, float std);
int wk_cuda_gather_i32(wk_stream s, int32_t *y, const int32_t *values, const int32_t *index, int n);
/* Token sequences, one after the other. Feature i of the data set is the tokens at[i] to at[i + 1] - 1, of type 0 before
 * second[i] tokens and 1 from there on. Sequence k of the batch is feature sample[k], in the rows first[k] to first[k + 1] - 1: what
 * follows its tokens is padding (id and type 0). Writes ids, types and sequence of all p->rows rows; p->sequence is not read. */
int wk_cuda_gather_tokens(wk_stream s, int32_t *ids, int32_t *types, int32_t *sequence,
                          const struct wk_cuda_packing *p, const int32_t *tokens, const int32_t *at,
                          const int32_t *second);

/* ---- LSTM: x (batch, steps, in), weights and h of type t; state float ---- */
struct wk_cuda_lstm {
    int batch, steps, in, hidden;
};
/* floats of the state that forward leaves for backward */
size_t wk_cuda_lstm_state(const struct wk_cuda_lstm *l);
/* state may be NULL: then there is no backward */
int wk_cuda_lstm_forward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_lstm *l,
                         const void *w_ih, const void *w_hh, const void *b_ih, const void *b_hh,
                         void *h, float *state, const void *x, void *scratch);
size_t wk_cuda_lstm_forward_scratch(const struct wk_cuda_lstm *l);
int wk_cuda_lstm_backward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_lstm *l,
                          const void *w_ih, const void *w_hh, float *d_w_ih, float *d_w_hh,
                          float *d_b_ih, float *d_b_hh, float *state, const void *x,
                          const void *d_h, void *scratch);
size_t wk_cuda_lstm_backward_scratch(const struct wk_cuda_lstm *l);

/* ---- Batch normalisation: x, y (rows, cols) of t; weight, bias of w; the rest float ---- */
int wk_cuda_batchnorm_forward(wk_stream s, enum wk_cuda_type t, void *y, float *saved,
                              float *running_mean, float *running_var, const void *x,
                              enum wk_cuda_type w, const void *weight, const void *bias, int rows,
                              int cols);
int wk_cuda_batchnorm_infer(wk_stream s, enum wk_cuda_type t, void *y, const float *running_mean,
                            const float *running_var, const void *x, enum wk_cuda_type w,
                            const void *weight, const void *bias, int rows, int cols);
int wk_cuda_batchnorm_backward(wk_stream s, enum wk_cuda_type t, void *d_x, float *d_weight,
                               float *d_bias, const void *d_y, const void *x, enum wk_cuda_type w,
                               const void *weight, const float *saved, int rows, int cols);

/* ---- Dropout, ReLU, classification ---- */
int wk_cuda_dropout(wk_stream s, enum wk_cuda_type t, void *y, const void *x, const int32_t *sample,
                    int rows, int cols, double p, const struct wk_cuda_rng *rng);
int wk_cuda_relu_forward(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n);
int wk_cuda_relu_backward(wk_stream s, enum wk_cuda_type t, void *d_x, const void *d_y,
                          const void *y, size_t n);
/* Logits are float. d_logits of type t = weight times *scale (NULL: 1) times the gradient of the mean loss. */
int wk_cuda_nll(wk_stream s, float *loss, enum wk_cuda_type t, void *d_logits, const float *logits,
                const int32_t *labels, int rows, int classes, float weight, const float *scale,
                void *scratch);
int wk_cuda_nll_score(wk_stream s, float *out, const float *logits, const int32_t *labels, int rows,
                      int classes, void *scratch);
size_t wk_cuda_nll_scratch(int rows); /* of both */

/* The RNN's head but for its loss, see struct wk_head in backends/backend.h. x, normed, dense, d_x and d_logits of t; weights and biases of w; logits
 * and statistics float. */
struct wk_cuda_head {
    int rows, in, mid, out;
    double drop_in, drop_mid;
    struct wk_cuda_rng rng;
    const int32_t *sample;
    const void *x;
    void *normed, *dense;
    float *saved;
    const void *norm_weight, *norm_bias, *weight1, *bias1, *weight2, *bias2;
};
struct wk_cuda_head_gradients {
    float *norm_weight, *norm_bias, *weight1, *bias1, *weight2, *bias2;
};
int wk_cuda_head_forward(wk_stream s, enum wk_cuda_type t, enum wk_cuda_type w,
                         const struct wk_cuda_head *h, float *logits, float *running_mean,
                         float *running_var);
int wk_cuda_head_backward(wk_stream s, enum wk_cuda_type t, enum wk_cuda_type w,
                          const struct wk_cuda_head *h, const struct wk_cuda_head_gradients *d,
                          void *d_x, const void *d_logits);

/* ---- Token sequences ---- */
int wk_cuda_embed_forward(wk_stream s, enum wk_cuda_type t, void *y, const int32_t *ids,
                          const int32_t *types, const struct wk_cuda_packing *p,
                          enum wk_cuda_type w, const void *word, const void *position,
                          const void *type, int cols);
/* types: how many token types there are */
int wk_cuda_embed_backward(wk_stream s, float *d_word, float *d_position, float *d_type,
                           enum wk_cuda_type t, const void *d_y, const int32_t *ids,
                           const int32_t *types, const struct wk_cuda_packing *p, int padding,
                           int cols, int n_words, int n_types, void *scratch);
size_t wk_cuda_embed_backward_scratch(const struct wk_cuda_packing *p, int cols, int n_words,
                                      int n_types);
int wk_cuda_token_dropout(wk_stream s, enum wk_cuda_type t, void *y, const void *x,
                          const struct wk_cuda_packing *p, int cols, double drop,
                          const struct wk_cuda_rng *rng);
int wk_cuda_norm_forward(wk_stream s, enum wk_cuda_type t, void *y, float *saved, void *x,
                         const void *residual, enum wk_cuda_type w, const void *weight,
                         const void *bias, const struct wk_cuda_packing *p, int cols, double eps,
                         double drop, const struct wk_cuda_rng *rng);
int wk_cuda_norm_backward(wk_stream s, enum wk_cuda_type t, void *d_sum, void *d_x, float *d_weight,
                          float *d_bias, const void *d_y, const void *sum, enum wk_cuda_type w,
                          const void *weight, const float *saved, const struct wk_cuda_packing *p,
                          int cols, double drop, const struct wk_cuda_rng *rng, void *scratch);
size_t wk_cuda_norm_backward_scratch(const struct wk_cuda_packing *p, int cols);
/* tanh: the approximation; else erf */
int wk_cuda_gelu_forward(wk_stream s, enum wk_cuda_type t, void *y, const void *x, size_t n,
                         int tanh_form);
int wk_cuda_gelu_backward(wk_stream s, enum wk_cuda_type t, void *d_x, const void *d_y,
                          const void *x, size_t n, int tanh_form);

/* Attention; sizes are multiples of 8 up to 128. Rows of q, k, v are `stride` elements apart, those of their gradients d_stride;
 * out and d_out are dense, (rows, heads size). */
struct wk_cuda_attention {
    int heads, size, stride, d_stride;
    int tf32; /* GEMMs of floats may round their factors to tf32 */
    double drop;
    struct wk_cuda_rng rng;
};
/* Bytes of dropout's mask, aligned to 16 */
size_t wk_cuda_attention_mask(int heads, int rows, int longest);
/* lse (rows, heads) and mask may be NULL */
int wk_cuda_attention_forward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_attention *a,
                              const struct wk_cuda_packing *p, void *out, float *lse, uint8_t *mask,
                              const void *q, const void *k, const void *v);
/* out, lse and mask are what forward gave. */
int wk_cuda_attention_backward(wk_stream s, enum wk_cuda_type t, const struct wk_cuda_attention *a,
                               const struct wk_cuda_packing *p, void *d_q, void *d_k, void *d_v,
                               const void *d_out, const void *out, const float *lse,
                               const uint8_t *mask, const void *q, const void *k, const void *v,
                               void *scratch);
size_t wk_cuda_attention_backward_scratch(int heads, int rows);

/* Logits (rows, 2) are float. d_logits of type t = weight times *scale (NULL: 1) times the gradient; may be NULL. */
int wk_cuda_span_loss(wk_stream s, float *loss, enum wk_cuda_type t, void *d_logits,
                      const float *logits, const struct wk_cuda_packing *p, const int32_t *starts,
                      const int32_t *ends, float weight, const float *scale, void *scratch);
size_t wk_cuda_span_loss_scratch(const struct wk_cuda_packing *p);

/* ---- Optimizers ---- */
/* The numbers of the step that is running, in device memory: one upload a step. */
struct wk_cuda_step {
    uint32_t number; /* for struct wk_cuda_rng */
    float lr;
    float taken; /* this update's number from 1, skipped ones too */
    float unused;
};

/* The op `control`: its rules are in backends/control.h. square_sum is the sum of squares of the whole
 * gradient. clip 0: none. */
int wk_cuda_control(wk_stream s, float *control, const float *square_sum, float clip, int scaled,
                    int grow_after);

enum wk_cuda_adamw_form { WK_CUDA_ADAMW_TORCH, WK_CUDA_ADAMW_HF, WK_CUDA_ADAMW_GOOGLE };
/* What AdamW multiplies with, made once a step by one thread in double: of struct wk_adamw in backends/backend.h,
 *   value = (value (1 - before decay) - rate m / (sqrt(v) root + eps)) (1 - after decay)
 *   TORCH   rate = lr / (1 - beta1^t), root = 1 / sqrt(1 - beta2^t), before = lr, after = 0
 *   HF      rate = lr sqrt(1 - beta2^t) / (1 - beta1^t), root = 1, before = 0, after = lr
 *   GOOGLE  rate = lr, root = 1, before = lr, after = 0
 * t = step->taken less control's SKIPPED (control may be NULL); scale and skip are control's, or `scale` and 0. */
struct wk_cuda_factors {
    float scale, skip, lr, rate, root, before, after, unused;
};
int wk_cuda_factors(wk_stream s, struct wk_cuda_factors *out, const struct wk_cuda_step *step,
                    const float *control, float scale, enum wk_cuda_adamw_form form, double beta1,
                    double beta2);
/* Both update `value` from scale * gradient and write it to copy (of type c) too, unless copy is NULL; with skip they change nothing
 * and copy stays. Adadelta takes scale and skip from control, or `scale` and 0. spared (may be NULL): for each `grain` elements, a multiple of 8, whether they do not decay. */
int wk_cuda_adamw(wk_stream s, float *value, enum wk_cuda_type c, void *copy, const float *gradient,
                  float *m, float *v, size_t n, const struct wk_cuda_factors *f, double beta1,
                  double beta2, float eps, float decay, const uint8_t *spared, int grain);
int wk_cuda_adadelta(wk_stream s, float *value, enum wk_cuda_type c, void *copy,
                     const float *gradient, float *square, float *delta, size_t n,
                     const struct wk_cuda_step *step, const float *control, float scale, double rho,
                     float eps);

#ifdef __cplusplus
}
#endif

#endif
