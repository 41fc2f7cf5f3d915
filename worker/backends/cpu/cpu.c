/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend: OpenMP shares the work of an op out over threads, kernels.c does the inner
 * loops, OpenBLAS the products of dense layers. OpenBLAS stays on one thread per call, because its
 * own threads and OpenMP's would fight for the cores. */
#include "backends/backend.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/half.h"
#include "base/alloc.h"

#define ALIGNMENT 64
#define CLEAR_BYTES ((size_t)1 << 20) /* at a time */
#define BATCHNORM_EPS 1e-5
#define BATCHNORM_MOMENTUM 0.1
#define ROWS_MAX 64 /* rows of a scratch tile without kept state */

/* Below so many elements a pass is not worth a second thread. */
#define PASS_SHARE_MIN (1 << 18)

static int pass_threads(const struct wk_dev *dev, size_t n)
{
    return n < PASS_SHARE_MIN ? 1 : dev->threads;
}

/* ---- The device ---- */

static void *cpu_alloc(struct wk_dev *dev, size_t bytes)
{
    size_t rounded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    char *data = aligned_alloc(ALIGNMENT, rounded);

#pragma omp parallel for num_threads(pass_threads(dev, rounded)) schedule(static)
    for (size_t at = 0; at < (data ? rounded : 0); at += CLEAR_BYTES)
        memset(data + at, 0, rounded - at < CLEAR_BYTES ? rounded - at : CLEAR_BYTES);
    return data;
}

static void cpu_free(struct wk_dev *dev, void *data)
{
    (void)dev;
    free(data);
}

/* Kernels for this machine: the widest, or those that HPCGRID_ISA names (tests try them all). */
static const struct wk_kernels *choose_kernels(struct hg_err *err)
{
    const struct wk_kernels *const *usable = wk_kernels_usable();
    const char *wanted = getenv("HPCGRID_ISA");

    if (!wanted)
        return usable[0];
    for (; *usable; usable++)
        if (strcmp((*usable)->isa, wanted) == 0)
            return *usable;
    hg_err_set(err, HG_E_ENV, "HPCGRID_ISA is \"%s\", which this machine or build does not have",
               wanted);
    hg_err_hint(err, "widest here: %s", wk_kernels_usable()[0]->isa);
    return NULL;
}

static void name_device(char out[128])
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");

    snprintf(out, 128, "unknown CPU");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(out, 128, "%s", strchr(line, ':') + 2);
            out[strcspn(out, "\n")] = '\0';
            break;
        }
    if (f)
        fclose(f);
}

static struct wk_dev *cpu_open(const struct wk_dev_options *options, struct hg_err *err)
{
    const struct wk_kernels *k;
    struct cpu *c;

    if (options->precision == WK_TF32) {
        hg_err_set(err, HG_E_ENV, "the cpu backend has no tf32");
        hg_err_hint(err, "it computes in %s, and slowly in bf16 and fp16", WK_PRECISION);
        return NULL;
    }
    k = choose_kernels(err);
    if (!k)
        return NULL;
    c = hg_alloc_zeroed(1, sizeof *c);
    c->k = k;
    c->tokens = wk_token_kernels_get(c->k->isa);
    c->dev.backend = options->precision == WK_FULL ? &wk_backend_cpu : wk_cpu_half();
    c->dev.threads = options->threads > 0 ? options->threads : 1;
    c->dev.precision = options->precision;
    c->dev.working = options->precision == WK_MIXED_BF16   ? WK_BF16
                     : options->precision == WK_MIXED_FP16 ? WK_F16
                                                           : WK_REAL;
    name_device(c->dev.name);
    openblas_set_num_threads(1);
    return &c->dev;
}

static void cpu_close(struct wk_dev *dev)
{
    if (!dev)
        return;
    wk_dev_free(dev, WK_MEM_WORKSPACE, &cpu_of(dev)->scratch);
    wk_dev_free(dev, WK_MEM_WORKSPACE, &cpu_of(dev)->operands);
    free(dev);
}

static void cpu_describe(struct wk_dev *dev, struct hg_buf *out)
{
    hg_buf_printf(out, "device %s\n", dev->name);
    hg_buf_printf(out, "kernels %s (%d x %s)\n", cpu_of(dev)->k->isa, cpu_of(dev)->k->lanes,
                  WK_PRECISION);
    hg_buf_printf(out, "threads %d of %d\n", dev->threads, omp_get_num_procs());
    hg_buf_printf(out, "blas %s, %s\n", openblas_get_config(), openblas_get_corename());
}

static void cpu_upload(struct wk_dev *dev, struct wk_span to, const void *host)
{
    (void)dev;
    if (to.n)
        memcpy(to.data, host, to.n * wk_type_size(to.type));
}

static void cpu_download(struct wk_dev *dev, void *host, struct wk_span from)
{
    (void)dev;
    if (from.n)
        memcpy(host, from.data, from.n * wk_type_size(from.type));
}

/* The number behind a name in a file of such lines; the file's only number for "". 0 if there is none, as for "max". */
static unsigned long long read_number(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    unsigned long long v = 0;
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%llu", &v) == 1)
            break;
    if (f)
        fclose(f);
    return v;
}

/* What the process's control group leaves it, as Slurm bounds a job's memory; what it holds of files can be given back.
 * 0: no bound. The groups above this one count too. */
static unsigned long long group_available(void)
{
    char path[512] = "", file[600], line[512], *end;
    FILE *f = fopen("/proc/self/cgroup", "re");
    unsigned long long least = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (f)
        fclose(f);
    for (; path[0]; *end = '\0') {
        unsigned long long limit, used, files;

        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.max", path);
        limit = read_number(file, "");
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.current", path);
        used = read_number(file, "");
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.stat", path);
        files = read_number(file, "inactive_file ");
        used -= files < used ? files : used;
        if (limit) {
            unsigned long long left = limit > used ? limit - used : 1;

            least = !least || left < least ? left : least;
        }
        end = strrchr(path, '/');
    }
    return least;
}

static size_t cpu_available(struct wk_dev *dev)
{
    unsigned long long bytes = read_number("/proc/meminfo", "MemAvailable:") * 1024;
    unsigned long long group = group_available();

    (void)dev;
    return (size_t)(group && group < bytes ? group : bytes);
}

static int cpu_sync(struct wk_dev *dev, struct hg_err *err)
{
    if (dev->error.code == HG_E_NONE)
        return 0;
    if (err && err->code == HG_E_NONE)
        *err = dev->error;
    dev->error = (struct hg_err)HG_ERR_INIT;
    return -1;
}

wk_real *wk_cpu_scratch(struct cpu *c, size_t n)
{
    if (n > c->scratch.n) {
        wk_dev_free(&c->dev, WK_MEM_WORKSPACE, &c->scratch);
        if (wk_dev_alloc(&c->dev, WK_MEM_WORKSPACE, WK_REAL, n, &c->scratch, NULL) < 0)
            hg_alloc_failed();
    }
    return c->scratch.data;
}

/* ---- Elementwise ---- */

static void cpu_fill(struct wk_dev *dev, struct wk_span y, double value)
{
    wk_real *p = y.data;

#pragma omp parallel num_threads(pass_threads(dev, y.n))
    {
        long first, n;

        wk_cpu_share((long)y.n, 64, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        if (value == 0) /* memset passes by the cache */
            memset(p + first, 0, (size_t)n * sizeof *p);
        for (long i = first; value != 0 && i < first + n; i++)
            p[i] = (wk_real)value;
    }
}

static void cpu_scale(struct wk_dev *dev, struct wk_span y, double a)
{
    wk_real *p = y.data;

#pragma omp parallel for num_threads(pass_threads(dev, y.n)) schedule(static)
    for (size_t i = 0; i < y.n; i++)
        p[i] *= (wk_real)a;
}

static void cpu_copy(struct wk_dev *dev, struct wk_span y, struct wk_span x)
{
    size_t size = wk_type_size(x.type), block = PASS_SHARE_MIN, blocks = (x.n + block - 1) / block;

#pragma omp parallel for num_threads(pass_threads(dev, x.n)) schedule(static)
    for (size_t i = 0; i < blocks; i++) {
        size_t n = i + 1 < blocks ? block : x.n - i * block;

        memcpy((char *)y.data + i * block * size, (const char *)x.data + i * block * size,
               n * size);
    }
}

static void cpu_gather_u8(struct wk_dev *dev, struct wk_span y, struct wk_span rows,
                          struct wk_span index, int n, int width, double mean, double std)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    const uint8_t *from = rows.data;
    const int32_t *at = index.data;
    wk_real *to = y.data;

#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int i = 0; i < n; i++)
        k->convert_u8(to + (size_t)i * width, from + (size_t)at[i] * width, (size_t)width,
                      (wk_real)(1 / (255 * std)), (wk_real)(-mean / std));
}

static void cpu_gather_i32(struct wk_dev *dev, struct wk_span y, struct wk_span values,
                           struct wk_span index, int n)
{
    const int32_t *from = values.data, *at = index.data;
    int32_t *to = y.data;

    (void)dev;
    for (int i = 0; i < n; i++)
        to[i] = from[at[i]];
}

static void cpu_gather_tokens(struct wk_dev *dev, struct wk_span ids, struct wk_span types,
                              const struct wk_packing *p, const struct wk_token_source *from)
{
    const int32_t *first = p->first.data, *tokens = p->tokens.data, *sample = p->sample.data;
    const int32_t *words = from->tokens.data, *at = from->at.data, *second = from->second.data;
    int32_t *id = ids.data, *type = types.data, *sequence = p->sequence.data;

    (void)dev;
    for (int s = 0; s < p->sequences; s++)
        for (int row = first[s]; row < first[s + 1]; row++) {
            int place = row - first[s];
            bool token = place < tokens[s];

            id[row] = token ? words[at[sample[s]] + place] : 0;
            type[row] = token && place >= second[sample[s]];
            sequence[row] = s;
        }
    for (int row = first[p->sequences]; row < p->rows; row++) {
        id[row] = type[row] = 0;
        sequence[row] = -1;
    }
}

/* ---- LSTM ---- */

static int groups_of(const struct cpu *c, const struct wk_lstm *s)
{
    return (s->hidden + c->k->lanes - 1) / c->k->lanes;
}

static size_t cpu_lstm_state(struct wk_dev *dev, const struct wk_lstm *s)
{
    size_t padded = (size_t)groups_of(cpu_of(dev), s) * cpu_of(dev)->k->lanes;

    return 6 * padded * s->steps * s->batch; /* four gates, c and h */
}

/* Reals of the packed weights, as they are and transposed. */
static size_t packed_n(const struct cpu *c, const struct wk_lstm *s)
{
    size_t groups = groups_of(c, s), lanes = c->k->lanes, padded = groups * lanes;

    return groups * (1 + s->in + padded) * 4 * lanes + 4 * padded * padded;
}

/* Reals that a thread takes besides: rows of gates where no state is kept; of gradients, or sums for the weights. */
static size_t forward_more(const struct cpu *c, const struct wk_lstm *s)
{
    return (size_t)4 * ROWS_MAX * groups_of(c, s) * c->k->lanes;
}

static size_t backward_more(const struct cpu *c, const struct wk_lstm *s)
{
    size_t lanes = c->k->lanes, rows = (size_t)2 * ROWS_MAX * groups_of(c, s) * lanes;
    size_t sums = ((size_t)s->in + s->hidden + 3 * c->k->row_tile) * 4 * lanes;

    return rows > sums ? rows : sums;
}

/* The job of a call, its packed weights at the start of the scratch; `more` reals a thread follow
 * them at *rest. */
static void lstm_job(struct cpu *c, const struct wk_lstm *s, const struct wk_lstm_weights *w,
                     struct wk_span state, size_t more, struct wk_lstm_job *j, wk_real **rest)
{
    size_t groups = groups_of(c, s), lanes = c->k->lanes, padded = groups * lanes;
    size_t n = padded * s->steps * s->batch;
    size_t packed = groups * (1 + s->in + padded) * 4 * lanes;
    wk_real *scratch = wk_cpu_scratch(c, packed_n(c, s) + more * c->dev.threads);

    *j = (struct wk_lstm_job){
        .batch = s->batch,
        .steps = s->steps,
        .in = s->in,
        .hidden = s->hidden,
        .groups = (int)groups,
        .w_ih = w->w_ih.data,
        .w_hh = w->w_hh.data,
        .b_ih = w->b_ih.data,
        .b_hh = w->b_hh.data,
        .packed = scratch,
        .packed_t = scratch + packed,
    };
    if (state.data) {
        j->gates = state.data;
        j->c = j->gates + 4 * n;
        j->h = j->c + n;
    }
    *rest = scratch + packed_n(c, s);
}

static void cpu_lstm_forward(struct wk_dev *dev, const struct wk_lstm *s,
                             const struct wk_lstm_weights *w, struct wk_span h,
                             struct wk_span state, struct wk_span x)
{
    struct cpu *c = cpu_of(dev);
    size_t more = state.data ? 0 : forward_more(c, s);
    struct wk_lstm_job j;
    wk_real *rest;

    lstm_job(c, s, w, state, more, &j, &rest);
    j.x = x.data;
    j.h_out = h.data;
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;
        int part = omp_get_thread_num();

#pragma omp for schedule(static)
        for (int group = 0; group < j.groups; group++)
            c->k->lstm_pack(&j, group);
        wk_cpu_share(s->batch, c->k->row_tile, part, omp_get_num_threads(), &first, &n);
        for (long at = 0; at < n; at += ROWS_MAX)
            c->k->lstm_forward(&j, (int)(first + at), (int)(n - at < ROWS_MAX ? n - at : ROWS_MAX),
                               rest + more * part);
    }
}

/* Gradients of the weights: groups over the threads, and when there are more threads the tiles of a group too. */
static void share_weights(struct cpu *c, const struct wk_lstm_job *j, wk_real *scratch,
                          size_t scratch_each)
{
    int tiles = c->k->lstm_tiles(j), parts = (c->dev.threads + j->groups - 1) / j->groups;

#pragma omp for schedule(static)
    for (int i = 0; i < j->groups * parts; i++) {
        long first, n;

        wk_cpu_share(tiles, 1, i % parts, parts, &first, &n);
        c->k->lstm_weights(j, i / parts, (int)first, (int)n,
                           scratch + scratch_each * omp_get_thread_num());
    }
}

static void cpu_lstm_backward(struct wk_dev *dev, const struct wk_lstm *s,
                              const struct wk_lstm_weights *w,
                              const struct wk_lstm_weights *d_weights, struct wk_span state,
                              struct wk_span x, struct wk_span d_h)
{
    struct cpu *c = cpu_of(dev);
    size_t more = backward_more(c, s);
    struct wk_lstm_job j;
    wk_real *rest;

    lstm_job(c, s, w, state, more, &j, &rest);
    j.x = x.data;
    j.d_h = d_h.data;
    j.d_w_ih = d_weights->w_ih.data;
    j.d_w_hh = d_weights->w_hh.data;
    j.d_b_ih = d_weights->b_ih.data;
    j.d_b_hh = d_weights->b_hh.data;
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;
        int part = omp_get_thread_num();

#pragma omp for schedule(static)
        for (int group = 0; group < j.groups; group++)
            c->k->lstm_pack(&j, group);
        wk_cpu_share(s->batch, c->k->row_tile, part, omp_get_num_threads(), &first, &n);
        for (long at = 0; at < n; at += ROWS_MAX)
            c->k->lstm_backward(&j, (int)(first + at), (int)(n - at < ROWS_MAX ? n - at : ROWS_MAX),
                                rest + more * part);
#pragma omp barrier
        share_weights(c, &j, rest, more);
    }
}

/* ---- Batch normalisation ---- */

static void cpu_batchnorm_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span saved,
                                  struct wk_span running_mean, struct wk_span running_var,
                                  struct wk_span x_, struct wk_span weight, struct wk_span bias,
                                  int rows, int cols)
{
    const wk_real *x = x_.data, *w = weight.data, *b = bias.data;
    wk_real *y = y_.data, *mean = saved.data, *inverse = mean + cols;
    wk_real *run_mean = running_mean.data, *run_var = running_var.data;
    const wk_real keep = (wk_real)(1 - BATCHNORM_MOMENTUM), take = (wk_real)BATCHNORM_MOMENTUM;

    (void)dev;
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
        inverse[k] = (wk_real)(1 / sqrt((double)var + BATCHNORM_EPS));
    }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;

            y[at] = (x[at] - mean[k]) * inverse[k] * w[k] + b[k];
        }
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
        wk_real a = (wk_real)(w[k] / sqrt((double)var[k] + BATCHNORM_EPS));

        for (int r = 0; r < rows; r++)
            y[(size_t)r * cols + k] = (x[(size_t)r * cols + k] - mean[k]) * a + b[k];
    }
}

/* With xn = (x - mean) inverse: d_x = weight inverse (d_y - mean(d_y) - xn mean(d_y xn)). */
static void cpu_batchnorm_backward(struct wk_dev *dev, struct wk_span d_x_, struct wk_span d_weight,
                                   struct wk_span d_bias, struct wk_span d_y_, struct wk_span x_,
                                   struct wk_span weight, struct wk_span saved, int rows, int cols)
{
    const wk_real *x = x_.data, *d_y = d_y_.data, *w = weight.data;
    const wk_real *mean = saved.data, *inverse = mean + cols;
    wk_real *d_x = d_x_.data, *d_w = d_weight.data, *d_b = d_bias.data;
    wk_real *sum = wk_cpu_scratch(cpu_of(dev), 2 * (size_t)cols), *sum_xn = sum + cols;

    memset(sum, 0, 2 * (size_t)cols * sizeof *sum);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;

            sum[k] += d_y[at];
            sum_xn[k] += d_y[at] * (x[at] - mean[k]) * inverse[k];
        }
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < cols; k++) {
            size_t at = (size_t)r * cols + k;
            wk_real xn = (x[at] - mean[k]) * inverse[k];

            d_x[at] = w[k] * inverse[k] *
                      (d_y[at] - sum[k] / (wk_real)rows - xn * (sum_xn[k] / (wk_real)rows));
        }
    for (int k = 0; k < cols; k++) {
        d_w[k] += sum_xn[k];
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
        inverse[k] = (wk_real)(1 / sqrt(squares / n + BATCHNORM_EPS));
        run_mean[k] += (wk_real)(BATCHNORM_MOMENTUM * (sum - (double)run_mean[k]));
        run_var[k] += (wk_real)(BATCHNORM_MOMENTUM * (squares / (n - 1) - (double)run_var[k]));
    }
}

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

/* ---- Dropout, dense layers ---- */

static void cpu_dropout(struct wk_dev *dev, struct wk_span y, struct wk_span x,
                        struct wk_span sample, int rows, int cols, double p, struct wk_rng rng)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    const wk_real *from = x.data;
    const int32_t *samples = sample.data;
    wk_real *to = y.data;

#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;

        wk_cpu_share(rows, 1, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        k->dropout(to + (size_t)first * cols, from + (size_t)first * cols, samples + first, (int)n,
                   cols, p, rng);
    }
}

#ifdef WK_REAL_F64
#define gemm cblas_dgemm
#else
#define gemm cblas_sgemm
#endif

/* Below so many multiplications a product is not worth a second thread. */
#define GEMM_SHARE_MIN (1 << 20)

static int gemm_threads(const struct wk_dev *dev, int m, int n, int k)
{
    return (double)m * n * k < GEMM_SHARE_MIN ? 1 : dev->threads;
}

static void cpu_linear_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span x_,
                               struct wk_span weight, struct wk_span bias, int rows, int in,
                               int out)
{
    const wk_real *x = x_.data, *b = bias.data;
    wk_real *y = y_.data;

#pragma omp parallel num_threads(gemm_threads(dev, rows, in, out))
    {
        long first, n;

        wk_cpu_share(rows, 16, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        for (long r = first; r < first + n; r++)
            memcpy(y + (size_t)r * out, b, (size_t)out * sizeof *y);
        if (n > 0)
            gemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, out, in, 1,
                 x + (size_t)first * in, in, weight.data, in, 1, y + (size_t)first * out, out);
    }
}

/* keep: what of d_x stays, 0 or 1. */
static void linear_backward(struct wk_dev *dev, wk_real keep, struct wk_span d_x_,
                            struct wk_span d_weight, struct wk_span d_bias, struct wk_span d_y_,
                            struct wk_span x_, struct wk_span weight, int rows, int in, int out)
{
    const wk_real *d_y = d_y_.data, *x = x_.data;
    wk_real *d_x = d_x_.data, *d_w = d_weight.data, *d_b = d_bias.data;

#pragma omp parallel num_threads(gemm_threads(dev, rows, in, out))
    {
        long first, n;
        int part = omp_get_thread_num(), parts = omp_get_num_threads();

        wk_cpu_share(rows, 16, part, parts, &first, &n);
        if (d_x && n > 0)
            gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, in, out, 1,
                 d_y + (size_t)first * out, out, weight.data, in, keep, d_x + (size_t)first * in,
                 in);
        wk_cpu_share(out, 16, part, parts, &first, &n); /* now of the rows of the weight */
        if (n > 0)
            gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, in, rows, 1, d_y + first, out, x,
                 in, 1, d_w + (size_t)first * in, in);
        for (int r = 0; r < rows; r++)
            for (long k = first; k < first + n; k++)
                d_b[k] += d_y[(size_t)r * out + k];
    }
}

static void cpu_linear_backward(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                struct wk_span weight, int rows, int in, int out)
{
    linear_backward(dev, 0, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

static void cpu_linear_backward_add(struct wk_dev *dev, struct wk_span d_x, struct wk_span d_weight,
                                    struct wk_span d_bias, struct wk_span d_y, struct wk_span x,
                                    struct wk_span weight, int rows, int in, int out)
{
    linear_backward(dev, 1, d_x, d_weight, d_bias, d_y, x, weight, rows, in, out);
}

static void cpu_linear_gelu_forward(struct wk_dev *dev, struct wk_span y, struct wk_span pre,
                                    struct wk_span x, struct wk_span weight, struct wk_span bias,
                                    int rows, int in, int out, enum wk_gelu form)
{
    size_t n = (size_t)rows * (size_t)out;

    cpu_linear_forward(dev, pre, x, weight, bias, rows, in, out);
    wk_cpu_gelu_forward(dev, wk_span_part(y, 0, n), wk_span_part(pre, 0, n), form);
}

static void cpu_linear_gelu_backward(struct wk_dev *dev, struct wk_span d_pre,
                                     struct wk_span d_weight, struct wk_span d_bias,
                                     struct wk_span d_y, struct wk_span x, struct wk_span pre,
                                     struct wk_span weight, int rows, int in, int out,
                                     enum wk_gelu form)
{
    size_t n = (size_t)rows * (size_t)in;

    cpu_linear_backward(dev, d_pre, d_weight, d_bias, d_y, x, weight, rows, in, out);
    d_pre = wk_span_part(d_pre, 0, n);
    wk_cpu_gelu_backward(dev, d_pre, d_pre, wk_span_part(pre, 0, n), form);
}

static void cpu_linear3_forward(struct wk_dev *dev, const struct wk_qkv *y, struct wk_span x,
                                const struct wk_qkv *w, const struct wk_qkv *b, int rows, int in,
                                int out)
{
    cpu_linear_forward(dev, y->q, x, w->q, b->q, rows, in, out);
    cpu_linear_forward(dev, y->k, x, w->k, b->k, rows, in, out);
    cpu_linear_forward(dev, y->v, x, w->v, b->v, rows, in, out);
}

static void cpu_linear3_backward(struct wk_dev *dev, struct wk_span d_x, const struct wk_qkv *d_w,
                                 const struct wk_qkv *d_b, const struct wk_qkv *d_y,
                                 struct wk_span x, const struct wk_qkv *w, int rows, int in,
                                 int out)
{
    linear_backward(dev, 1, d_x, d_w->q, d_b->q, d_y->q, x, w->q, rows, in, out);
    linear_backward(dev, 1, d_x, d_w->k, d_b->k, d_y->k, x, w->k, rows, in, out);
    linear_backward(dev, 1, d_x, d_w->v, d_b->v, d_y->v, x, w->v, rows, in, out);
}

static void cpu_relu_forward(struct wk_dev *dev, struct wk_span y_, struct wk_span x_)
{
    const wk_real *x = x_.data;
    wk_real *y = y_.data;

    (void)dev;
    for (size_t i = 0; i < y_.n; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays */
}

static void cpu_relu_backward(struct wk_dev *dev, struct wk_span d_x_, struct wk_span d_y_,
                              struct wk_span y_)
{
    const wk_real *d_y = d_y_.data, *y = y_.data;
    wk_real *d_x = d_x_.data;

    (void)dev;
    for (size_t i = 0; i < d_x_.n; i++)
        d_x[i] = y[i] > 0 ? d_y[i] : 0;
}

/* ---- Classification ---- */

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

/* ---- Optimizers ---- */

static void cpu_adadelta(struct wk_dev *dev, struct wk_span value, struct wk_span gradient,
                         struct wk_span square, struct wk_span delta, const struct wk_adadelta *how)
{
    const struct wk_kernels *k = cpu_of(dev)->k;
    double scale = how->scale;

    if (wk_cpu_skips(how->control, &scale))
        return;
    if (scale != 1)
        cpu_scale(dev, gradient, scale);
#pragma omp parallel num_threads(dev->threads)
    {
        long first, n;

        wk_cpu_share((long)value.n, 64, omp_get_thread_num(), omp_get_num_threads(), &first, &n);
        if (n > 0)
            k->adadelta((wk_real *)value.data + first, (const wk_real *)gradient.data + first,
                        (wk_real *)square.data + first, (wk_real *)delta.data + first, (size_t)n,
                        how->lr, how->rho, how->eps);
    }
    if (how->copy.data)
        wk_cpu_convert(dev, how->copy, value);
}

/* ---- Workspace ---- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t scratch_of(const struct cpu *c, const struct wk_calls *m)
{
    size_t threads = (size_t)c->dev.threads, n = wk_cpu_square_scratch(m->squares);

    if (m->lstm.batch)
        n = most(n, packed_n(c, &m->lstm) +
                        threads * most(forward_more(c, &m->lstm), backward_more(c, &m->lstm)));
    n = most(n, 2 * (size_t)m->cols); /* backward of batch normalisation */
    if (m->sequences)                 /* dropout */
        n = most(n, threads * (size_t)m->cols);
    return m->heads ? most(n, threads * wk_cpu_attention_scratch(m->longest)) : n;
}

static size_t operands_of(const struct cpu *c, const struct wk_calls *m)
{
    return c->dev.working == WK_REAL ? 0 : wk_cpu_operands(m);
}

static size_t cpu_workspace(struct wk_dev *dev, const struct wk_calls *calls)
{
    const struct cpu *c = cpu_of(dev);

    return (scratch_of(c, calls) + operands_of(c, calls)) * sizeof(wk_real);
}

static int cpu_reserve(struct wk_dev *dev, const struct wk_calls *calls, struct hg_err *err)
{
    struct cpu *c = cpu_of(dev);
    size_t operands = operands_of(c, calls);

    if (wk_dev_alloc(dev, WK_MEM_WORKSPACE, WK_REAL, scratch_of(c, calls), &c->scratch, err) < 0)
        return -1;
    return operands ? wk_dev_alloc(dev, WK_MEM_WORKSPACE, WK_REAL, operands, &c->operands, err) : 0;
}

const struct wk_backend wk_backend_cpu = {
    .name = "cpu",
    .summary = "the processor: own kernels, OpenMP and OpenBLAS",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .sync = cpu_sync,
    .available = cpu_available,
    .workspace = cpu_workspace,
    .reserve = cpu_reserve,
    .fill = cpu_fill,
    .scale = cpu_scale,
    .copy = cpu_copy,
    .add = wk_cpu_add,
    .square_sum = wk_cpu_square_sum,
    .convert = wk_cpu_convert,
    .gather_u8 = cpu_gather_u8,
    .gather_i32 = cpu_gather_i32,
    .gather_tokens = cpu_gather_tokens,
    .lstm_state = cpu_lstm_state,
    .lstm_forward = cpu_lstm_forward,
    .lstm_backward = cpu_lstm_backward,
    .batchnorm_forward = cpu_batchnorm_forward,
    .batchnorm_infer = cpu_batchnorm_infer,
    .batchnorm_backward = cpu_batchnorm_backward,
    .batchnorm_moments = cpu_batchnorm_moments,
    .batchnorm_join = cpu_batchnorm_join,
    .batchnorm_apply = cpu_batchnorm_apply,
    .batchnorm_sums = cpu_batchnorm_sums,
    .batchnorm_spread = cpu_batchnorm_spread,
    .dropout = cpu_dropout,
    .linear_forward = cpu_linear_forward,
    .linear_backward = cpu_linear_backward,
    .linear_backward_add = cpu_linear_backward_add,
    .linear_gelu_forward = cpu_linear_gelu_forward,
    .linear_gelu_backward = cpu_linear_gelu_backward,
    .linear3_forward = cpu_linear3_forward,
    .linear3_backward = cpu_linear3_backward,
    .relu_forward = cpu_relu_forward,
    .relu_backward = cpu_relu_backward,
    .nll = cpu_nll,
    .nll_score = cpu_nll_score,
    .embed_forward = wk_cpu_embed_forward,
    .embed_backward = wk_cpu_embed_backward,
    .token_dropout = wk_cpu_token_dropout,
    .norm_forward = wk_cpu_norm_forward,
    .norm_backward = wk_cpu_norm_backward,
    .gelu_forward = wk_cpu_gelu_forward,
    .gelu_backward = wk_cpu_gelu_backward,
    .attention_forward = wk_cpu_attention_forward,
    .attention_backward = wk_cpu_attention_backward,
    .span_loss = wk_cpu_span_loss,
    .adadelta = cpu_adadelta,
    .adamw = wk_cpu_adamw,
    .control = wk_cpu_control,
};
