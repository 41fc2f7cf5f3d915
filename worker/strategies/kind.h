/* SPDX-License-Identifier: Apache-2.0 */
/* What every strategy is made of, and what their files share. */
#ifndef WK_STRATEGIES_KIND_H
#define WK_STRATEGIES_KIND_H

#include "comm/comm.h"
#include "models/model.h"
#include "strategies/optim.h"

struct wk_sharding;
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
                             what DeepSpeed keeps in addition */
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
    size_t grain; /* the device's, wk_dev_grain; 0: 1 */
    int rank, world;
};

/* What a strategy was called for. */
struct wk_work {
    long starts;        /* times that values were set from the host */
    long steps, passes; /* of the training */
    long evals, eval_passes;
    long rows; /* samples of the training that this rank was sent */
};

/* What a strategy's definition says it does on each rank. */
struct wk_expected {
    double calls[WK_COLLS], payload_bytes[WK_COLLS], ring_bytes[WK_COLLS]; /* of all the work */
    double mem_bytes[WK_MEM_CLASSES]; /* peaks; negative: the strategy has no say */
};

struct wk_strategy {
    const struct wk_strategy_kind *kind;
    const struct wk_strategy_ops *ops; /* the kind's */
    struct wk_hooks hooks;             /* for passes */
    struct wk_dev *dev;
    struct wk_comm *comm;
    const struct wk_model_kind *model;
    const struct wk_optim *optim;
    struct wk_strategy_options options;
    struct wk_tensor *params; /* one per parameter: what passes use */
    /* One per parameter: the trained values; where passes read them, params' own. */
    struct wk_span *masters;
    struct wk_span control; /* of updates, where the gradient is clipped or the loss scaled */
    struct wk_span *buffers, all_buffers; /* one per buffer, parts of all: whole on every rank */
    struct wk_span *slots; /* the optimizer's, WK_OPTIM_SLOTS_MAX for each parameter */
    long updates;          /* optimizer steps that were taken, also before a checkpoint */
    bool partial;          /* more passes follow before the update: gradients wait */
    double share;          /* of every pass's loss, in addition to the pass's own; 1 */
    double lr;     /* of the update behind the passes, where it is known before them; else 0 */
    bool training; /* the passes are those of a step, else of an evaluation */
    struct wk_work work; /* of this process */
    size_t grain;        /* the device's */
    /* With a grain: which elements do not decay, see wk_strategy_spare; absent: all decay alike. */
    struct wk_span spared;
    void *own; /* of the kind */
};

/* Values of a parameter, or slot k of its optimizer state as WK_STATE_SLOT + k. */
enum { WK_STATE_VALUE, WK_STATE_SLOT };

/* What a strategy does, and when; NULL where it has nothing to do. */
struct wk_strategy_ops {
    /* Place parameters, gradients and optimizer state; fill params and buffers. */
    int (*open)(struct wk_strategy *s, struct hg_err *err);
    void (*close)(struct wk_strategy *s);
    /* Once, after every rank has set its values: make all ranks start from rank 0's. */
    int (*start)(struct wk_strategy *s, struct hg_err *err);
    /* After values were set from the host: make the copies that passes read, on all ranks. */
    int (*round)(struct wk_strategy *s, struct hg_err *err);
    /* Which elements of a parameter this rank keeps; NULL where it keeps all. */
    void (*own)(struct wk_strategy *s, int param, size_t *first, size_t *n);
    /* Set and give out these elements; and give out a whole parameter, which every rank calls. NULL where masters and
     * slots are whole. */
    int (*store)(struct wk_strategy *s, int state, int param, const wk_real *own,
                 struct hg_err *err);
    int (*fetch_own)(struct wk_strategy *s, int state, int param, wk_real *own, struct hg_err *err);
    int (*fetch)(struct wk_strategy *s, int state, int param, wk_real *host, struct hg_err *err);
    /* Before the passes of a step (training) or of an evaluation: clear gradients, refresh buffers.
     */
    int (*before_step)(struct wk_strategy *s, bool training, struct hg_err *err);
    /* Make the unit's values usable; release them. */
    int (*before_forward)(struct wk_strategy *s, int unit, struct hg_err *err);
    int (*after_forward)(struct wk_strategy *s, int unit, struct hg_err *err);
    /* dp only, else NULL. Take this rank's rows of sample numbers; all (world, rows) is rank 0's. And the loss of a pass
     * is there. */
    int (*scatter)(struct wk_strategy *s, const int32_t *all, int rows, int32_t *own,
                   struct hg_err *err);
    int (*after_loss)(struct wk_strategy *s, struct wk_span loss, struct hg_err *err);
    /* The same for backward; after it the unit's gradients are complete on this rank. */
    int (*before_backward)(struct wk_strategy *s, int unit, struct hg_err *err);
    int (*after_backward)(struct wk_strategy *s, int unit, struct hg_err *err);
    /* Wait for outstanding collectives and take the optimizer's step. */
    int (*update)(struct wk_strategy *s, double lr, struct hg_err *err);
    /* From the definition, without a device or ranks: peaks of parameters, gradients, optimizer and comm on this
     * rank, and what is sent for so much work (in training's plane). */
    void (*state)(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES]);
    void (*expect)(const struct wk_strategy_shape *shape, const struct wk_work *work,
                   struct wk_expected *out);
};

/* One file, one entry in strategies.c. */
struct wk_strategy_kind {
    const char *name;
    const struct wk_strategy_ops *ops;
    /* How it cuts what a model has: of strategies with wk_sharded_ops (strategies/sharded.h), else NULL. */
    struct wk_sharding (*sharding)(const struct wk_strategy_options *options);
};

/* Where masters and slots are whole: this one. */
struct wk_span wk_strategy_place(const struct wk_strategy *s, int state, int param);
/* Set the control from the sum of squares of the whole gradient, before an update; nothing where there is none. */
void wk_strategy_control(struct wk_strategy *s, struct wk_span square_sum);

/* Rank 0's buffers to all, if the model has any. */
int wk_strategy_send_buffers(struct wk_strategy *s, struct hg_err *err);
/* Weight decay of a parameter. */
double wk_strategy_decay(const struct wk_strategy *s, int param);
/* Where some parameters do not decay and the device has a grain, one update can do all: flags of n flat elements on the host, yours, none set;
 * NULL elsewhere. Set those of elements first to first + n if the parameter does not decay; take them over for s->spared, which is `bytes`
 * long. NULL is fine. */
uint8_t *wk_strategy_spared(const struct wk_strategy *s, size_t n);
void wk_strategy_spare(const struct wk_strategy *s, uint8_t *spared, int param, size_t first,
                       size_t n);
int wk_strategy_take_spared(struct wk_strategy *s, uint8_t *spared, size_t n, struct hg_err *err);
double wk_shape_spared_bytes(const struct wk_strategy_shape *shape, double n);
/* Decay of an update that begins with that parameter. */
double wk_strategy_decay_from(const struct wk_strategy *s, int param);
/* The optimizer's update of some neighbours: on a device with a grain they begin and end at multiples of it. */
void wk_strategy_apply(const struct wk_strategy *s, struct wk_span value, struct wk_span gradient,
                       const struct wk_span *slots, const struct wk_update *u);
/* Enough of it for its definition. */
struct wk_strategy_shape wk_strategy_shape(const struct wk_strategy *s);

/* For state and expect: the bytes of an element that passes read; whether there is a control; add some collectives. */
double wk_shape_value_bytes(const struct wk_strategy_shape *shape);
bool wk_shape_mixed(const struct wk_strategy_shape *shape);
bool wk_shape_control(const struct wk_strategy_shape *shape);
void wk_expect_add(struct wk_expected *out, const struct wk_strategy_shape *shape,
                   enum wk_coll coll, double calls, double payload_bytes);

#endif
