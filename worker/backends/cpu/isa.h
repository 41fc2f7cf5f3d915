/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the kernels, which are compiled once per instruction set, this machine can run. */
#ifndef WK_BACKENDS_CPU_ISA_H
#define WK_BACKENDS_CPU_ISA_H

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels_tokens.h"

/* The kernels of this build that this machine can run, widest first, NULL-terminated. */
const struct wk_kernels *const *wk_kernels_usable(void);

/* The kernels of an instruction set, by the name that struct wk_kernels has; NULL if this build lacks it. */
const struct wk_token_kernels *wk_token_kernels_get(const char *isa);

#endif
