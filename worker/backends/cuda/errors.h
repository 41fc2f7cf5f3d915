/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA's error codes mean for the person who started a training. Independent of CUDA's headers, so all of it is tested without a GPU. */
#ifndef WK_BACKENDS_CUDA_ERRORS_H
#define WK_BACKENDS_CUDA_ERRORS_H

#include <stdbool.h>

#include "base/err.h"

/* What is known about the device that failed. */
struct wk_cuda_trouble {
    int code;                  /* a cudaError_t */
    const char *name;          /* CUDA's name of it */
    const char *what;          /* the op that noticed it; NULL: opening the device */
    const char *device, *pci;  /* NULL if not known yet */
    int driver, runtime;       /* versions as CUDA counts them, 13000 for 13.0; driver 0: none */
    int capability;            /* 90 for 9.0 */
    const char *architectures; /* that this program has kernels for */
};

/* Always returns -1, with err set: ENV, what is wrong and what helps. */
int wk_cuda_explain(const struct wk_cuda_trouble *t, struct hg_err *err);

/* Whether a device of that capability can compute with this precision: else false with err set (ENV). */
bool wk_cuda_can(int precision, int capability, const char *device, struct hg_err *err);

#endif
