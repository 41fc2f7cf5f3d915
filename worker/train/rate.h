/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates over time. */
#ifndef WK_TRAIN_RATE_H
#define WK_TRAIN_RATE_H

/* PyTorch's StepLR with a step of one epoch: lr gamma^epoch, epochs counted from 0. */
double wk_rate_step(double lr, double gamma, long long epoch);

/* Grows from 0 to lr over the first `warm` of `total` steps, then falls to 0 at the end:
 * step / max(1, warm), then max(0, (total - step) / max(1, total - warm)), steps counted from 0. */
double wk_rate_linear(double lr, long step, long warm, long total);

/* The same growth, then lr. */
double wk_rate_constant(double lr, long step, long warm);

#endif
