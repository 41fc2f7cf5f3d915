/* SPDX-License-Identifier: Apache-2.0 */
/* One rank has everything and sends nothing. */
#include <stdlib.h>

#include "base/alloc.h"
#include "strategies/replica.h"

static int single_open(struct wk_strategy *s, struct hg_err *err)
{
    s->own = hg_alloc_zeroed(1, sizeof(struct wk_replica));
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
    (void)err;
    if (training)
        wk_replica_clear(s->own, s);
    return 0;
}

static int single_update(struct wk_strategy *s, double lr, struct hg_err *err)
{
    (void)err;
    wk_replica_update(s->own, s, lr);
    return 0;
}

static const struct wk_strategy_ops ops = {
    .open = single_open,
    .close = single_close,
    .round = wk_replica_round,
    .before_step = single_before_step,
    .update = single_update,
    .state = wk_replica_state,
};

const struct wk_strategy_kind wk_strategy_single = { .name = "single", .ops = &ops };
