/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CPU_CPU_H
#define WK_BACKENDS_CPU_CPU_H

#include "backends/backend.h"

/* The backend without its ops: those are in the table of an open device. */
extern const struct wk_backend wk_backend_cpu;

#endif
