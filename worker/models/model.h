/* SPDX-License-Identifier: Apache-2.0 */
/* A model: parameters declared in units, and a forward and backward pass written once, against the
 * ops of a device. It knows neither ranks nor optimizers: values and gradients are where the
 * strategy put them, and a pass calls it when a unit begins and ends. */
#ifndef WK_MODELS_MODEL_H
#define WK_MODELS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "base/err.h"

/* One trained tensor. Tensors of a unit are adjacent, units in the order of the forward pass. */
struct wk_param {
    const char *name; /* as PyTorch calls it */
    int unit;
    int rows, cols; /* (rows, cols); a vector has cols 0 */
    enum { WK_INIT_CONSTANT, WK_INIT_UNIFORM, WK_INIT_NORMAL } init;
    double init_value; /* the constant, u of uniform (-u, u), or the standard deviation */
    bool zero_row;     /* row 0 starts as zero whatever init says */
    bool no_decay;     /* biases and norms: weight decay may leave them out */
    bool product;      /* of one dense layer: a fresh pass overwrites its gradient */
};

/* A tensor that is not trained but belongs to the model: running statistics. */
struct wk_buffer {
    const char *name;
    int n;
    double init_value;
};

/* Where a parameter lives at this moment. Valid between the strategy's before and after calls of
 * its unit. */
struct wk_tensor {
    struct wk_span value, gradient;
};

/* Samples on the device, as a data set gathers them. */
struct wk_batch {
    int rows;
    struct wk_span x;      /* (rows, width) */
    struct wk_span labels; /* (rows) int32 */
    /* (rows) int32: index in the data set, the key of a sample's randomness. */
    struct wk_span sample;
    /* Of question answering data instead of x and labels; a row is a sequence. */
    struct wk_packing packing;
    struct wk_span ids, types;   /* (packing.rows) int32 */
    struct wk_span starts, ends; /* (rows) int32: places in the sequence */
};

enum wk_direction { WK_FORWARD, WK_BACKWARD };

/* What surrounds a model's passes: a strategy brings values and takes gradients unit by unit, and ranks may share batch statistics. A pass
 * without hooks (NULL) runs alone, on values and gradients that are there. */
struct wk_hooks {
    void *context; /* first argument of all functions */
    /* Around a unit's part of a pass: make its values usable; release them. After its backward the unit's gradients are complete
     * on this rank. */
    int (*before)(void *context, enum wk_direction direction, int unit, struct hg_err *err);
    int (*after)(void *context, enum wk_direction direction, int unit, struct hg_err *err);
    /* The gradients of products hold what an earlier step left: this backward overwrites them. */
    bool fresh;
    /* Ranks that share batch statistics (0: each has its own), this one's number, and two collectives in place among them. */
    int ranks, rank;
    int (*all_gather)(void *context, struct wk_span whole, struct hg_err *err);
    int (*all_reduce)(void *context, struct wk_span whole, struct hg_err *err);
};

/* As models call them. */
int wk_before(const struct wk_hooks *hooks, enum wk_direction direction, int unit,
              struct hg_err *err);
int wk_after(const struct wk_hooks *hooks, enum wk_direction direction, int unit,
             struct hg_err *err);

/* What one pass runs with. */
struct wk_pass {
    struct wk_dev *dev;
    const struct wk_tensor *params; /* one per wk_param */
    const struct wk_span *buffers;  /* one per wk_buffer */
    bool training;                  /* dropout and batch statistics */
    uint64_t seed;
    uint32_t step; /* optimizer steps before this pass */
    double share;  /* of the step's loss, when several passes make one step; 0 means all of it */
    struct wk_span loss_scale;    /* (1) what gradients are multiplied with; absent: 1 */
    const struct wk_hooks *hooks; /* NULL: none */
};

/* What a model is made for. */
struct wk_model_options {
    int batch_rows; /* most rows of a training pass */
    int eval_rows;  /* most rows of an evaluation pass; 0: none */
    bool dropout;
    int synced_ranks;                 /* ranks that share batch statistics; 0: each has its own */
    int batch_tokens, eval_tokens;    /* most rows of a packing in such passes */
    int longest;                      /* most rows of one sequence in any pass */
    const struct wk_model_kind *kind; /* of models with sizes */
};

/* Sizes of a model that comes in sizes; 0: those of its name. */
struct wk_model_size {
    long long layers, hidden, heads, intermediate, vocab_size, positions;
    enum wk_gelu gelu;
};

/* A kind of model: one file, one entry in models.c. All functions may use the device's memory made
 * in open only. */
struct wk_model_kind {
    const char *name, *summary;
    const struct wk_param *params;
    int n_params;
    const char *const *units;
    int n_units;
    /* Parameters as their gradients become ready in backward; NULL: the last one first. */
    const int *ready;
    int layers_first, layers_end; /* units that are layers: those that are placed one by one */
    const struct wk_buffer *buffers;
    int n_buffers;
    int sample_width, classes; /* a sample's values, and labels 0 to classes - 1 */
    int synced; /* values that batch statistics exchange for each rank, each way; 0: there are none */
    int min_rows;                     /* fewest rows of a training pass */
    bool reads_tokens;                /* batches are token sequences */
    const struct wk_model_size *size; /* of a model that comes in sizes, all of them; else NULL */
    const void *own;                  /* of the model's file */

    struct wk_model *(*open)(struct wk_dev *dev, const struct wk_model_options *options,
                             struct hg_err *err);
    void (*close)(struct wk_model *model);
    /* The largest calls that its passes make; fills what of calls is 0. */
    void (*calls)(const struct wk_model_options *options, struct wk_calls *calls);
    /* Outputs of a batch stay in the model for loss and score. */
    int (*forward)(struct wk_model *model, const struct wk_pass *pass, const struct wk_batch *batch,
                   struct hg_err *err);
    /* Mean loss of the last forward's rows into loss (1), and the gradient of the outputs for
     * backward. */
    void (*loss)(struct wk_model *model, const struct wk_pass *pass, const struct wk_batch *batch,
                 struct wk_span loss);
    /* Adds to the gradients of all parameters. */
    int (*backward)(struct wk_model *model, const struct wk_pass *pass,
                    const struct wk_batch *batch, struct hg_err *err);
    /* out (2) = sum of the losses and number of right answers of the last forward's rows. */
    void (*score)(struct wk_model *model, const struct wk_pass *pass, const struct wk_batch *batch,
                  struct wk_span out);
    /* Outputs of the last forward, (rows, classes). Lent. */
    struct wk_span (*outputs)(struct wk_model *model);
};

struct wk_model {
    const struct wk_model_kind *kind;
    struct wk_dev *dev;
};

/* A model's name and how its kind is made. Kinds with sizes are made for each training. */
struct wk_model_entry {
    const char *name, *summary;
    const struct wk_model_kind *fixed; /* or */
    struct wk_model_kind *(*make)(const struct wk_model_entry *entry,
                                  const struct wk_model_size *size, struct hg_err *err);
    struct wk_model_size size; /* for make */
};
/* The k-th parameter whose gradient becomes ready. */
int wk_model_ready(const struct wk_model_kind *kind, int k);

/* Elements of a parameter, of all parameters, of all buffers. */
size_t wk_param_n(const struct wk_param *p);
size_t wk_model_n(const struct wk_model_kind *kind);
/* Elements that all parameters take in a flat buffer, where each begins at a multiple of grain (wk_dev_grain). The padding behind them
 * is zero, and stays zero through every update. */
size_t wk_model_room(const struct wk_model_kind *kind, size_t grain);
size_t wk_model_buffers_n(const struct wk_model_kind *kind);

/* Fill one parameter's values as its init says; the same for every rank, strategy and place in
 * memory. `index` is its place in the model's list. */
void wk_param_init(const struct wk_param *p, int index, uint64_t seed, wk_real *host);

#endif
