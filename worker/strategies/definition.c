/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/definition.h"

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
