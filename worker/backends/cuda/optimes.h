/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CUDA_OPTIMES_H
#define WK_BACKENDS_CUDA_OPTIMES_H

#include <cuda_runtime_api.h>

struct wk_op_times;

/* NULL unless HPCGRID_OP_TIMES names a file. */
struct wk_op_times *wk_op_times_open(void);
/* An op was launched. name must live on. */
void wk_op_times_mark(struct wk_op_times *t, const char *name, cudaStream_t stream);
/* What is launched from now on is a step of that epoch. */
void wk_op_times_step(struct wk_op_times *t, int epoch, cudaStream_t stream);
/* Writes the file. */
void wk_op_times_close(struct wk_op_times *t);

#endif
