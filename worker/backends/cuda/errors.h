/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA's error codes mean for whoever started a training. Free of CUDA's headers, so that all of it is tested without a GPU. */
#ifndef WK_BACKENDS_CUDA_ERRORS_H
#define WK_BACKENDS_CUDA_ERRORS_H

#include <stdbool.h>

#include "base/err.h"

/* What is known about the device that failed. */
struct wk_cuda_trouble {
    int code;                 /* a cudaError_t */
    const char *name;         /* CUDA's own words for it */
    const char *what;         /* the op that noticed it; NULL: opening the device */
    const char *device, *pci; /* NULL where it is not known yet */
    int driver,
        runtime;    /* versions as CUDA counts them, 13000 for 13.0; driver 0: none is loaded */
    int capability; /* 90 for 9.0 */
    const char *architectures; /* that this program has kernels for */
};

/* Always returns -1, with err set: ENV, what is wrong and what helps. */
int wk_cuda_explain(const struct wk_cuda_trouble *t, struct hg_err *err);

/* Whether a device of that capability can compute with this precision: else false with err set (ENV). */
bool wk_cuda_can(int precision, int capability, const char *device, struct hg_err *err);

#endif
