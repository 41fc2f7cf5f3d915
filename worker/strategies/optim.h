/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: an update of any range of parameters, so that a strategy can apply one to all of them
 * or to its shard. */
#ifndef WK_STRATEGIES_OPTIM_H
#define WK_STRATEGIES_OPTIM_H

#include "backends/backend.h"

#define WK_OPTIM_SLOTS_MAX 4

struct wk_optim {
    const struct wk_optim_kind *kind;
    double rho, eps;
    double beta1, beta2; /* AdamW */
    double weight_decay; /* AdamW */
    bool decay_all;      /* biases and norms too */
    double clip_norm;    /* largest norm of the whole gradient; 0: any */
};

/* One step, for some of the parameters. */
struct wk_update {
    double lr;
    double decay;           /* of these parameters */
    struct wk_span spared;  /* which of them do not decay: of struct wk_adamw */
    long step;              /* this one, from 1 */
    struct wk_span control; /* of the gradient's scale; absent: it is taken as it is */
    struct wk_span copy;    /* of the values in another type, written with them; absent: none */
};

/* One file or function, one entry in optim.c. */
struct wk_optim_kind {
    const char *name;
    int slots; /* values of state for every parameter, 0 at the start */
    void (*update)(const struct wk_optim *o, struct wk_dev *dev, struct wk_span value,
                   struct wk_span gradient, const struct wk_span *slots, const struct wk_update *u);
    enum wk_adamw_form form; /* of AdamW */
};

/* NULL with err set (INPUT) if there is none of that name. */
const struct wk_optim_kind *wk_optim_get(const char *name, struct hg_err *err);

#endif
