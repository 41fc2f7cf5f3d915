/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates over time. */
#ifndef WK_TRAIN_RATE_H
#define WK_TRAIN_RATE_H

/* PyTorch's StepLR with a step of one epoch: lr gamma^epoch, epochs counted from 0. */
double wk_rate_step(double lr, double gamma, long long epoch);

#endif
