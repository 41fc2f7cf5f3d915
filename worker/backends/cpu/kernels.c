/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once per instruction set; WK_ISA names it. See kernels.h. */
#include "backends/cpu/kernels.h"

#include <math.h>

#include "backends/cpu/vec.h"

#define PANEL (4 * LANES)
#define CAT2(a, b) a##b
#define CAT(a, b) CAT2(a, b)
#define TEXT2(a) #a
#define TEXT(a) TEXT2(a)

/* Call body(rows) with a constant, so that its accumulators become registers. */
#if VEC_ROWS == 6
#define FOR_ROWS(rows, body) \
    switch (rows) {          \
    case 1:                  \
        body(1);             \
        break;               \
    case 2:                  \
        body(2);             \
        break;               \
    case 3:                  \
        body(3);             \
        break;               \
    case 4:                  \
        body(4);             \
        break;               \
    case 5:                  \
        body(5);             \
        break;               \
    default:                 \
        body(6);             \
        break;               \
    }
#elif VEC_ROWS == 3
#define FOR_ROWS(rows, body) \
    switch (rows) {          \
    case 1:                  \
        body(1);             \
        break;               \
    case 2:                  \
        body(2);             \
        break;               \
    default:                 \
        body(3);             \
        break;               \
    }
#else
#define FOR_ROWS(rows, body) \
    switch (rows) {          \
    case 1:                  \
        body(1);             \
        break;               \
    default:                 \
        body(2);             \
        break;               \
    }
#endif

static int padded_of(const struct wk_lstm_job *j)
{
    return j->groups * LANES;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* ---- LSTM: weights into panels ---- */

static void pack_rows(wk_real *to, const wk_real *w, const struct wk_lstm_job *j, int cols,
                      int group)
{
    for (int gate = 0; gate < 4; gate++)
        for (int lane = 0; lane < LANES; lane++) {
            int unit = group * LANES + lane;
            const wk_real *row = w + (size_t)(gate * j->hidden + unit) * cols;

            for (int k = 0; k < cols; k++)
                to[k * PANEL + gate * LANES + lane] = unit < j->hidden ? row[k] : 0;
        }
}

static void lstm_pack(const struct wk_lstm_job *j, int group)
{
    int padded = padded_of(j);
    wk_real *to = j->packed + (size_t)group * (1 + j->in + padded) * PANEL;
    wk_real *to_t = j->packed_t + (size_t)group * PANEL * padded;

    for (int gate = 0; gate < 4; gate++)
        for (int lane = 0; lane < LANES; lane++) {
            int unit = group * LANES + lane, at = gate * j->hidden + unit;
            wk_real *row_t = to_t + (size_t)(gate * LANES + lane) * padded;
            int real = unit < j->hidden;

            to[gate * LANES + lane] = real ? j->b_ih[at] + j->b_hh[at] : 0;
            memset(row_t, 0, (size_t)padded * sizeof *row_t);
            if (real)
                memcpy(row_t, j->w_hh + (size_t)at * j->hidden, (size_t)j->hidden * sizeof *row_t);
        }
    pack_rows(to + PANEL, j->w_ih, j, j->in, group);
    pack_rows(to + (size_t)(1 + j->in) * PANEL, j->w_hh, j, j->hidden, group);
}

/* ---- LSTM: forward ---- */

/* sum (rows, 4 vectors) += a (rows, k) times panel (k, 4 vectors) */
INLINE void panel_product(int rows, vec sum[][4], const wk_real *a, size_t a_stride,
                          const wk_real *panel, int k)
{
    for (int i = 0; i < k; i++) {
        vec w0 = vec_load(panel + i * PANEL), w1 = vec_load(panel + i * PANEL + LANES);
        vec w2 = vec_load(panel + i * PANEL + 2 * LANES),
            w3 = vec_load(panel + i * PANEL + 3 * LANES);

#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            vec s = vec_set(a[r * a_stride + i]);

            sum[r][0] += s * w0;
            sum[r][1] += s * w1;
            sum[r][2] += s * w2;
            sum[r][3] += s * w3;
        }
    }
}

/* Where one row's values of one step and group lie. */
struct cell_at {
    wk_real *gates;          /* NULL: not kept */
    const wk_real *c_before; /* NULL: zero */
    wk_real *c, *h;
};

/* The gates' functions and the new c and h; divisions are shared, being what costs most here. */
INLINE void cell_forward(const vec z[4], const struct cell_at *at)
{
    vec i_inverse = vec_logistic_inverse(z[0]), f_inverse = vec_logistic_inverse(z[1]);
    vec g_part = vec_tanh_part(z[2]), o_inverse = vec_logistic_inverse(z[3]);
    vec g_inverse = g_part + (wk_real)2;
    vec ig = (wk_real)1 / (i_inverse * g_inverse), fo = (wk_real)1 / (f_inverse * o_inverse);
    vec i = ig * g_inverse, g = ig * i_inverse * g_part, f = fo * o_inverse, o = fo * f_inverse;
    vec c = i * g, part;

    if (at->c_before)
        c += f * vec_load(at->c_before);
    part = vec_tanh_part(c);
    vec_store(at->c, c);
    vec_store(at->h, o * part / (part + (wk_real)2));
    if (at->gates) {
        vec_store(at->gates, i);
        vec_store(at->gates + LANES, f);
        vec_store(at->gates + 2 * LANES, g);
        vec_store(at->gates + 3 * LANES, o);
    }
}

/* The values of one step: rows x padded each; before is NULL in the first step. */
struct step_at {
    const wk_real *x;
    const wk_real *h_before, *c_before;
    wk_real *h, *c;
    wk_real *gates; /* of the group; NULL: not kept */
};

INLINE void tile_forward(int rows, const struct wk_lstm_job *j, int group, int row,
                         const struct step_at *s)
{
    size_t padded = (size_t)padded_of(j);
    const wk_real *panel = j->packed + (size_t)group * (1 + j->in + padded) * PANEL;
    size_t x_stride = (size_t)j->steps * j->in;
    vec sum[VEC_ROWS][4];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int gate = 0; gate < 4; gate++)
            sum[r][gate] = vec_load(panel + gate * LANES);
    panel_product(rows, sum, s->x + row * x_stride, x_stride, panel + PANEL, j->in);
    if (s->h_before)
        panel_product(rows, sum, s->h_before + row * padded, padded,
                      panel + (size_t)(1 + j->in) * PANEL, j->hidden);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        size_t at = (row + r) * padded + (size_t)group * LANES;
        struct cell_at cell = { .c = s->c + at,
                                .h = s->h + at,
                                .c_before = s->c_before ? s->c_before + at : NULL,
                                .gates = s->gates ? s->gates + (size_t)(row + r) * PANEL : NULL };

        cell_forward(sum[r], &cell);
    }
}

static void step_forward(const struct wk_lstm_job *j, int rows, struct step_at *s, wk_real *gates)
{
    for (int group = 0; group < j->groups; group++) {
        s->gates = gates ? gates + (size_t)group * j->steps * j->batch * PANEL : NULL;
        for (int r = 0; r < rows; r += VEC_ROWS) {
#define BODY(n) tile_forward(n, j, group, r, s)
            FOR_ROWS(least(rows - r, VEC_ROWS), BODY)
#undef BODY
        }
    }
}

/* Where h (array 0) or c (array 1) of these rows stands at a step: in the kept state, else in two
 * scratch places in turn. */
static wk_real *place(const struct wk_lstm_job *j, int array, int step, int row, int rows,
                      wk_real *scratch)
{
    size_t padded = (size_t)padded_of(j);

    if (j->gates)
        return (array ? j->c : j->h) + ((size_t)step * j->batch + row) * padded;
    return scratch + (size_t)(array * 2 + step % 2) * rows * padded;
}

static void lstm_forward(const struct wk_lstm_job *j, int row, int rows, wk_real *scratch)
{
    size_t padded = (size_t)padded_of(j);
    const wk_real *last;

    for (int t = 0; t < j->steps; t++) {
        struct step_at s = {
            .x = j->x + ((size_t)row * j->steps + t) * j->in,
            .h = place(j, 0, t, row, rows, scratch),
            .c = place(j, 1, t, row, rows, scratch),
            .h_before = t ? place(j, 0, t - 1, row, rows, scratch) : NULL,
            .c_before = t ? place(j, 1, t - 1, row, rows, scratch) : NULL,
        };

        step_forward(j, rows, &s,
                     j->gates ? j->gates + ((size_t)t * j->batch + row) * PANEL : NULL);
    }
    last = place(j, 0, j->steps - 1, row, rows, scratch);
    for (int r = 0; r < rows; r++)
        memcpy(j->h_out + (size_t)(row + r) * j->hidden, last + r * padded,
               (size_t)j->hidden * sizeof *last);
}

/* ---- LSTM: backward through time ---- */

/* One row's gradients of the gates' inputs, in place of the gates; d_c goes one step back. */
INLINE void cell_backward(wk_real *gates, const wk_real *c_now, const wk_real *c_before,
                          const wk_real *d_h_at, wk_real *d_c_at)
{
    const wk_real one = 1;
    vec i = vec_load(gates), f = vec_load(gates + LANES), g = vec_load(gates + 2 * LANES);
    vec o = vec_load(gates + 3 * LANES), d_h = vec_load(d_h_at);
    vec part = vec_tanh_part(vec_load(c_now)), tanh_c = part / (part + (wk_real)2);
    vec d_c = vec_load(d_c_at) + d_h * o * (one - tanh_c * tanh_c);
    vec c = c_before ? vec_load(c_before) : vec_set(0);

    vec_store(gates, d_c * g * i * (one - i));
    vec_store(gates + LANES, d_c * c * f * (one - f));
    vec_store(gates + 2 * LANES, d_c * i * (one - g * g));
    vec_store(gates + 3 * LANES, d_h * tanh_c * o * (one - o));
    vec_store(d_c_at, d_c * f);
}

/* d_h (rows, n vectors) = gradients of the gates (rows, 4 padded) times the recurrent weights */
INLINE void tile_backward(int rows, int n, const struct wk_lstm_job *j, int t, int row, int col,
                          wk_real *d_h)
{
    size_t padded = (size_t)padded_of(j);
    vec sum[VEC_ROWS][4];

#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < n; v++)
            sum[r][v] = vec_set(0);
    for (int group = 0; group < j->groups; group++) {
        const wk_real *a = j->gates + (((size_t)group * j->steps + t) * j->batch + row) * PANEL;
        const wk_real *w = j->packed_t + (size_t)group * PANEL * padded + col;

        for (int k = 0; k < PANEL; k++) {
            vec wv[4];

#pragma GCC unroll 4
            for (int v = 0; v < n; v++)
                wv[v] = vec_load(w + k * padded + (size_t)v * LANES);
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                vec s = vec_set(a[r * PANEL + k]);

#pragma GCC unroll 4
                for (int v = 0; v < n; v++)
                    sum[r][v] += s * wv[v];
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < n; v++)
            vec_store(d_h + r * padded + col + (size_t)v * LANES, sum[r][v]);
}

static void step_backward(const struct wk_lstm_job *j, int t, int row, int rows, wk_real *d_h)
{
    size_t padded = (size_t)padded_of(j);

    for (int col = 0; col < (int)padded;) {
        int n = ((int)padded - col) / LANES >= 4 ? 4 : 1;

        for (int r = 0; r < rows; r += VEC_ROWS) {
#define BODY4(m) tile_backward(m, 4, j, t, row + r, col, d_h + r * padded)
#define BODY1(m) tile_backward(m, 1, j, t, row + r, col, d_h + r * padded)
            if (n == 4)
                FOR_ROWS(least(rows - r, VEC_ROWS), BODY4)
            else
                FOR_ROWS(least(rows - r, VEC_ROWS), BODY1)
#undef BODY4
#undef BODY1
        }
        col += n * LANES;
    }
}

static void lstm_backward(const struct wk_lstm_job *j, int row, int rows, wk_real *scratch)
{
    size_t padded = (size_t)padded_of(j), step = (size_t)j->batch * padded;
    wk_real *d_h = scratch, *d_c = scratch + rows * padded;

    memset(scratch, 0, 2 * rows * padded * sizeof *scratch);
    for (int r = 0; r < rows; r++)
        memcpy(d_h + r * padded, j->d_h + (size_t)(row + r) * j->hidden,
               (size_t)j->hidden * sizeof *d_h);
    for (int t = j->steps - 1; t >= 0; t--) {
        const wk_real *c = j->c + t * step + row * padded;

        for (int group = 0; group < j->groups; group++) {
            wk_real *gates = j->gates + (((size_t)group * j->steps + t) * j->batch + row) * PANEL;

            for (int r = 0; r < rows; r++) {
                size_t at = r * padded + (size_t)group * LANES;

                cell_backward(gates + (size_t)r * PANEL, c + at, t ? c + at - step : NULL, d_h + at,
                              d_c + at);
            }
        }
        if (t)
            step_backward(j, t, row, rows, d_h);
    }
}

/* ---- LSTM: gradients of the weights ---- */

/* sum (inputs, 4 vectors) += over rows: a (rows, inputs)' times d (rows, 4 vectors) */
INLINE void outer_product(int inputs, vec sum[][4], const wk_real *a, size_t a_stride,
                          const wk_real *d, int rows)
{
    for (int row = 0; row < rows; row++) {
        vec d0 = vec_load(d + row * PANEL), d1 = vec_load(d + row * PANEL + LANES);
        vec d2 = vec_load(d + row * PANEL + 2 * LANES), d3 = vec_load(d + row * PANEL + 3 * LANES);

#pragma GCC unroll 8
        for (int k = 0; k < inputs; k++) {
            vec s = vec_set(a[row * a_stride + k]);

            sum[k][0] += s * d0;
            sum[k][1] += s * d1;
            sum[k][2] += s * d2;
            sum[k][3] += s * d3;
        }
    }
}

/* Add a tile (inputs, panel) to the rows of d_w (4 hidden, cols) that the panel stands for. */
INLINE void tile_add(int inputs, vec sum[][4], const struct wk_lstm_job *j, int group, wk_real *d_w,
                     int cols)
{
    wk_real tile[VEC_ROWS * PANEL];

    for (int k = 0; k < inputs; k++)
        for (int gate = 0; gate < 4; gate++)
            vec_store(tile + k * PANEL + gate * LANES, sum[k][gate]);
    for (int gate = 0; gate < 4; gate++)
        for (int lane = 0; lane < LANES && group * LANES + lane < j->hidden; lane++) {
            wk_real *to = d_w + (size_t)(gate * j->hidden + group * LANES + lane) * cols;

            for (int k = 0; k < inputs; k++)
                to[k] += tile[k * PANEL + gate * LANES + lane];
        }
}

INLINE void tile_weights(int inputs, const struct wk_lstm_job *j, int group, int of_h, int first)
{
    size_t step = (size_t)j->batch * PANEL, padded = (size_t)padded_of(j);
    const wk_real *d = j->gates + (size_t)group * j->steps * step;
    vec sum[VEC_ROWS][4];

#pragma GCC unroll 8
    for (int k = 0; k < inputs; k++)
        for (int gate = 0; gate < 4; gate++)
            sum[k][gate] = vec_set(0);
    if (of_h) /* h of a step meets the gates of the next */
        outer_product(inputs, sum, j->h + first, padded, d + step, (j->steps - 1) * j->batch);
    else
        for (int t = 0; t < j->steps; t++)
            outer_product(inputs, sum, j->x + (size_t)t * j->in + first, (size_t)j->steps * j->in,
                          d + t * step, j->batch);
    if (of_h)
        tile_add(inputs, sum, j, group, j->d_w_hh + first, j->hidden);
    else
        tile_add(inputs, sum, j, group, j->d_w_ih + first, j->in);
}

static void bias_weights(const struct wk_lstm_job *j, int group)
{
    size_t rows = (size_t)j->steps * j->batch;
    const wk_real *d = j->gates + group * rows * PANEL;
    wk_real sum[PANEL];
    vec s[4] = { 0 };

    for (size_t row = 0; row < rows; row++)
        for (int gate = 0; gate < 4; gate++)
            s[gate] += vec_load(d + row * PANEL + gate * LANES);
    for (int gate = 0; gate < 4; gate++)
        vec_store(sum + gate * LANES, s[gate]);
    for (int gate = 0; gate < 4; gate++)
        for (int lane = 0; lane < LANES && group * LANES + lane < j->hidden; lane++) {
            int at = gate * j->hidden + group * LANES + lane;

            j->d_b_ih[at] += sum[gate * LANES + lane];
            j->d_b_hh[at] += sum[gate * LANES + lane];
        }
}

static int tiles_of(int n)
{
    return (n + VEC_ROWS - 1) / VEC_ROWS;
}

static int lstm_tiles(const struct wk_lstm_job *j)
{
    return tiles_of(j->in) + tiles_of(j->hidden) + 1;
}

static void lstm_weights(const struct wk_lstm_job *j, int group, int tile)
{
    int of_h = tile >= tiles_of(j->in), first, n;

    if (tile == lstm_tiles(j) - 1) {
        bias_weights(j, group);
        return;
    }
    first = (tile - (of_h ? tiles_of(j->in) : 0)) * VEC_ROWS;
    n = least((of_h ? j->hidden : j->in) - first, VEC_ROWS);
#define BODY(inputs) tile_weights(inputs, j, group, of_h, first)
    FOR_ROWS(n, BODY)
#undef BODY
}

/* ---- Elementwise ---- */

static void convert_u8(wk_real *y, const uint8_t *x, size_t n, wk_real scale, wk_real shift)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * scale + shift;
}

static void dropout(wk_real *y, const wk_real *x, const int32_t *sample, int rows, int cols,
                    double p, struct wk_rng rng)
{
    uint32_t limit = (uint32_t)(p * 0x1p32);
    wk_real factor = (wk_real)(1 / (1 - p));

    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col += 4) {
            uint32_t bits[4];

            wk_philox(rng.seed, (uint32_t)col / 4, rng.site, (uint32_t)sample[row], rng.step, bits);
            for (int k = 0; k < 4 && col + k < cols; k++) {
                size_t at = (size_t)row * cols + col + k;

                y[at] = bits[k] < limit ? 0 : x[at] * factor;
            }
        }
}

#ifdef WK_REAL_F64
#define wk_sqrt sqrt
#else
#define wk_sqrt sqrtf
#endif

static void adadelta(wk_real *restrict value, const wk_real *restrict gradient,
                     wk_real *restrict square, wk_real *restrict delta, size_t n, double lr_,
                     double rho_, double eps_)
{
    const wk_real lr = (wk_real)lr_, rho = (wk_real)rho_, rest = (wk_real)(1 - rho_);
    const wk_real eps = (wk_real)eps_;

    for (size_t i = 0; i < n; i++) {
        wk_real g = gradient[i], sq = rho * square[i] + rest * g * g;
        wk_real u = wk_sqrt(delta[i] + eps) / wk_sqrt(sq + eps) * g;

        square[i] = sq;
        delta[i] = rho * delta[i] + rest * u * u;
        value[i] -= lr * u;
    }
}

extern const struct wk_kernels CAT(wk_kernels_, WK_ISA);
const struct wk_kernels CAT(wk_kernels_, WK_ISA) = {
    .isa = TEXT(WK_ISA),
    .lanes = LANES,
    .row_tile = VEC_ROWS,
    .lstm_pack = lstm_pack,
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
    .lstm_weights = lstm_weights,
    .lstm_tiles = lstm_tiles,
    .convert_u8 = convert_u8,
    .dropout = dropout,
    .adadelta = adadelta,
};
