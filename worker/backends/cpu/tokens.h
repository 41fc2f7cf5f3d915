/* SPDX-License-Identifier: Apache-2.0 */
/* Ops over token sequences except attention. */
#ifndef WK_BACKENDS_CPU_TOKENS_H
#define WK_BACKENDS_CPU_TOKENS_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_tokens_ops;

#endif
