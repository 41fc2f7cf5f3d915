/* SPDX-License-Identifier: Apache-2.0 */
/* Losses. */
#ifndef WK_BACKENDS_CPU_LOSS_H
#define WK_BACKENDS_CPU_LOSS_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_loss_ops;

#endif
