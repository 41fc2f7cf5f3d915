/* SPDX-License-Identifier: Apache-2.0 */
/* Dense layers, dropout, ReLU. */
#ifndef WK_BACKENDS_CPU_DENSE_H
#define WK_BACKENDS_CPU_DENSE_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_dense_ops;

#endif
