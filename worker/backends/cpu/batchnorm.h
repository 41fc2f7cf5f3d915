/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation. */
#ifndef WK_BACKENDS_CPU_BATCHNORM_H
#define WK_BACKENDS_CPU_BATCHNORM_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_batchnorm_ops;

#endif
