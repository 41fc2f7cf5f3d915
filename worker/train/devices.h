/* SPDX-License-Identifier: Apache-2.0 */
/* A training in one process with several devices. */
#ifndef WK_TRAIN_DEVICES_H
#define WK_TRAIN_DEVICES_H

#include "train/config.h"
#include "train/result.h"

/* wk_train_all in one process with several devices, a thread each (dp); `threads` is a device's. */
int wk_train_devices(const struct wk_config *config, int devices, int threads,
                     struct wk_result *result, struct hg_err *err);

#endif
