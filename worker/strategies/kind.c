/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/kind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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

double wk_strategy_decay_from(const struct wk_strategy *s, int param)
{
    return s->spared.data ? s->optim->weight_decay : wk_strategy_decay(s, param);
}

static bool spares(const struct wk_optim *o, size_t grain)
{
    return grain > 1 && !o->decay_all && o->weight_decay != 0;
}

uint8_t *wk_strategy_spared(const struct wk_strategy *s, size_t n)
{
    return spares(s->optim, s->grain) ? hg_alloc_zeroed(n / s->grain, 1) : NULL;
}

void wk_strategy_spare(const struct wk_strategy *s, uint8_t *spared, int param, size_t first,
                       size_t n)
{
    if (spared && s->model->params[param].no_decay)
        memset(spared + first / s->grain, 1, wk_grains(n, s->grain) / s->grain);
}

int wk_strategy_take_spared(struct wk_strategy *s, uint8_t *spared, size_t n, struct hg_err *err)
{
    int rc = 0;

    if (!spared)
        return 0;
    rc = wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_U8, n / s->grain, &s->spared, err);
    if (rc == 0)
        s->dev->backend->upload(s->dev, s->spared, spared);
    free(spared);
    return rc;
}

double wk_shape_spared_bytes(const struct wk_strategy_shape *shape, double n)
{
    return spares(shape->optim, shape->grain) ? n / (double)shape->grain : 0;
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
