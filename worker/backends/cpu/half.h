/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CPU_HALF_H
#define WK_BACKENDS_CPU_HALF_H

#include "backends/backend.h"

extern const struct wk_backend wk_backend_cpu;

/* The cpu backend with ops over 16-bit spans, for devices that work in bf16 or fp16. */
const struct wk_backend *wk_cpu_half(void);

/* Reals that hold the operands of the largest of these calls, where they are 16-bit numbers. */
size_t wk_cpu_operands(const struct wk_calls *calls);

#endif
