/* SPDX-License-Identifier: Apache-2.0 */
/* One rank has everything and sends nothing. On a device with a second row of work, units are updated beside the backward of those below them: AdamW
 * waits for memory, products for arithmetic. Not where the update needs the norm of all gradients first. */
#include <stdlib.h>

#include "base/alloc.h"
#include "strategies/replica.h"

#define ASIDE_LEAST ((size_t)1 << 16) /* elements: fewer are not worth the launches */

struct single {
    struct wk_replica replica; /* first */
    int ready;                 /* parameters that become ready before this one are updated */
    size_t at;                 /* where it begins */
};

static int single_open(struct wk_strategy *s, struct hg_err *err)
{
    s->own = hg_alloc_zeroed(1, sizeof(struct single));
    return wk_replica_open(s->own, s, err);
}

static void single_close(struct wk_strategy *s)
{
    if (s->own)
        wk_replica_close(s->own, s);
    free(s->own);
}

static int single_before_step(struct wk_strategy *s, bool training, struct hg_err *err)
{
    struct single *d = s->own;

    (void)err;
    d->ready = 0;
    d->at = 0;
    if (training)
        wk_replica_clear(&d->replica, s);
    return 0;
}

static int single_after_backward(struct wk_strategy *s, int unit, struct hg_err *err)
{
    const struct wk_backend *ops = s->dev->backend;
    struct single *d = s->own;
    int end = d->ready;
    size_t n = 0;

    (void)err;
    if (!ops->aside || s->partial || s->control.data || s->lr <= 0)
        return 0;
    for (; end < s->model->n_params; end++) {
        const struct wk_param *p = &s->model->params[wk_model_ready(s->model, end)];

        if (p->unit < unit)
            break;
        n += wk_grains(wk_param_n(p), s->grain);
    }
    if (n < ASIDE_LEAST || end == s->model->n_params) /* the last has no backward beside it */
        return 0;
    if (!ops->aside(s->dev, true))
        return 0;
    wk_replica_update_some(&d->replica, s, s->lr, s->updates + 1, d->ready, end, d->at);
    ops->aside(s->dev, false);
    d->ready = end;
    d->at += n;
    return 0;
}

static int single_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    struct single *d = s->own;

    (void)err;
    if (!d->ready) {
        wk_replica_update(&d->replica, s, lr);
        return 0;
    }
    s->dev->backend->join(s->dev);
    wk_replica_update_some(&d->replica, s, lr, s->updates, d->ready, s->model->n_params, d->at);
    return 0;
}

static const struct wk_strategy_ops ops = {
    .open = single_open,
    .close = single_close,
    .round = wk_replica_round,
    .before_step = single_before_step,
    .after_backward = single_after_backward,
    .update = single_update,
    .state = wk_replica_state,
};

const struct wk_strategy_kind wk_strategy_single = { .name = "single", .ops = &ops };
