/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CUDA_OPS_H
#define WK_BACKENDS_CUDA_OPS_H

#include "backends/backend.h"

extern const struct wk_backend wk_backend_cuda;

#endif
