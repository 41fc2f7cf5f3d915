/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cuda backend share, without CUDA's own headers: device.c implements it, and tests/gpu/emulator in host memory. */
#ifndef WK_BACKENDS_CUDA_DEVICE_H
#define WK_BACKENDS_CUDA_DEVICE_H

#include "backends/backend.h"
#include "backends/cuda/kernels.h"

/* Who follows it when the host waits for the device, which may wait for other ranks. */
struct wk_cuda_watch {
    void *context;
    /* About every millisecond of waiting. -1 with err set: do not wait on, what is waited for does not come. */
    int (*look)(void *context, struct hg_err *err);
    void (*over)(void *context); /* the wait is */
};

struct wk_cuda {
    struct wk_dev dev; /* first */
    wk_stream stream;  /* everything that the device does for a training, in order */
    int number;        /* of the device in this process */
    int capability;    /* 90 for 9.0 */
    /* The running step's numbers, and what updates multiply with: in device memory, the former as last sent. */
    struct wk_cuda_step *step, step_sent;
    struct wk_cuda_factors *factors;
    bool by_shape;  /* of wk_dev_options */
    bool recording; /* a graph: nothing may wait, and nothing may be sent */
    bool unfit;     /* for a graph: something had to */
    struct wk_gemm *gemm;
    const struct wk_cuda_watch *watch; /* NULL: the device waits for nobody */
    struct wk_cuda_own *own;           /* of device.c */
};

static inline struct wk_cuda *wk_cuda_of(struct wk_dev *dev)
{
    return (struct wk_cuda *)dev;
}

static inline enum wk_cuda_type wk_cuda_type(enum wk_type type)
{
    return type == WK_BF16 ? WK_CUDA_BF16 : type == WK_F16 ? WK_CUDA_F16 : WK_CUDA_F32;
}

/* Keep the first failure: code is a cudaError_t, 0 is none. Returns whether it was none. What fails while a graph is recorded only makes
 * the step unfit for one: it runs once more as it is, and what is really wrong shows there. */
bool wk_cuda_check(struct wk_cuda *c, int code, const char *what);

/* An error that says what CUDA's code means; c may be NULL. Returns -1. */
int wk_cuda_fail(const struct wk_cuda *c, int code, const char *what, struct hg_err *err);

/* Copy bytes on the device. */
void wk_cuda_copy(struct wk_cuda *c, void *to, const void *from, size_t bytes);

/* Memory for the next launches, until the next call; NULL for 0 bytes, and when there is none left (the device has failed then). */
void *wk_cuda_scratch(struct wk_cuda *c, size_t bytes);

/* Make these the running step's numbers for what is launched from now on. */
void wk_cuda_send_step(struct wk_cuda *c, const struct wk_cuda_step *step);

/* Methods of struct wk_backend. */
void *wk_cuda_alloc(struct wk_dev *dev, size_t bytes);
void wk_cuda_free(struct wk_dev *dev, void *data);
void wk_cuda_upload(struct wk_dev *dev, struct wk_span to, const void *host);
void wk_cuda_download(struct wk_dev *dev, void *host, struct wk_span from);
int wk_cuda_sync(struct wk_dev *dev, struct hg_err *err);
size_t wk_cuda_available(struct wk_dev *dev);

/* For open.c: the memory that alloc hands out comes from CUDA. */
void wk_cuda_memory_open(struct wk_cuda *c);

#endif
