/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "backends/cpu/device.h"

#define EPS 1e-5
#define MOMENTUM 0.1

static void cpu_batchnorm_apply(struct wk_dev *dev, struct wk_span y_, struct wk_span x_,
                                struct wk_span saved, struct wk_span weight, struct wk_span bias,
                                int rows, int cols)
{
    const wk_real *x = x_.data, *w = weight.data, *b = bias.data;
    const wk_real *mean = saved.data, *inverse = mean + cols;
    wk_real *y = y_.data;

    (void)dev;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;

            y[at] = (x[at] - mean[k]) * inverse[k] * w[k] + b[k];
        }
}

static void cpu_batchnorm_forward(struct wk_dev *dev, struct wk_span y, struct wk_span saved,
                                  struct wk_span running_mean, struct wk_span running_var,
                                  struct wk_span x_, struct wk_span weight, struct wk_span bias,
                                  int rows, int cols)
{
    const wk_real *x = x_.data;
    wk_real *mean = saved.data, *inverse = mean + cols;
    wk_real *run_mean = running_mean.data, *run_var = running_var.data;
    const wk_real keep = (wk_real)(1 - MOMENTUM), take = (wk_real)MOMENTUM;

    memset(mean, 0, 2 * (size_t)cols * sizeof *mean);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++)
            mean[k] += x[(size_t)r * cols + k];
    for (int k = 0; k < cols; k++)
        mean[k] /= (wk_real)rows;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            wk_real d = x[(size_t)r * cols + k] - mean[k];

            inverse[k] += d * d;
        }
    for (int k = 0; k < cols; k++) {
        wk_real var = inverse[k] / (wk_real)rows, unbiased = inverse[k] / (wk_real)(rows - 1);

        run_mean[k] = keep * run_mean[k] + take * mean[k];
        run_var[k] = keep * run_var[k] + take * unbiased;
        inverse[k] = (wk_real)(1 / sqrt((double)var + EPS));
    }
    cpu_batchnorm_apply(dev, y, x_, saved, weight, bias, rows, cols);
}

static void cpu_batchnorm_infer(struct wk_dev *dev, struct wk_span y_, struct wk_span running_mean,
                                struct wk_span running_var, struct wk_span x_,
                                struct wk_span weight, struct wk_span bias, int rows, int cols)
{
    const wk_real *x = x_.data, *w = weight.data, *b = bias.data;
    const wk_real *mean = running_mean.data, *var = running_var.data;
    wk_real *y = y_.data;

    (void)dev;
    for (int k = 0; k < cols; k++) {
        wk_real a = (wk_real)(w[k] / sqrt((double)var[k] + EPS));

        for (int r = 0; r < rows; r++)
            y[(size_t)r * cols + k] = (x[(size_t)r * cols + k] - mean[k]) * a + b[k];
    }
}

static void cpu_batchnorm_sums(struct wk_dev *dev, struct wk_span sums, struct wk_span d_y_,
                               struct wk_span x_, struct wk_span saved, int rows, int cols)
{
    const wk_real *x = x_.data, *d_y = d_y_.data, *mean = saved.data, *inverse = mean + cols;
    wk_real *sum = sums.data, *sum_xn = sum + cols;

    (void)dev;
    memset(sum, 0, 2 * (size_t)cols * sizeof *sum);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;

            sum[k] += d_y[at];
            sum_xn[k] += d_y[at] * (x[at] - mean[k]) * inverse[k];
        }
}

/* With xn = (x - mean) inverse: d_x = weight inverse (d_y - mean(d_y) - xn mean(d_y xn)). */
static void cpu_batchnorm_spread(struct wk_dev *dev, struct wk_span d_x_, struct wk_span d_y_,
                                 struct wk_span x_, struct wk_span weight, struct wk_span saved,
                                 struct wk_span sums, int rows, int rows_all, int cols)
{
    const wk_real *x = x_.data, *d_y = d_y_.data, *w = weight.data;
    const wk_real *mean = saved.data, *inverse = mean + cols;
    const wk_real *sum = sums.data, *sum_xn = sum + cols;
    wk_real *d_x = d_x_.data;

    (void)dev;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;
            wk_real xn = (x[at] - mean[k]) * inverse[k];

            d_x[at] = w[k] * inverse[k] *
                      (d_y[at] - sum[k] / (wk_real)rows_all - xn * (sum_xn[k] / (wk_real)rows_all));
        }
}

static void cpu_batchnorm_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                   struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                   struct wk_span weight, struct wk_span saved, int rows, int cols)
{
    wk_real *d_w = d_weight.data, *d_b = d_bias.data;
    wk_real *sum = wk_cpu_scratch(cpu_of(dev), 2 * (size_t)cols);
    struct wk_span sums = { sum, 2 * (size_t)cols, WK_REAL };

    cpu_batchnorm_sums(dev, sums, d_y, x, saved, rows, cols);
    cpu_batchnorm_spread(dev, d_x, d_y, x, weight, saved, sums, rows, rows, cols);
    for (int k = 0; k < cols; k++) {
        d_w[k] += sum[cols + k];
        d_b[k] += sum[k];
    }
}

/* ---- The same over several ranks ---- */

static void cpu_batchnorm_moments(struct wk_dev *dev, struct wk_span moments, struct wk_span x_,
                                  int rows, int cols)
{
    const wk_real *x = x_.data;
    wk_real *mean = moments.data, *squares = mean + cols;

    (void)dev;
    memset(mean, 0, 2 * (size_t)cols * sizeof *mean);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++)
            mean[k] += x[(size_t)r * cols + k] / (wk_real)rows;
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            wk_real d = x[(size_t)r * cols + k] - mean[k];

            squares[k] += d * d;
        }
}

/* With means m_i and sums of squares s_i of equally long parts: m = mean(m_i), s = sum(s_i + rows (m_i - m)^2). */
static void cpu_batchnorm_join(struct wk_dev *dev, struct wk_span saved,
                               struct wk_span running_mean, struct wk_span running_var,
                               struct wk_span moments, int parts, int rows, int cols)
{
    const wk_real *m = moments.data;
    wk_real *mean = saved.data, *inverse = mean + cols;
    wk_real *run_mean = running_mean.data, *run_var = running_var.data;
    double n = (double)rows * parts;

    (void)dev;
    for (int k = 0; k < cols; k++) {
        double sum = 0, squares = 0;

        for (int i = 0; i < parts; i++)
            sum += (double)m[(size_t)(2 * i) * cols + k] / parts;
        for (int i = 0; i < parts; i++) {
            double d = (double)m[(size_t)(2 * i) * cols + k] - sum;

            squares += (double)m[(size_t)(2 * i + 1) * cols + k] + rows * d * d;
        }
        mean[k] = (wk_real)sum;
        inverse[k] = (wk_real)(1 / sqrt(squares / n + EPS));
        run_mean[k] += (wk_real)(MOMENTUM * (sum - (double)run_mean[k]));
        run_var[k] += (wk_real)(MOMENTUM * (squares / (n - 1) - (double)run_var[k]));
    }
}

const struct wk_backend wk_cpu_batchnorm_ops = {
    .batchnorm_forward = cpu_batchnorm_forward,
    .batchnorm_infer = cpu_batchnorm_infer,
    .batchnorm_backward = cpu_batchnorm_backward,
    .batchnorm_moments = cpu_batchnorm_moments,
    .batchnorm_join = cpu_batchnorm_join,
    .batchnorm_apply = cpu_batchnorm_apply,
    .batchnorm_sums = cpu_batchnorm_sums,
    .batchnorm_spread = cpu_batchnorm_spread,
};
