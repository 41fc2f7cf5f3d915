/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of parameters. */
#ifndef WK_BACKENDS_CPU_OPTIM_H
#define WK_BACKENDS_CPU_OPTIM_H

#include "backends/backend.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_optim_ops;

#endif
