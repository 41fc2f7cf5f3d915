/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CPU_HALF_H
#define WK_BACKENDS_CPU_HALF_H

#include "backends/backend.h"

/* Set all ops of the table to those over 16-bit tensors, for devices that work in bf16 or fp16. */
void wk_cpu_half_ops(struct wk_backend *table);

/* Reals that hold the operands of the largest of these calls, where they are 16-bit numbers. */
size_t wk_cpu_operands(const struct wk_calls *calls);

#endif
