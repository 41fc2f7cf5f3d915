/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WK_BACKENDS_CUDA_STEPS_H
#define WK_BACKENDS_CUDA_STEPS_H

#include "backends/cuda/device.h"

int wk_cuda_steps_open(struct wk_cuda *c, struct hg_err *err);
void wk_cuda_steps_close(struct wk_cuda *c);

/* Methods of struct wk_backend. */
bool wk_cuda_step_begin(struct wk_dev *dev, const struct wk_step *step);
bool wk_cuda_step_end(struct wk_dev *dev);
void wk_cuda_mark(struct wk_dev *dev, enum wk_mark what);
int wk_cuda_times(struct wk_dev *dev, struct wk_lap *laps, int most);
bool wk_cuda_aside(struct wk_dev *dev, bool on);
void wk_cuda_join(struct wk_dev *dev);

#endif
