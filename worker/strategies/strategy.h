/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides where each unit's values, gradients and optimizer state live and what ranks
 * send each other. The model calls it around every unit's passes, the training loop around every
 * step: that one seam gives replicas with bucketed reductions, gathered units and sharded states
 * alike. */
#ifndef WK_STRATEGIES_STRATEGY_H
#define WK_STRATEGIES_STRATEGY_H

#include "strategies/kind.h"

/* Place the model for training, with the values of `seed`. NULL with err set; end it with wk_strategy_close. The other objects must outlive
 * it. Other values may be stored before wk_strategy_start. */
struct wk_strategy *wk_strategy_open(const struct wk_strategy_kind *kind, struct wk_dev *dev,
                                     struct wk_comm *comm, const struct wk_model_kind *model,
                                     const struct wk_optim *optim,
                                     const struct wk_strategy_options *options, uint64_t seed,
                                     struct hg_err *err);
void wk_strategy_close(struct wk_strategy *s);

/* Make all ranks start from rank 0's values; every rank calls it once, before the first step. */
int wk_strategy_start(struct wk_strategy *s, struct hg_err *err);

/* The same for all work so far, memory included. */
void wk_strategy_expect(const struct wk_strategy *s, struct wk_expected *out);
/* A step or an evaluation begins; an update ends a step. */
int wk_strategy_begin(struct wk_strategy *s, bool training, struct hg_err *err);
int wk_strategy_update(struct wk_strategy *s, double lr, struct hg_err *err);
/* Count a step of one pass that the device launched as a whole, without calls to this strategy; or, with -1, one that it will be
 * called for again. */
void wk_strategy_count_step(struct wk_strategy *s, int steps);
/* Take part in an evaluation pass of other ranks without one of one's own. */
int wk_strategy_idle_pass(struct wk_strategy *s, struct hg_err *err);

/* A whole parameter's state from and to host memory; all ranks call them in the same order. After the last store comes
 * wk_strategy_round. */
int wk_strategy_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                      struct hg_err *err);
int wk_strategy_fetch(struct wk_strategy *s, int state, int param, wk_real *host,
                      struct hg_err *err);
/* The same of what this rank keeps alone: elements first to first + n of a parameter. No other rank takes part. */
void wk_strategy_own(struct wk_strategy *s, int param, size_t *first, size_t *n);
int wk_strategy_store_own(struct wk_strategy *s, int state, int param, const wk_real *own,
                          struct hg_err *err);
int wk_strategy_fetch_own(struct wk_strategy *s, int state, int param, wk_real *own,
                          struct hg_err *err);
int wk_strategy_round(struct wk_strategy *s, struct hg_err *err);

#endif
