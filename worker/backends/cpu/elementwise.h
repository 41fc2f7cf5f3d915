/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops, and batches out of a resident data set. */
#ifndef WK_BACKENDS_CPU_ELEMENTWISE_H
#define WK_BACKENDS_CPU_ELEMENTWISE_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_elementwise_ops;

/* Reals of scratch that the sum of n squares takes. */
size_t wk_cpu_square_scratch(size_t n);

#endif
