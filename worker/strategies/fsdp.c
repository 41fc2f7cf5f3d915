/* SPDX-License-Identifier: Apache-2.0 */
/* Fully sharded data parallel, as PyTorch's FullyShardedDataParallel with FULL_SHARD. Values, gradients
 * and optimizer state of a wrapped part of the model are one flat piece, cut into N parts. Wrapped are
 * each layer, and the rest as the root; or the whole model at once, which is what
 * Lightning Fabric does when nothing else is said. The root's values stay from forward to backward. */
#include "strategies/sharded.h"

static struct wk_sharding sharding(const struct wk_strategy_options *o)
{
    return (struct wk_sharding){ .cut = o->wrap_model ? WK_CUT_MODEL : WK_CUT_LAYERS,
                                 .values = true,
                                 .gradients = true,
                                 .forward_ahead = true,
                                 .backward_ahead = !o->no_backward_prefetch,
                                 .ahead_elems = 1e300,
                                 .whole_elems = -1,
                                 .keep_all = o->keep_after_forward,
                                 .keep_scattered = true };
}

const struct wk_strategy_kind wk_strategy_fsdp = { "fsdp", &wk_sharded_ops, sharding };
