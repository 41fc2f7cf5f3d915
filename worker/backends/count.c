/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/count.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define PLACE ((void *)4096) /* where nothing lies */

/* The requested backend's table, with another memory. */
struct counting {
    struct wk_backend table; /* first */
    const struct wk_backend *real;
};

static void *count_alloc(struct wk_dev *dev, size_t bytes)
{
    (void)dev, (void)bytes;
    return PLACE;
}

static void count_free(struct wk_dev *dev, void *data)
{
    (void)dev, (void)data;
}

static void count_upload(struct wk_dev *dev, struct wk_span to, const void *host)
{
    (void)dev, (void)to, (void)host;
}

static void count_download(struct wk_dev *dev, void *host, struct wk_span from)
{
    (void)dev, (void)host, (void)from;
}

static int count_sync(struct wk_dev *dev, struct hg_err *err)
{
    (void)dev, (void)err;
    return 0;
}

static size_t count_available(struct wk_dev *dev)
{
    (void)dev;
    return 0;
}

static int count_reserve(struct wk_dev *dev, const struct wk_calls *calls, struct hg_err *err)
{
    (void)err;
    wk_dev_book(dev, WK_MEM_WORKSPACE, (ptrdiff_t)dev->backend->workspace(dev, calls));
    return 0;
}

static void count_close(struct wk_dev *dev)
{
    struct counting *c = (struct counting *)(uintptr_t)dev->backend;

    dev->backend = c->real;
    c->real->close(dev);
    free(c);
}

static enum wk_type working_type(enum wk_precision precision)
{
    return precision == WK_MIXED_BF16 ? WK_BF16 : precision == WK_MIXED_FP16 ? WK_F16 : WK_REAL;
}

static bool is_gpu(const char *backend)
{
    return strcmp(backend, "cuda") == 0;
}

struct wk_dev *wk_dev_count_open(const char *backend, enum wk_precision precision, int threads,
                                 struct hg_err *err)
{
    const struct wk_backend *cpu = wk_backend_get("cpu", err);
    const struct wk_backend *asked = wk_backend_get(backend, NULL);
    const struct wk_dev_options options = { .threads = threads, .precision = WK_FULL };
    /* of it, nothing is used but what it knows of its kernels */
    struct wk_dev *dev = cpu->open(&options, err);
    struct counting *c;

    if (!dev)
        return NULL;
    c = hg_alloc_zeroed(1, sizeof *c);
    c->real = dev->backend;
    c->table = *c->real;
    if (asked) {
        c->table.lstm_state = asked->lstm_state;
        c->table.attention_mask = asked->attention_mask;
        c->table.workspace = asked->workspace;
    }
    c->table.alloc = count_alloc;
    c->table.free = count_free;
    c->table.upload = count_upload;
    c->table.download = count_download;
    c->table.sync = count_sync;
    c->table.available = count_available;
    c->table.reserve = count_reserve;
    c->table.close = count_close;
    dev->backend = &c->table;
    dev->counts_only = true;
    dev->precision = precision;
    dev->working = working_type(precision);
    dev->rounds_rows = dev->keeps_tokens = is_gpu(backend);
    return dev;
}

size_t wk_dev_count_grain(const char *backend)
{
    return wk_dev_grain(&(struct wk_dev){ .rounds_rows = is_gpu(backend) });
}
