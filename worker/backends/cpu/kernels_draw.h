/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CPU_KERNELS_DRAW_H
#define WK_BACKENDS_CPU_KERNELS_DRAW_H

#include "backends/draw.h"

/* A group, for one instruction set. */
typedef void wk_draw_group(uint64_t seed, uint32_t site, uint32_t counter, enum wk_draw what,
                           double out[WK_DRAW_GROUP]);
extern wk_draw_group wk_draw_group_base;
#ifdef __x86_64__
extern wk_draw_group wk_draw_group_avx2, wk_draw_group_avx512; /* where the machine has it */
#endif

#endif
