/* SPDX-License-Identifier: Apache-2.0 */
/* What a strategy is asked to do, and what its definition says that this sends and stores. */
#ifndef WK_STRATEGIES_DEFINITION_H
#define WK_STRATEGIES_DEFINITION_H

#include "comm/wire.h"
#include "models/model.h"
#include "strategies/optim.h"

struct wk_strategy_kind;

/* What a cell may choose; wk_strategy_defaults fills it for a strategy. */
struct wk_strategy_options {
    bool sync_batchnorm; /* batch statistics are those of all ranks' rows */
    int batch_rows;      /* most samples of a training pass; dp needs it */
    /* ddp */
    double bucket_mib, first_bucket_mib;
    bool bucket_copies;  /* buckets are copies of the gradients, as PyTorch's default; else views */
    bool bf16_gradients; /* gradients are rounded to bf16 on the way */
    /* fsdp */
    bool wrap_model;         /* the whole model is gathered at a time; else layer by layer */
    bool keep_after_forward; /* do not free a layer's values until its backward is over */
    bool no_backward_prefetch;
    /* deepspeed */
    bool all_reduce;      /* gradients are all-reduced and each rank keeps its part; else they are
                             reduce-scattered */
    bool framework_state; /* buckets in two buffers of their own, updates on a copy of the values:
                             what DeepSpeed keeps besides its definition */
    double reduce_elems;  /* elements of a gradient bucket */
    /* deepspeed_stage_3, in elements */
    double persistence_threshold, max_live, max_reuse_distance, prefetch_elems;
};

/* What a strategy is used for; enough to say what it will send and store. */
struct wk_strategy_shape {
    const struct wk_strategy_kind *kind;
    const struct wk_model_kind *model;
    const struct wk_optim *optim;
    const struct wk_strategy_options *options;
    enum wk_precision precision;
    int rank, world;
};

/* What was asked of a strategy. */
struct wk_work {
    long starts;        /* times that values were set from the host */
    long steps, passes; /* of the training */
    long evals, eval_passes;
    long rows; /* samples of the training that this rank was told */
};

/* What a strategy's definition says it does on each rank. */
struct wk_expected {
    double calls[WK_COLLS], payload_bytes[WK_COLLS], ring_bytes[WK_COLLS]; /* of all the work */
    double mem_bytes[WK_MEM_CLASSES]; /* peaks; negative: the strategy has no say */
};

/* For state and expect: the bytes of an element that passes read; of a control, if there is one; add
 * some collectives. */
double wk_shape_value_bytes(const struct wk_strategy_shape *shape);
bool wk_shape_mixed(const struct wk_strategy_shape *shape);
bool wk_shape_control(const struct wk_strategy_shape *shape);
void wk_expect_add(struct wk_expected *out, const struct wk_strategy_shape *shape,
                   enum wk_coll coll, double calls, double payload_bytes);

#endif
