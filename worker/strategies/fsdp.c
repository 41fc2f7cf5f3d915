/* SPDX-License-Identifier: Apache-2.0 */
/* Fully sharded data parallel, as PyTorch's FullyShardedDataParallel with FULL_SHARD. Values, gradients
 * and optimizer state of a wrapped part of the model are one flat piece, cut into N parts. Wrapped are
 * the layers, each by itself, and what is left as the root; or the whole model at once, which is what
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

static int fsdp_open(struct wk_strategy *s, struct hg_err *err)
{
    struct wk_sharding how = sharding(&s->options);

    return wk_sharded_open(s, &how, err);
}

static void fsdp_state(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES])
{
    struct wk_sharding how = sharding(shape->options);

    wk_sharded_state(shape, &how, mem_bytes);
}

static void fsdp_expect(const struct wk_strategy_shape *shape, const struct wk_work *work,
                        struct wk_expected *out)
{
    struct wk_sharding how = sharding(shape->options);

    wk_sharded_expect(shape, &how, work, out);
}

const struct wk_strategy_kind wk_strategy_fsdp = {
    .name = "fsdp",
    .open = fsdp_open,
    .state = fsdp_state,
    .expect = fsdp_expect,
    WK_SHARDED_HOOKS,
};
