/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/kind.h"

#include <assert.h>

void wk_strategy_control(struct wk_strategy *s, struct wk_span square_sum)
{
    const struct wk_control how = { .clip_norm = s->optim->clip_norm,
                                    .scaled = s->dev->precision == WK_MIXED_FP16,
                                    .grow_after = WK_LOSS_SCALE_GROWS };

    if (s->control.data)
        s->dev->backend->control(s->dev, s->control, square_sum, &how);
}

struct wk_span wk_strategy_place(const struct wk_strategy *s, int state, int param)
{
    return state == WK_STATE_VALUE ? s->masters[param]
                                   : s->slots[param * WK_OPTIM_SLOTS_MAX + state - WK_STATE_SLOT];
}

int wk_strategy_send_buffers(struct wk_strategy *s, struct hg_err *err)
{
    if (!s->all_buffers.n)
        return 0;
    return wk_comm_run(s->comm, WK_PLANE_TRAIN, WK_COLL_BROADCAST, s->all_buffers, err);
}

double wk_strategy_decay(const struct wk_strategy *s, int param)
{
    const struct wk_optim *o = s->optim;

    return o->decay_all || !s->model->params[param].no_decay ? o->weight_decay : 0;
}

void wk_strategy_apply(const struct wk_strategy *s, struct wk_span value, struct wk_span gradient,
                       const struct wk_span *slots, const struct wk_update *u)
{
    const struct wk_span all[] = { value, gradient, slots[0], slots[1], u->copy };

    /* Updates are bound by memory: where addresses matter, none may go element by element. */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert(all[i].n % s->grain == 0 && (uintptr_t)all[i].data % (2 * s->grain) == 0);
    s->optim->kind->update(s->optim, s->dev, value, gradient, slots, u);
}

struct wk_strategy_shape wk_strategy_shape(const struct wk_strategy *s)
{
    return (struct wk_strategy_shape){ .kind = s->kind,
                                       .model = s->model,
                                       .optim = s->optim,
                                       .options = &s->options,
                                       .precision = s->dev->precision,
                                       .grain = s->grain,
                                       .rank = s->comm->rank,
                                       .world = s->comm->world };
}

/* ---- Definitions ---- */

bool wk_shape_mixed(const struct wk_strategy_shape *shape)
{
    return shape->precision == WK_MIXED_BF16 || shape->precision == WK_MIXED_FP16;
}

double wk_shape_value_bytes(const struct wk_strategy_shape *shape)
{
    return wk_shape_mixed(shape) ? 2 : sizeof(wk_real);
}

bool wk_shape_control(const struct wk_strategy_shape *shape)
{
    return shape->precision == WK_MIXED_FP16 || shape->optim->clip_norm > 0;
}

void wk_expect_add(struct wk_expected *out, const struct wk_strategy_shape *shape,
                   enum wk_coll coll, double calls, double payload_bytes)
{
    out->calls[coll] += calls;
    out->payload_bytes[coll] += payload_bytes;
    out->ring_bytes[coll] += wk_ring_bytes(coll, payload_bytes, shape->world);
}
