/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/backend.h"

#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cuda/ops.h"
#include "base/text.h"

const struct wk_backend *const wk_backends[] = {
    &wk_backend_cpu,
#ifdef WK_CUDA
    &wk_backend_cuda,
#endif
    NULL,
};

/* Backends that hpcgrid-worker can have. */
static const char *const possible[] = { "cuda" };

const char *const wk_mem_names[WK_MEM_CLASSES] = { "parameters",  "gradients", "optimizer",
                                                   "activations", "comm",      "workspace",
                                                   "data" };

const struct wk_backend *wk_backend_get(const char *name, struct hg_err *err)
{
    const char *names[8];
    size_t n = 0;

    for (const struct wk_backend *const *b = wk_backends; *b; b++) {
        if (strcmp((*b)->name, name) == 0)
            return *b;
        names[n++] = (*b)->name;
    }
    for (size_t i = 0; i < sizeof possible / sizeof *possible; i++)
        if (strcmp(possible[i], name) == 0) {
            hg_err_set(err, HG_E_ENV, "this build of hpcgrid-worker has no %s backend", name);
            hg_err_hint(err, "use backend \"cpu\", or hardware whose backend this build has");
            return NULL;
        }
    hg_err_set(err, HG_E_INPUT, "unknown backend \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return NULL;
}

size_t wk_type_size(enum wk_type type)
{
    static const size_t sizes[] = { sizeof(wk_real), 4, 1, 2, 2 };

    return sizes[type];
}

const char *wk_type_name(enum wk_type type)
{
    static const char *const names[] = { WK_PRECISION, "int32", "uint8", "bf16", "fp16" };

    return names[type];
}

static const char *const precisions[WK_PRECISIONS] = { WK_PRECISION, "tf32", "bf16", "fp16" };

const char *wk_precision_name(enum wk_precision precision)
{
    return precisions[precision];
}

int wk_precision_find(const char *name, enum wk_precision *precision, struct hg_err *err)
{
    for (int i = 0; i < WK_PRECISIONS; i++)
        if (strcmp(precisions[i], name) == 0) {
            *precision = (enum wk_precision)i;
            return 0;
        }
    hg_err_set(err, HG_E_INPUT, "unknown precision \"%s\"", name);
    hg_text_suggest(err, name, precisions, WK_PRECISIONS);
    return -1;
}

struct wk_span wk_span_part(struct wk_span s, size_t first, size_t n)
{
    return (struct wk_span){ (char *)s.data + first * wk_type_size(s.type), n, s.type };
}

int wk_dev_rows(const struct wk_dev *dev, int rows)
{
    int grain = 64;

    if (!dev->rounds_rows)
        return rows;
    while (grain <= rows / 64)
        grain *= 2;
    return (rows + grain - 1) / grain * grain;
}

void wk_dev_book(struct wk_dev *dev, enum wk_mem mem, ptrdiff_t bytes)
{
    dev->used_bytes[mem] += (size_t)bytes;
    if (dev->used_bytes[mem] > dev->peak_bytes[mem])
        dev->peak_bytes[mem] = dev->used_bytes[mem];
}

int wk_dev_alloc(struct wk_dev *dev, enum wk_mem mem, enum wk_type type, size_t n,
                 struct wk_span *span, struct hg_err *err)
{
    size_t bytes = n * wk_type_size(type);
    void *data = dev->backend->alloc(dev, bytes);
    char text[32], left[32];

    *span = WK_NONE;
    if (!data) {
        hg_text_size_format(bytes, text);
        hg_text_size_format(dev->backend->available ? dev->backend->available(dev) : 0, left);
        hg_err_set(err, HG_E_ENV, "no memory on %s: %s for %s, %s left", dev->name, text,
                   wk_mem_names[mem], left);
        return hg_err_hint(err, "a smaller batch_size with accumulate, or a strategy that shards "
                                "(fsdp, deepspeed), takes less");
    }
    *span = (struct wk_span){ data, n, type };
    wk_dev_book(dev, mem, (ptrdiff_t)bytes);
    return 0;
}

size_t wk_dev_grain(const struct wk_dev *dev)
{
    return dev->rounds_rows ? WK_GRAIN : 1;
}

size_t wk_grains(size_t n, size_t grain)
{
    return grain > 1 ? (n + grain - 1) / grain * grain : n;
}

void wk_dev_free(struct wk_dev *dev, enum wk_mem mem, struct wk_span *span)
{
    if (!span->data)
        return;
    wk_dev_book(dev, mem, -(ptrdiff_t)(span->n * wk_type_size(span->type)));
    dev->backend->free(dev, span->data);
    *span = WK_NONE;
}
