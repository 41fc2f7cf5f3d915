/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend: OpenMP shares the work of an op out over threads, kernels.c has the inner loops, OpenBLAS computes the GEMMs of dense layers
 * and attention. OpenBLAS stays on one thread per call, because its own threads and OpenMP's would fight for the cores. Ops are in a file a sort,
 * which ends with their table; they are joined when a device is opened. */
#include "backends/cpu/cpu.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/attention.h"
#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "backends/cpu/half.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/lstm.h"
#include "base/alloc.h"

static const struct wk_backend *const parts[] = {
    &wk_cpu_elementwise_ops, &wk_cpu_lstm_ops,   &wk_cpu_batchnorm_ops, &wk_cpu_dense_ops,
    &wk_cpu_loss_ops,        &wk_cpu_tokens_ops, &wk_cpu_attention_ops, &wk_cpu_optim_ops,
};

static struct wk_backend plain, half; /* ops over reals; over 16-bit tensors */

static void make_tables(void)
{
    plain = half = wk_backend_cpu;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
#define OP(name, ...)   \
    if (parts[i]->name) \
        plain.name = parts[i]->name;
#include "backends/ops.def"
    }
    wk_cpu_half_ops(&half);
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
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct wk_kernels *k;
    struct cpu *c;

    if (options->precision == WK_TF32) {
        hg_err_set(err, HG_E_ENV, "the cpu backend does not support tf32");
        hg_err_hint(err, "it supports %s, and slowly bf16 and fp16", WK_PRECISION);
        return NULL;
    }
    k = choose_kernels(err);
    if (!k)
        return NULL;
    c = hg_alloc_zeroed(1, sizeof *c);
    c->k = k;
    c->tokens = wk_token_kernels_get(c->k->isa);
    pthread_once(&once, make_tables);
    c->plain = &plain;
    c->dev.backend = c->ops = options->precision == WK_FULL ? &plain : &half;
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

/* ---- Workspace ---- */

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t scratch_of(const struct cpu *c, const struct wk_calls *m)
{
    size_t threads = (size_t)c->dev.threads, n = wk_cpu_square_scratch(m->squares);

    if (m->lstm.batch)
        n = most(n, wk_cpu_lstm_scratch(c, &m->lstm));
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
    .alloc = wk_cpu_alloc,
    .free = wk_cpu_free,
    .upload = wk_cpu_upload,
    .download = wk_cpu_download,
    .sync = wk_cpu_sync,
    .available = wk_cpu_available,
    .workspace = cpu_workspace,
    .reserve = cpu_reserve,
    .lstm_state = wk_cpu_lstm_state,
};
