/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CUDA_OPEN_H
#define WK_BACKENDS_CUDA_OPEN_H

#include "backends/backend.h"

/* Methods of struct wk_backend; the open device gets this table. */
struct wk_dev *wk_cuda_open(const struct wk_backend *table, const struct wk_dev_options *options,
                            struct hg_err *err);
void wk_cuda_close(struct wk_dev *dev);
void wk_cuda_describe(struct wk_dev *dev, struct hg_buf *out);

#endif
