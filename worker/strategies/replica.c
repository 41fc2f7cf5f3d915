/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/replica.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Values that only updates see are part of the optimizer's state. */
static enum wk_mem masters_class(const struct wk_strategy *s)
{
    return s->dev->working == WK_REAL ? WK_MEM_PARAMETERS : WK_MEM_OPTIMIZER;
}

/* Bytes of the map of products. */
static size_t products_bytes(const struct wk_model_kind *m, size_t grain)
{
    for (int i = 0; grain > 1 && i < m->n_params; i++)
        if (m->params[i].product)
            return wk_model_room(m, grain) / grain;
    return 0;
}

static int open_products(struct wk_replica *r, struct wk_strategy *s, struct hg_err *err)
{
    size_t n = products_bytes(s->model, s->grain), at = 0;
    uint8_t *map;

    if (!n)
        return 0;
    if (wk_dev_alloc(s->dev, WK_MEM_GRADIENTS, WK_U8, n, &r->products, err) < 0)
        return -1;
    map = hg_alloc(n);
    for (int ready = 0; ready < s->model->n_params; ready++) {
        const struct wk_param *p = &s->model->params[wk_model_ready(s->model, ready)];
        size_t grains = wk_grains(wk_param_n(p), s->grain) / s->grain;

        memset(map + at, p->product, grains);
        at += grains;
    }
    s->dev->backend->upload(s->dev, r->products, map);
    free(map);
    return 0;
}

int wk_replica_open(struct wk_replica *r, struct wk_strategy *s, struct hg_err *err)
{
    size_t n = wk_model_room(s->model, s->grain), at = 0;
    bool mixed = s->dev->working != WK_REAL;
    int slots = r->passive ? 0 : s->optim->kind->slots;
    uint8_t *spared;

    if (wk_dev_alloc(s->dev, masters_class(s), WK_REAL, n, &r->values, err) < 0 ||
        wk_dev_alloc(s->dev, WK_MEM_GRADIENTS, WK_REAL, n, &r->gradients, err) < 0)
        return -1;
    if (mixed && wk_dev_alloc(s->dev, WK_MEM_PARAMETERS, s->dev->working, n, &r->copies, err) < 0)
        return -1;
    for (int k = 0; k < slots; k++)
        if (wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, n, &r->slots[k], err) < 0)
            return -1;
    spared = r->passive ? NULL : wk_strategy_spared(s, n);
    for (int ready = 0; ready < s->model->n_params; ready++) {
        int i = wk_model_ready(s->model, ready);
        size_t n_i = wk_param_n(&s->model->params[i]);

        s->masters[i] = wk_span_part(r->values, at, n_i);
        s->params[i].value = wk_span_part(mixed ? r->copies : r->values, at, n_i);
        s->params[i].gradient = wk_span_part(r->gradients, at, n_i);
        for (int k = 0; k < slots; k++)
            s->slots[i * WK_OPTIM_SLOTS_MAX + k] = wk_span_part(r->slots[k], at, n_i);
        wk_strategy_spare(s, spared, i, at, n_i);
        at += wk_grains(n_i, s->grain);
    }
    if (wk_strategy_take_spared(s, spared, n, err) < 0 || open_products(r, s, err) < 0)
        return -1;
    return s->control.data ? wk_dev_alloc(s->dev, WK_MEM_OPTIMIZER, WK_REAL, 1, &r->norm, err) : 0;
}

void wk_replica_close(struct wk_replica *r, struct wk_strategy *s)
{
    wk_dev_free(s->dev, masters_class(s), &r->values);
    wk_dev_free(s->dev, WK_MEM_PARAMETERS, &r->copies);
    wk_dev_free(s->dev, WK_MEM_GRADIENTS, &r->gradients);
    wk_dev_free(s->dev, WK_MEM_GRADIENTS, &r->products);
    wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &r->norm);
    for (int k = 0; k < WK_OPTIM_SLOTS_MAX; k++)
        wk_dev_free(s->dev, WK_MEM_OPTIMIZER, &r->slots[k]);
}

void wk_replica_clear(const struct wk_replica *r, struct wk_strategy *s)
{
    s->hooks.fresh = r->products.data != NULL;
    if (r->products.data)
        s->dev->backend->clear(s->dev, r->gradients, r->products);
    else
        s->dev->backend->fill(s->dev, r->gradients, 0);
}

int wk_replica_round(struct wk_strategy *s, struct hg_err *err)
{
    const struct wk_replica *r = s->own;

    (void)err;
    if (r->copies.data)
        s->dev->backend->convert(s->dev, r->copies, r->values);
    return 0;
}

/* Neighbours that decay alike at a time, or all that s->spared tells apart. */
void wk_replica_update_some(const struct wk_replica *r, struct wk_strategy *s, double lr, long step,
                            int ready, int end, size_t at)
{
    struct wk_update u = { .lr = lr, .step = step, .control = s->control };
    size_t n;

    for (int i = ready; i < end; at += n) {
        struct wk_span slots[WK_OPTIM_SLOTS_MAX] = { WK_NONE };

        u.decay = wk_strategy_decay_from(s, wk_model_ready(s->model, i));
        for (n = 0; i < end; i++) {
            int param = wk_model_ready(s->model, i);

            if (wk_strategy_decay_from(s, param) != u.decay)
                break;
            n += wk_grains(wk_param_n(&s->model->params[param]), s->grain);
        }
        for (int k = 0; k < s->optim->kind->slots; k++)
            slots[k] = wk_span_part(r->slots[k], at, n);
        if (r->copies.data)
            u.copy = wk_span_part(r->copies, at, n);
        if (s->spared.data)
            u.spared = wk_span_part(s->spared, at / s->grain, n / s->grain);
        wk_strategy_apply(s, wk_span_part(r->values, at, n), wk_span_part(r->gradients, at, n),
                          slots, &u);
    }
}

void wk_replica_update(const struct wk_replica *r, struct wk_strategy *s, double lr)
{
    if (s->control.data) {
        s->dev->backend->square_sum(s->dev, r->norm, r->gradients);
        wk_strategy_control(s, r->norm);
    }
    wk_replica_update_some(r, s, lr, s->updates, 0, s->model->n_params, 0);
}

void wk_replica_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES])
{
    double n = (double)wk_model_room(shape->model, shape->grain), real = sizeof(wk_real);

    mem_bytes[WK_MEM_PARAMETERS] =
        n * wk_shape_value_bytes(shape) + (double)wk_model_buffers_n(shape->model) * real;
    mem_bytes[WK_MEM_GRADIENTS] = n * real + (double)products_bytes(shape->model, shape->grain);
    mem_bytes[WK_MEM_OPTIMIZER] =
        n * real * (shape->optim->kind->slots + (wk_shape_mixed(shape) ? 1 : 0)) +
        wk_shape_spared_bytes(shape, n);
    if (wk_shape_control(shape)) /* the control, and a norm */
        mem_bytes[WK_MEM_OPTIMIZER] += (1 + WK_CONTROL_N) * real;
}
