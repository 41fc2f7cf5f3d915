/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "backends/cpu/device.h"

#ifdef WK_REAL_F64
#define wk_exp exp
#define wk_log log
#else
#define wk_exp expf
#define wk_log logf
#endif

static int largest(const wk_real *z, int classes)
{
    int best = 0;

    for (int k = 1; k < classes; k++)
        if (z[k] > z[best])
            best = k;
    return best;
}

/* Loss of one row; probabilities into p unless it is NULL (may be z). */
static wk_real row_loss(const wk_real *z, int label, int classes, wk_real *p)
{
    wk_real top = z[largest(z, classes)], at_label = z[label], sum = 0;

    for (int k = 0; k < classes; k++)
        sum += wk_exp(z[k] - top);
    for (int k = 0; p && k < classes; k++)
        p[k] = wk_exp(z[k] - top) / sum;
    return wk_log(sum) - (at_label - top);
}

static void cpu_nll(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                    struct wk_span logits, struct wk_span labels, int rows, int classes,
                    double weight, struct wk_span scale)
{
    const wk_real *z = logits.data;
    const int32_t *label = labels.data;
    wk_real *d = d_logits.data, share_of_row = (wk_real)(weight / rows) * wk_cpu_factor(scale);
    double sum = 0;

    (void)dev;
    for (int r = 0; r < rows; r++) {
        wk_real *p = d + (size_t)r * classes;

        sum += row_loss(z + (size_t)r * classes, label[r], classes, p);
        p[label[r]] -= 1;
        for (int k = 0; k < classes; k++)
            p[k] *= share_of_row;
    }
    *(wk_real *)loss.data = (wk_real)(sum / rows);
}

static void cpu_nll_score(struct wk_dev *dev, struct wk_span out, struct wk_span logits,
                          struct wk_span labels, int rows, int classes)
{
    const wk_real *z = logits.data;
    const int32_t *label = labels.data;
    wk_real *sums = out.data;
    double loss = 0;
    int right = 0;

    (void)dev;
    for (int r = 0; r < rows; r++) {
        loss += row_loss(z + (size_t)r * classes, label[r], classes, NULL);
        right += largest(z + (size_t)r * classes, classes) == label[r];
    }
    sums[0] = (wk_real)loss;
    sums[1] = (wk_real)right;
}

/* ---- Spans ---- */

/* Cross-entropy of one column of a sequence's n rows (stride 2); its gradient times weight into d unless that is NULL. */
static double column_loss(const wk_real *z, wk_real *d, int n, int label, wk_real weight)
{
    wk_real top = z[0], lse;
    double sum = 0;

    for (int i = 1; i < n; i++)
        top = z[2 * i] > top ? z[2 * i] : top;
    for (int i = 0; i < n; i++)
        sum += (double)wk_exp(z[2 * i] - top);
    lse = top + wk_log((wk_real)sum);
    for (int i = 0; d && i < n; i++)
        d[2 * i] = (wk_exp(z[2 * i] - lse) - (i == label)) * weight;
    return log(sum) + (double)(top - z[2 * label]);
}

static void cpu_span_loss(struct wk_dev *dev, struct wk_span loss, struct wk_span d_logits,
                          struct wk_span logits, const struct wk_packing *p, struct wk_span starts,
                          struct wk_span ends, double weight, struct wk_span scale)
{
    const int32_t *first = p->first.data, *start = starts.data, *end = ends.data;
    const wk_real *z = logits.data;
    wk_real *d = d_logits.data;
    wk_real share = (wk_real)(weight / 2 / p->sequences) * wk_cpu_factor(scale);
    double sum = 0;

    (void)dev;
    for (int s = 0; s < p->sequences; s++) {
        size_t at = 2 * (size_t)first[s];
        int n = first[s + 1] - first[s];

        sum += column_loss(z + at, d ? d + at : NULL, n, start[s], share) +
               column_loss(z + at + 1, d ? d + at + 1 : NULL, n, end[s], share);
    }
    *(wk_real *)loss.data = (wk_real)(sum / 2 / p->sequences);
}

const struct wk_backend wk_cpu_loss_ops = {
    .nll = cpu_nll,
    .nll_score = cpu_nll_score,
    .span_loss = cpu_span_loss,
};
