/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM of the cpu backend. */
#ifndef WK_BACKENDS_CPU_LSTM_H
#define WK_BACKENDS_CPU_LSTM_H

#include "backends/cpu/device.h"

/* Its ops. */
extern const struct wk_backend wk_cpu_lstm_ops;

/* Method of struct wk_backend. */
size_t wk_cpu_lstm_state(struct wk_dev *dev, const struct wk_lstm *s);

/* Reals of scratch that both passes take. */
size_t wk_cpu_lstm_scratch(const struct cpu *c, const struct wk_lstm *s);

#endif
