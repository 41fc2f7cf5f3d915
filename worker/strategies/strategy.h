/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides where each unit's values, gradients and optimizer state live and what ranks
 * send each other. The model calls it around every unit's passes, the training loop around every
 * step: that one seam gives replicas with bucketed reductions, gathered units and sharded states
 * alike. */
#ifndef WK_STRATEGIES_STRATEGY_H
#define WK_STRATEGIES_STRATEGY_H

#include "comm/comm.h"
#include "models/model.h"
#include "train/optim.h"

struct wk_strategy_options {
    double bucket_mib, first_bucket_mib; /* ddp */
    const char *weights; /* safetensors file that parameters start from; NULL: the model's init */
};

struct wk_strategy {
    const struct wk_strategy_kind *kind;
    struct wk_dev *dev;
    struct wk_comm *comm;
    const struct wk_model_kind *model;
    const struct wk_optim *optim;
    struct wk_strategy_options options;
    struct wk_tensor *params; /* one per parameter: what passes use */
    struct wk_span
        *masters; /* one per parameter: the trained values; where passes read them, params' own */
    struct wk_span control;  /* of updates, where the gradient is clipped or the loss scaled */
    struct wk_span *buffers; /* one per buffer */
    struct wk_span *slots;   /* the optimizer's, WK_OPTIM_SLOTS_MAX for each parameter */
    long updates;            /* optimizer steps that were taken */
    bool partial;            /* more passes follow before the update: gradients wait */
    void *own;               /* of the kind */
};

/* What a strategy's definition says it does on each rank. */
struct wk_expected {
    double ring_bytes[WK_COLLS];      /* of the whole training, all steps */
    double mem_bytes[WK_MEM_CLASSES]; /* peaks; negative: the strategy has no say */
};

/* One file, one entry in strategy.c. The hooks may be NULL where a strategy has nothing to do. */
struct wk_strategy_kind {
    const char *name;
    /* Place parameters, gradients and optimizer state; fill params and buffers. */
    int (*open)(struct wk_strategy *s, struct hg_err *err);
    void (*close)(struct wk_strategy *s);
    /* Once, after every rank has set its values: make all ranks start from rank 0's. */
    int (*start)(struct wk_strategy *s, struct hg_err *err);
    /* After masters were set from the host: make the copies that passes read. */
    void (*round)(struct wk_strategy *s);
    /* Before the passes of a step (training) or of an evaluation: clear gradients, refresh buffers.
     */
    int (*before_step)(struct wk_strategy *s, bool training, struct hg_err *err);
    /* Make the unit's values usable; let them go. */
    int (*before_forward)(struct wk_strategy *s, int unit, struct hg_err *err);
    int (*after_forward)(struct wk_strategy *s, int unit, struct hg_err *err);
    /* The same for backward; after it the unit's gradients are complete on this rank. */
    int (*before_backward)(struct wk_strategy *s, int unit, struct hg_err *err);
    int (*after_backward)(struct wk_strategy *s, int unit, struct hg_err *err);
    /* Wait for what is on its way and take the optimizer's step. */
    int (*update)(struct wk_strategy *s, double lr, struct hg_err *err);
    void (*expect)(const struct wk_strategy *s, long steps, long evals, struct wk_expected *out);
};

/* Names and limits of every strategy hpcgrid knows, from base/strategies.def. */
struct wk_strategy_limits {
    const char *name;
    int max_nodes, max_tasks, max_devices; /* 0: none */
    bool built;
    const char *summary;
};
extern const struct wk_strategy_limits wk_strategy_limits[]; /* ends with a NULL name */

/* Fails with INPUT: unknown name (with a suggestion), not available yet, more ranks than it can
 * use. */
const struct wk_strategy_kind *wk_strategy_get(const char *name, int world, struct hg_err *err);

/* Place the model for training with `seed` and make all ranks equal. NULL with err set; end it with
 * wk_strategy_close. The other objects must outlive it. */
struct wk_strategy *wk_strategy_open(const struct wk_strategy_kind *kind, struct wk_dev *dev,
                                     struct wk_comm *comm, const struct wk_model_kind *model,
                                     const struct wk_optim *optim,
                                     const struct wk_strategy_options *options, uint64_t seed,
                                     struct hg_err *err);
void wk_strategy_close(struct wk_strategy *s);

/* Set the control from the sum of squares of the whole gradient, before an update; nothing where there is none. */
void wk_strategy_control(struct wk_strategy *s, struct wk_span square_sum);

/* The hooks as models call them; without a strategy in the pass they do nothing. */
int wk_before_forward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_after_forward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_before_backward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_after_backward(const struct wk_pass *pass, int unit, struct hg_err *err);

#endif
