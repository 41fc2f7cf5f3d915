/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU is opened with all that the backend keeps on it, described, and closed. */
#include "backends/cuda/open.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/device.h"
#include "backends/cuda/errors.h"
#include "backends/cuda/gemm.h"
#include "backends/cuda/library.h"
#include "backends/cuda/optimes.h"
#include "backends/cuda/own.h"
#include "backends/cuda/steps.h"
#include "base/alloc.h"
#include "base/text.h"

static int find_device(struct wk_cuda *c, int local_rank, struct hg_err *err)
{
    int count = 0, driver = 0, code = (int)cudaDriverGetVersion(&driver);

    if (code == 0)
        code = (int)cudaGetDeviceCount(&count);
    if (code == 0 && (driver == 0 || count == 0))
        code = (int)cudaErrorNoDevice;
    if (code != 0)
        return wk_cuda_fail(NULL, code, NULL, err);
    c->number = local_rank % count;
    return 0;
}

static void write_uuid(const unsigned char *bytes, char out[64])
{
    size_t n = (size_t)snprintf(out, 64, "GPU-");

    for (int i = 0; i < 16; i++)
        n += (size_t)snprintf(out + n, 64 - n, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
}

static int describe_device(struct wk_cuda *c, struct hg_err *err)
{
    struct cudaDeviceProp p;
    int mode = 0, code = (int)cudaGetDeviceProperties(&p, c->number);

    if (code == 0)
        code = (int)cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, c->number);
    if (code == 0)
        code = (int)cudaDeviceGetPCIBusId(c->dev.pci, sizeof c->dev.pci, c->number);
    if (code != 0)
        return wk_cuda_fail(NULL, code, NULL, err);
    snprintf(c->dev.name, sizeof c->dev.name, "%.127s", p.name);
    c->capability = p.major * 10 + p.minor;
    write_uuid((const unsigned char *)p.uuid.bytes, c->dev.uuid);
    c->own->processors = p.multiProcessorCount;
    c->own->memory_bytes = p.totalGlobalMem;
    if (mode == (int)cudaComputeModeProhibited) {
        hg_err_set(err, HG_E_ENV, "%s is in prohibited mode: no program may use it", p.name);
        return hg_err_hint(err, "an administrator can change that: nvidia-smi -c DEFAULT");
    }
    return 0;
}

static int open_pinned(struct wk_cuda *c, struct hg_err *err)
{
    char *memory;
    int code = (int)cudaMallocHost((void **)&c->own->pinned_memory,
                                   (size_t)WK_PINNED_PARTS * WK_PINNED_BYTES);

    memory = c->own->pinned_memory;
    for (int i = 0; i < WK_PINNED_PARTS && code == 0; i++) {
        c->own->pinned[i].data = memory + (size_t)i * WK_PINNED_BYTES;
        code = (int)cudaEventCreateWithFlags(&c->own->pinned[i].arrived, cudaEventDisableTiming);
    }
    return code == 0 ? 0 : wk_cuda_fail(c, code, "pinned memory", err);
}

static int open_stream(struct wk_cuda *c, struct hg_err *err)
{
    int code = (int)cudaSetDevice(c->number);

    if (code == 0)
        code = (int)cudaStreamCreateWithFlags((cudaStream_t *)&c->stream, cudaStreamNonBlocking);
    return code == 0 ? 0 : wk_cuda_fail(c, code, NULL, err);
}

static int open_numbers(struct wk_cuda *c, struct hg_err *err)
{
    c->step = wk_cuda_alloc(&c->dev, sizeof *c->step);
    c->factors = wk_cuda_alloc(&c->dev, sizeof *c->factors);
    if (c->step && c->factors)
        return 0;
    return wk_cuda_fail(c, (int)cudaErrorMemoryAllocation, NULL, err);
}

static void set_options(struct wk_cuda *c, const struct wk_dev_options *options)
{
    c->dev.threads = options->threads > 0 ? options->threads : 1;
    c->dev.precision = options->precision;
    c->dev.rounds_rows = c->dev.keeps_tokens = true;
    c->by_shape = options->by_shape;
    c->dev.working = options->precision == WK_MIXED_BF16   ? WK_BF16
                     : options->precision == WK_MIXED_FP16 ? WK_F16
                                                           : WK_REAL;
}

struct wk_dev *wk_cuda_open(const struct wk_backend *table, const struct wk_dev_options *options,
                            struct hg_err *err)
{
    struct wk_cuda *c = hg_alloc_zeroed(1, sizeof *c);

    c->own = hg_alloc_zeroed(1, sizeof *c->own);
    wk_cuda_memory_open(c);
    c->dev.backend = table;
    set_options(c, options);
    if (find_device(c, options->local_rank, err) < 0 || describe_device(c, err) < 0 ||
        !wk_cuda_can((int)options->precision, c->capability, c->dev.name, err) ||
        open_stream(c, err) < 0 || open_pinned(c, err) < 0 || open_numbers(c, err) < 0 ||
        !wk_gemm_open(c, err) || wk_cuda_steps_open(c, err) < 0 || wk_cuda_sync(&c->dev, err) < 0) {
        wk_cuda_close(&c->dev);
        return NULL;
    }
    c->own->op_times = wk_op_times_open();
    return &c->dev;
}

void wk_cuda_close(struct wk_dev *dev)
{
    struct wk_cuda *c = dev ? wk_cuda_of(dev) : NULL;

    if (!c)
        return;
    if (c->stream)
        cudaStreamSynchronize((cudaStream_t)c->stream);
    wk_op_times_close(c->own->op_times);
    wk_cuda_steps_close(c);
    wk_gemm_close(c->gemm);
    wk_cache_done(&c->own->cache);
    for (int i = 0; i < WK_PINNED_PARTS; i++)
        if (c->own->pinned[i].arrived)
            cudaEventDestroy(c->own->pinned[i].arrived);
    if (c->own->pinned_memory)
        cudaFreeHost(c->own->pinned_memory);
    if (c->stream)
        cudaStreamDestroy((cudaStream_t)c->stream);
    free(c->own);
    free(c);
}

/* ---- Describing ---- */

static void describe_nvml(const struct wk_cuda *c, struct hg_buf *out)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_nvml_info i;

    if (wk_nvml_read(c->dev.pci, &i, &err) < 0) {
        hg_buf_printf(out, "nvml %s\n", err.text);
        return;
    }
    hg_buf_printf(out, "driver %s\n", i.driver);
    if (i.mig >= 0)
        hg_buf_printf(out, "mig %s\n", i.mig ? "on: this is a slice of the device" : "off");
    if (i.ecc_errors >= 0)
        hg_buf_printf(out, "ecc %d uncorrectable errors\n", i.ecc_errors);
    if (i.processes >= 0)
        hg_buf_printf(out, "processes %d\n", i.processes);
    if (i.power_w >= 0)
        hg_buf_printf(out, "power %.0f of %.0f W\n", i.power_w, i.power_limit_w);
    if (i.clock_mhz >= 0)
        hg_buf_printf(out, "clock %d of %d MHz\n", i.clock_mhz, i.clock_most_mhz);
}

void wk_cuda_describe(struct wk_dev *dev, struct hg_buf *out)
{
    const struct wk_cuda *c = wk_cuda_of(dev);
    char version[32], all[32], left[32];
    int driver = 0;

    cudaDriverGetVersion(&driver);
    wk_gemm_version(version);
    hg_text_size_format(c->own->memory_bytes, all);
    hg_text_size_format(wk_cuda_available(dev), left);
    hg_buf_printf(out, "device %s, compute capability %d.%d, %d multiprocessors\n", dev->name,
                  c->capability / 10, c->capability % 10, c->own->processors);
    hg_buf_printf(out, "memory %s, %s free\n", all, left);
    hg_buf_printf(out, "address %s %s\n", dev->pci, dev->uuid);
    hg_buf_printf(out, "cuda %d.%d, the driver supports %d.%d\n", CUDART_VERSION / 1000,
                  CUDART_VERSION % 1000 / 10, driver / 1000, driver % 1000 / 10);
    hg_buf_printf(out, "cublaslt %s\n", version);
    hg_buf_printf(out, "kernels %s\n", WK_CUDA_ARCHITECTURES);
    describe_nvml(c, out);
}
