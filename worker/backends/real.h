/* SPDX-License-Identifier: Apache-2.0 */
/* The type that the worker computes with. The same sources are built twice: in fp32 for
 * hpcgrid-worker, and in fp64 (WK_REAL_F64) for gradient checks, where rounding must not hide a
 * wrong formula. */
#ifndef WK_BACKENDS_REAL_H
#define WK_BACKENDS_REAL_H

#ifdef WK_REAL_F64
typedef double wk_real;
#define WK_PRECISION "fp64"
#else
typedef float wk_real;
#define WK_PRECISION "fp32"
#endif

#endif
