/* SPDX-License-Identifier: Apache-2.0 */
/* The serial inner loops of the cpu backend. kernels.c is compiled once per instruction set (see
 * worker/CMakeLists.txt) and the widest one that this machine has is chosen when a device is
 * opened, so one binary runs on any machine. Every function works on a part of the rows or columns
 * and gives an element the same bits whatever the part: how many threads share the work does not
 * show in results. */
#ifndef WK_BACKENDS_CPU_KERNELS_H
#define WK_BACKENDS_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/real.h"
#include "backends/rng.h"

/* One LSTM call. The hidden units are cut into groups of one vector of `lanes`; a panel is one
 * group's four gates side by side, [i lanes][f lanes][g lanes][o lanes], so that one pass over the
 * inputs gives all that a unit needs, in registers. Units that fill up the last group have zero
 * weights, and stay zero in c, h and all gradients. */
struct wk_lstm_job {
    int batch, steps, in, hidden;
    int groups;                               /* ceil(hidden / lanes) */
    const wk_real *w_ih, *w_hh, *b_ih, *b_hh; /* as the op has them */
    const wk_real *x;                         /* (batch, steps, in) */
    wk_real *packed;    /* (groups, 1 + in + padded, 4 lanes): bias, input and recurrent rows */
    wk_real *packed_t;  /* (groups, 4 lanes, padded): recurrent weights for backward */
    wk_real *gates;     /* (groups, steps, batch, 4 lanes) after their functions; backward puts
                           gradients here */
    wk_real *c;         /* (steps, batch, padded) */
    wk_real *h;         /* (steps, batch, padded) */
    wk_real *h_out;     /* (batch, hidden) */
    const wk_real *d_h; /* (batch, hidden) */
    wk_real *d_w_ih, *d_w_hh, *d_b_ih, *d_b_hh;
};

struct wk_kernels {
    const char *isa;
    int lanes;    /* reals in a vector */
    int row_tile; /* batch rows that are computed at a time: threads should get multiples */

    void (*lstm_pack)(const struct wk_lstm_job *j, int group);
    /* scratch: (2, 2, rows, padded) when the job keeps no gates, else unused */
    void (*lstm_forward)(const struct wk_lstm_job *j, int row, int rows, wk_real *scratch);
    /* scratch: (2, rows, padded) */
    void (*lstm_backward)(const struct wk_lstm_job *j, int row, int rows, wk_real *scratch);
    /* Gradients of a group's weights, which come in so many tiles: n of them from the first on.
     * scratch: (n, row_tile, 4 lanes) */
    int (*lstm_tiles)(const struct wk_lstm_job *j);
    void (*lstm_weights)(const struct wk_lstm_job *j, int group, int first, int n,
                         wk_real *scratch);

    void (*convert_u8)(wk_real *y, const uint8_t *x, size_t n, wk_real scale, wk_real shift);
    void (*dropout)(wk_real *y, const wk_real *x, const int32_t *sample, int rows, int cols,
                    double p, struct wk_rng rng);
    void (*adadelta)(wk_real *value, const wk_real *gradient, wk_real *square, wk_real *delta,
                     size_t n, double lr, double rho, double eps);
};

/* Of this build; isa.c says which ones this machine can run. */
extern const struct wk_kernels wk_kernels_base;
#ifdef __x86_64__
extern const struct wk_kernels wk_kernels_avx2, wk_kernels_avx512;
#endif

#endif
