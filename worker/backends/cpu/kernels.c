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

/* The values of one step: rows x padded each; before is NULL in the first step. */
struct step_at {
    const wk_real *x;
    const wk_real *h_before, *c_before;
    wk_real *h, *c;
    wk_real *gates; /* of the group; NULL: not kept */
};

/* The gates' functions and the new c and h of one row, from the gates' sums z; divisions are shared, being what costs most. */
INLINE void cell_forward(const wk_real *z, const wk_real *c_before, wk_real *c_at, wk_real *h_at,
                         wk_real *gates)
{
    vec i_inverse = vec_logistic_inverse(vec_load(z));
    vec f_inverse = vec_logistic_inverse(vec_load(z + LANES));
    vec g_part = vec_tanh_part(vec_load(z + 2 * LANES));
    vec o_inverse = vec_logistic_inverse(vec_load(z + 3 * LANES));
    vec g_inverse = g_part + (wk_real)2;
    vec ig = (wk_real)1 / (i_inverse * g_inverse), fo = (wk_real)1 / (f_inverse * o_inverse);
    vec i = ig * g_inverse, g = ig * i_inverse * g_part, f = fo * o_inverse, o = fo * f_inverse;
    vec c = i * g, part;

    if (c_before)
        c += f * vec_load(c_before);
    part = vec_tanh_part(c);
    vec_store(c_at, c);
    vec_store(h_at, o * part / (part + (wk_real)2));
    if (gates) {
        vec_store(gates, i);
        vec_store(gates + LANES, f);
        vec_store(gates + 2 * LANES, g);
        vec_store(gates + 3 * LANES, o);
    }
}

/* Not inlined: the constants of these functions would take the registers of the product in front of it. */
static __attribute__((noinline)) void cells_forward(int rows, const wk_real *z, size_t at,
                                                    size_t padded, const struct step_at *s,
                                                    wk_real *gates)
{
    for (int r = 0; r < rows; r++, at += padded, z += PANEL) {
        cell_forward(z, s->c_before ? s->c_before + at : NULL, s->c + at, s->h + at, gates);
        if (gates)
            gates += PANEL;
    }
}

/* z (rows, 4 vectors) = what flows into the gates of a group */
INLINE void tile_forward(int rows, const struct wk_lstm_job *j, int group, int row,
                         const struct step_at *s, wk_real *z)
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
    for (int r = 0; r < rows; r++)
        for (int gate = 0; gate < 4; gate++)
            vec_store(z + r * PANEL + gate * LANES, sum[r][gate]);
}

static void step_forward(const struct wk_lstm_job *j, int rows, struct step_at *s, wk_real *gates)
{
    size_t padded = (size_t)padded_of(j);

    for (int group = 0; group < j->groups; group++) {
        s->gates = gates ? gates + (size_t)group * j->steps * j->batch * PANEL : NULL;
        for (int r = 0; r < rows; r += VEC_ROWS) {
            _Alignas(VEC_BYTES) wk_real z[VEC_ROWS * PANEL];
            int n = least(rows - r, VEC_ROWS);

#define BODY(n) tile_forward(n, j, group, r, s, z)
            FOR_ROWS(n, BODY)
#undef BODY
            cells_forward(n, z, r * padded + (size_t)group * LANES, padded, s,
                          s->gates ? s->gates + (size_t)r * PANEL : NULL);
        }
    }
}

/* Where h (array 0) or c (array 1) of these rows is at a step: in the kept state, else in two
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
INLINE void outer_product(int inputs, wk_real *sum_at, const wk_real *a, size_t a_stride,
                          const wk_real *d, int rows)
{
    vec sum[VEC_ROWS][4];

#pragma GCC unroll 8
    for (int k = 0; k < inputs; k++)
        for (int gate = 0; gate < 4; gate++)
            sum[k][gate] = vec_load(sum_at + k * PANEL + gate * LANES);
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
#pragma GCC unroll 8
    for (int k = 0; k < inputs; k++)
        for (int gate = 0; gate < 4; gate++)
            vec_store(sum_at + k * PANEL + gate * LANES, sum[k][gate]);
}

/* sum (panel) += the rows of d */
static void add_rows(wk_real *sum, const wk_real *d, int rows)
{
    vec s[4];

    for (int gate = 0; gate < 4; gate++)
        s[gate] = vec_load(sum + gate * LANES);
    for (int row = 0; row < rows; row++)
        for (int gate = 0; gate < 4; gate++)
            s[gate] += vec_load(d + row * PANEL + gate * LANES);
    for (int gate = 0; gate < 4; gate++)
        vec_store(sum + gate * LANES, s[gate]);
}

/* The inputs of a group's gates: those of x, those of h, and the bias; cut into tiles. */
struct tile {
    enum { OF_X, OF_H, OF_BIAS } of;
    int first, n;
};

static int tiles_of(int n)
{
    return (n + VEC_ROWS - 1) / VEC_ROWS;
}

static int lstm_tiles(const struct wk_lstm_job *j)
{
    return tiles_of(j->in) + tiles_of(j->hidden) + 1;
}

static struct tile tile_at(const struct wk_lstm_job *j, int i)
{
    int of_x = tiles_of(j->in), first;

    if (i == lstm_tiles(j) - 1)
        return (struct tile){ OF_BIAS, 0, 1 };
    first = (i < of_x ? i : i - of_x) * VEC_ROWS;
    return i < of_x ? (struct tile){ OF_X, first, least(j->in - first, VEC_ROWS) }
                    : (struct tile){ OF_H, first, least(j->hidden - first, VEC_ROWS) };
}

/* One step's part of one tile. */
static void tile_step(const struct wk_lstm_job *j, const struct tile *tile, int t, const wk_real *d,
                      wk_real *sum)
{
    size_t padded = (size_t)padded_of(j),
           stride = tile->of == OF_X ? (size_t)j->steps * j->in : padded;
    const wk_real *a = tile->of == OF_X
                           ? j->x + (size_t)t * j->in
                           : j->h + (size_t)(t - 1) * j->batch * padded; /* h of the step before */

    if (tile->of == OF_BIAS) {
        add_rows(sum, d, j->batch);
        return;
    }
    if (tile->of == OF_H && t == 0)
        return;
    a += tile->first;
#define BODY(inputs) outer_product(inputs, sum, a, stride, d, j->batch)
    FOR_ROWS(tile->n, BODY)
#undef BODY
}

/* Add a tile's sums (n, panel) to the rows of the gradient (4 hidden, cols) that the panel stands for. */
static void tile_add(const struct wk_lstm_job *j, const struct tile *tile, int group,
                     const wk_real *sum, wk_real *d_w, int cols)
{
    for (int gate = 0; gate < 4; gate++)
        for (int lane = 0; lane < LANES && group * LANES + lane < j->hidden; lane++) {
            wk_real *to =
                d_w + (size_t)(gate * j->hidden + group * LANES + lane) * cols + tile->first;

            for (int k = 0; k < tile->n; k++)
                to[k] += sum[k * PANEL + gate * LANES + lane];
        }
}

static void lstm_weights(const struct wk_lstm_job *j, int group, int first, int n, wk_real *scratch)
{
    const wk_real *d = j->gates + (size_t)group * j->steps * j->batch * PANEL;

    memset(scratch, 0, (size_t)n * VEC_ROWS * PANEL * sizeof *scratch);
    for (int t = 0; t < j->steps;
         t++) /* a step's gradients stay in the nearest cache for all tiles */
        for (int i = 0; i < n; i++) {
            struct tile tile = tile_at(j, first + i);

            tile_step(j, &tile, t, d + (size_t)t * j->batch * PANEL,
                      scratch + (size_t)i * VEC_ROWS * PANEL);
        }
    for (int i = 0; i < n; i++) {
        struct tile tile = tile_at(j, first + i);
        const wk_real *sum = scratch + (size_t)i * VEC_ROWS * PANEL;

        if (tile.of == OF_BIAS) {
            tile_add(j, &tile, group, sum, j->d_b_ih, 1);
            tile_add(j, &tile, group, sum, j->d_b_hh, 1);
        } else {
            tile_add(j, &tile, group, sum, tile.of == OF_X ? j->d_w_ih : j->d_w_hh,
                     tile.of == OF_X ? j->in : j->hidden);
        }
    }
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
    uint32_t limit = wk_drop_limit(p);
    wk_real factor = (wk_real)(1 / (1 - p));

    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col += 8) {
            uint32_t bits[4];

            wk_philox(rng.seed, (uint32_t)col / 8, rng.site, (uint32_t)sample[row], rng.step, bits);
            for (int k = 0; k < 8 && col + k < cols; k++) {
                size_t at = (size_t)row * cols + col + k;

                y[at] = (bits[k / 2] >> (k % 2 * 16) & 0xffff) < limit ? 0 : x[at] * factor;
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
