/* SPDX-License-Identifier: Apache-2.0 */
/* ZeRO, as its paper defines it and DeepSpeed runs it. Every rank updates an N-th part of the values.
 *
 *   stage 1   all values and gradients are on every rank; a bucket's gradients are reduce-scattered as
 *             soon as they are complete, the updated values all-gathered after the step, those that the next forward needs first
 *             ahead, the others beside it
 *   stage 2   the same, but a rank keeps only its part of the gradients
 *   stage 3   a rank keeps only its part of the values too; a unit's parameters are all-gathered one by
 *             one for its forward and its backward. Small ones may stay whole, and units whose backward
 *             is near may stay gathered
 *
 * DeepSpeed's own stages 1 and 2 all-reduce a bucket where the paper reduce-scatters it, send it in two
 * buffers of the bucket's size, and update a copy of the values: the options all_reduce and
 * framework_state. */
#include "strategies/sharded.h"

static struct wk_sharding low_stage(const struct wk_strategy_options *o, bool gradients)
{
    return (struct wk_sharding){ .cut = WK_CUT_BUCKETS,
                                 .cap = o->reduce_elems,
                                 .gradients = gradients,
                                 .all_reduce = o->all_reduce,
                                 .staged = o->framework_state,
                                 .masters = o->framework_state };
}

static struct wk_sharding stage_1(const struct wk_strategy_options *o)
{
    return low_stage(o, false);
}

static struct wk_sharding stage_2(const struct wk_strategy_options *o)
{
    return low_stage(o, true);
}

static struct wk_sharding stage_3(const struct wk_strategy_options *o)
{
    return (struct wk_sharding){ .cut = WK_CUT_PARAMS,
                                 .values = true,
                                 .gradients = true,
                                 .all_reduce = o->all_reduce,
                                 .forward_ahead = o->prefetch_elems > 0,
                                 .backward_ahead = o->prefetch_elems > 0,
                                 .ahead_elems = o->prefetch_elems,
                                 .live_elems = o->max_live,
                                 .reuse_elems = o->max_reuse_distance,
                                 .whole_elems = o->persistence_threshold };
}

const struct wk_strategy_kind wk_strategy_deepspeed = { "deepspeed", &wk_sharded_ops, stage_2 };
const struct wk_strategy_kind wk_strategy_deepspeed_stage_1 = { "deepspeed_stage_1",
                                                                &wk_sharded_ops, stage_1 };
const struct wk_strategy_kind wk_strategy_deepspeed_stage_2 = { "deepspeed_stage_2",
                                                                &wk_sharded_ops, stage_2 };
const struct wk_strategy_kind wk_strategy_deepspeed_stage_3 = { "deepspeed_stage_3",
                                                                &wk_sharded_ops, stage_3 };
