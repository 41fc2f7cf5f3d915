/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over token sequences. */
#ifndef WK_BACKENDS_CPU_ATTENTION_H
#define WK_BACKENDS_CPU_ATTENTION_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_attention_ops;

/* Reals of scratch that a thread takes for sequences of at most so many rows. */
size_t wk_cpu_attention_scratch(int longest);

#endif
