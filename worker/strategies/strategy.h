/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy decides where each unit's values, gradients and optimizer state live and what ranks
 * send each other. The model calls it around every unit's passes, the training loop around every
 * step: that one seam gives replicas with bucketed reductions, gathered units and sharded states
 * alike. */
#ifndef WK_STRATEGIES_STRATEGY_H
#define WK_STRATEGIES_STRATEGY_H

#include "comm/comm.h"
#include "models/model.h"
#include "train/optim.h"

/* What a cell may choose; wk_strategy_defaults fills it for a strategy. */
struct wk_strategy_options {
    const char *weights; /* safetensors file that parameters start from; NULL: the model's init */
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

struct wk_strategy {
    const struct wk_strategy_kind *kind;
    struct wk_dev *dev;
    struct wk_comm *comm;
    const struct wk_model_kind *model;
    const struct wk_optim *optim;
    struct wk_strategy_options options;
    struct wk_tensor *params; /* one per parameter: what passes use */
    struct wk_span
        *masters; /* one per parameter: the trained values; where passes read them, params' own */
    struct wk_span control;  /* of updates, where the gradient is clipped or the loss scaled */
    struct wk_span *buffers; /* one per buffer */
    struct wk_span *slots;   /* the optimizer's, WK_OPTIM_SLOTS_MAX for each parameter */
    long updates;            /* optimizer steps that were taken, also before a checkpoint */
    bool partial;            /* more passes follow before the update: gradients wait */
    double share;            /* of every pass's loss, besides the pass's own; 1 */
    bool training;           /* the passes are those of a step, else of an evaluation */
    struct wk_work work;     /* of this process */
    void *own;               /* of the kind */
};

/* What a strategy's definition says it does on each rank. */
struct wk_expected {
    double calls[WK_COLLS], payload_bytes[WK_COLLS], ring_bytes[WK_COLLS]; /* of all the work */
    double mem_bytes[WK_MEM_CLASSES]; /* peaks; negative: the strategy has no say */
};

/* Values of a parameter, or slot k of its optimizer state as WK_STATE_SLOT + k. */
enum { WK_STATE_VALUE, WK_STATE_SLOT };

/* One file, one entry in strategy.c. The hooks may be NULL where a strategy has nothing to do. */
struct wk_strategy_kind {
    const char *name;
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
    /* Make the unit's values usable; let them go. */
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
    /* Wait for what is on its way and take the optimizer's step. */
    int (*update)(struct wk_strategy *s, double lr, struct hg_err *err);
    /* From the definition, without a device or ranks: peaks of parameters, gradients, optimizer and comm on this
     * rank, and what is sent for so much work (in training's plane). */
    void (*state)(const struct wk_strategy_shape *shape, double mem_bytes[WK_MEM_CLASSES]);
    void (*expect)(const struct wk_strategy_shape *shape, const struct wk_work *work,
                   struct wk_expected *out);
};

/* Names and limits of every strategy hpcgrid knows, from contract/strategies.def. */
struct wk_strategy_limits {
    const char *name;
    int max_nodes, max_tasks, max_devices; /* 0: none */
    const char *summary;
};
extern const struct wk_strategy_limits wk_strategy_limits[]; /* ends with a NULL name */

/* Which parameters are options of which strategies, from contract/strategy_options.def; ends with NULL. */
struct wk_strategy_option {
    const char *strategy, *parameter;
};
extern const struct wk_strategy_option wk_strategy_option_list[];

/* NULL: no strategy of that name. */
const struct wk_strategy_limits *wk_strategy_find(const char *name);

/* Can a cell with that strategy have that parameter? Everybody's and unknown ones: yes. */
bool wk_strategy_has_option(const char *strategy, const char *parameter);

/* Is it an option of any strategy? */
bool wk_strategy_is_option(const char *parameter);

/* Fails with INPUT: unknown name (with a suggestion), more ranks than it can use. */
const struct wk_strategy_kind *wk_strategy_get(const char *name, int world, struct hg_err *err);

/* Place the model for training with `seed` and make all ranks equal. NULL with err set; end it with
 * wk_strategy_close. The other objects must outlive it. */
struct wk_strategy *wk_strategy_open(const struct wk_strategy_kind *kind, struct wk_dev *dev,
                                     struct wk_comm *comm, const struct wk_model_kind *model,
                                     const struct wk_optim *optim,
                                     const struct wk_strategy_options *options, uint64_t seed,
                                     struct hg_err *err);
void wk_strategy_close(struct wk_strategy *s);

/* The same for all work so far, memory included. */
void wk_strategy_expect(const struct wk_strategy *s, struct wk_expected *out);
struct wk_strategy_shape wk_strategy_shape(const struct wk_strategy *s);
/* The options of that strategy where a cell says nothing: its textbook, or what the framework it is known from
 * does (PyTorch's DDP, Lightning Fabric's FSDP and DeepSpeed). */
struct wk_strategy_options wk_strategy_defaults(const char *name, bool framework);

/* A step or an evaluation begins; an update ends a step. */
int wk_strategy_begin(struct wk_strategy *s, bool training, struct hg_err *err);
int wk_strategy_update(struct wk_strategy *s, double lr, struct hg_err *err);
/* Count a step of one pass that the device launched as a whole, without calls to this strategy; or, with -1, one that it will be
 * called for again. */
void wk_strategy_count_step(struct wk_strategy *s, int steps);
/* Where masters and slots are whole: this one. */
struct wk_span wk_strategy_place(const struct wk_strategy *s, int state, int param);
/* Take part in an evaluation pass of other ranks without one of one's own. */
int wk_strategy_idle_pass(struct wk_strategy *s, struct hg_err *err);

/* A whole parameter's state from and to host memory; all ranks call them in the same order. After the last store comes
 * wk_strategy_round. */
int wk_strategy_store(struct wk_strategy *s, int state, int param, const wk_real *host,
                      struct hg_err *err);
int wk_strategy_fetch(struct wk_strategy *s, int state, int param, wk_real *host,
                      struct hg_err *err);
/* The same of what this rank keeps alone: elements first to first + n of a parameter. No other rank takes part. */
void wk_strategy_own(struct wk_strategy *s, int param, size_t *first, size_t *n);
int wk_strategy_store_own(struct wk_strategy *s, int state, int param, const wk_real *own,
                          struct hg_err *err);
int wk_strategy_fetch_own(struct wk_strategy *s, int state, int param, wk_real *own,
                          struct hg_err *err);
int wk_strategy_round(struct wk_strategy *s, struct hg_err *err);

/* For state and expect: the bytes of an element that passes read; of a control, if there is one; add
 * some collectives. */
double wk_shape_value_bytes(const struct wk_strategy_shape *shape);
bool wk_shape_mixed(const struct wk_strategy_shape *shape);
bool wk_shape_control(const struct wk_strategy_shape *shape);
void wk_expect_add(struct wk_expected *out, const struct wk_strategy_shape *shape,
                   enum wk_coll coll, double calls, double payload_bytes);

/* Set the control from the sum of squares of the whole gradient, before an update; nothing where there is none. */
void wk_strategy_control(struct wk_strategy *s, struct wk_span square_sum);

/* For models with batch statistics: the ranks that share them (0: each has its own), this one's number, and a collective
 * among them in the middle of a pass. */
int wk_pass_ranks(const struct wk_pass *pass);
int wk_pass_rank(const struct wk_pass *pass);
int wk_pass_talk(const struct wk_pass *pass, enum wk_coll coll, struct wk_span whole,
                 struct hg_err *err);

/* The hooks as models call them; without a strategy in the pass they do nothing. */
int wk_before_forward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_after_forward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_before_backward(const struct wk_pass *pass, int unit, struct hg_err *err);
int wk_after_backward(const struct wk_pass *pass, int unit, struct hg_err *err);

#endif
