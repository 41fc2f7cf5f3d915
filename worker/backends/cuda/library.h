/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries are opened when a GPU is used, not linked: the program starts on machines without them, and reports
 * what is missing when it is needed. Only the CUDA runtime is part of the program (static); it finds the driver by itself. */
#ifndef WK_BACKENDS_CUDA_LIBRARY_H
#define WK_BACKENDS_CUDA_LIBRARY_H

#include <cublasLt.h>

#include "base/err.h"

/* X(function): those of cuBLASLt that are used. */
#define WK_CUBLASLT_FUNCTIONS(X)        \
    X(cublasLtCreate)                   \
    X(cublasLtDestroy)                  \
    X(cublasLtGetVersion)               \
    X(cublasLtMatmul)                   \
    X(cublasLtMatmulAlgoCheck)          \
    X(cublasLtMatmulAlgoGetHeuristic)   \
    X(cublasLtMatmulDescCreate)         \
    X(cublasLtMatmulDescDestroy)        \
    X(cublasLtMatmulDescSetAttribute)   \
    X(cublasLtMatrixLayoutCreate)       \
    X(cublasLtMatrixLayoutDestroy)      \
    X(cublasLtMatrixLayoutSetAttribute) \
    X(cublasLtMatmulPreferenceCreate)   \
    X(cublasLtMatmulPreferenceDestroy)  \
    X(cublasLtMatmulPreferenceSetAttribute)

#define WK_POINTER(function) __typeof__(function) *function;
struct wk_cublaslt {
    WK_CUBLASLT_FUNCTIONS(WK_POINTER)
};

/* The library, opened once a process. NULL with err set: ENV, with where it was looked for. */
const struct wk_cublaslt *wk_cublaslt_get(struct hg_err *err);

/* Open the first library of that list of names (NULL-terminated) that can be: as the loader finds it, then in the CUDA toolkit that
 * this program was built with. NULL with err set: ENV, `what` is its product's name. */
void *wk_library_open(const char *const *names, const char *what, struct hg_err *err);
/* Its function; NULL with err set: ENV, the library is too old. */
void *wk_library_find(void *library, const char *function, struct hg_err *err);

/* ---- The driver's monitor ---- */

/* What NVML reports of a device; -1 or "" if it does not. */
struct wk_nvml_info {
    char driver[80]; /* "580.65.06" */
    int processes;   /* that compute on it now */
    int ecc_errors;  /* uncorrectable ones since the driver was loaded */
    int mig;         /* 1: it is cut into MIG slices */
    double power_w, power_limit_w;
    int clock_mhz, clock_most_mhz; /* of the SMs */
};

/* By the bus address that CUDA gives ("0000:65:00.0"). Returns -1 with err set (ENV) if there is no NVML. */
int wk_nvml_read(const char *pci, struct wk_nvml_info *info, struct hg_err *err);

#endif
