/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: a device with its memory, and the operations (ops.def) that models are written in. Each op does one thing to buffers of the device; a
 * model calls nothing else, so it runs on every backend. `cpu` is the reference: every other backend's op is compared with its twin there. */
#ifndef WK_BACKENDS_BACKEND_H
#define WK_BACKENDS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/control.h"
#include "backends/real.h"
#include "backends/rng.h"
#include "base/buf.h"
#include "base/err.h"

/* Types of elements in device memory: a span says what it holds, ops choose by it. */
enum wk_type { WK_REAL, WK_I32, WK_U8, WK_BF16, WK_F16 };

size_t wk_type_size(enum wk_type type);
/* "fp32", "fp64", "int32", "uint8", "bf16", "fp16". */
const char *wk_type_name(enum wk_type type);

/* How a training computes. FULL: all of it in WK_REAL. TF32: the same, but GEMMs may round their factors to 10 bits. MIXED: passes
 * read copies of the values and write activations in a 16-bit type, sums are made in WK_REAL; trained values, their gradients and
 * the optimizer's state stay WK_REAL. fp16 scales the loss, so that small gradients do not vanish. */
enum wk_precision { WK_FULL, WK_TF32, WK_MIXED_BF16, WK_MIXED_FP16, WK_PRECISIONS };
/* "fp32" (or "fp64"), "tf32", "bf16", "fp16". */
const char *wk_precision_name(enum wk_precision precision);
/* Fails with INPUT if there is none of that name. */
int wk_precision_find(const char *name, enum wk_precision *precision, struct hg_err *err);

/* n elements in device memory; passed by value, owns nothing. A span whose data is NULL is absent. */
struct wk_span {
    void *data;
    size_t n;
    enum wk_type type;
};
#define WK_NONE      \
    (struct wk_span) \
    {                \
        0            \
    }

/* A part of a span. */
struct wk_span wk_span_part(struct wk_span s, size_t first, size_t n);

/* What device memory is used for; peaks are reported per class. */
enum wk_mem {
    WK_MEM_PARAMETERS, /* trained values and the model's buffers */
    WK_MEM_GRADIENTS,
    WK_MEM_OPTIMIZER,
    WK_MEM_ACTIVATIONS, /* what a pass keeps, its gradients on their way, and the batch */
    WK_MEM_COMM,        /* copies made for communication */
    WK_MEM_WORKSPACE,   /* what ops need besides their operands, while they run */
    WK_MEM_DATA,        /* the resident data set */
    WK_MEM_CLASSES
};
extern const char *const wk_mem_names[WK_MEM_CLASSES];

/* What a device is opened for. */
struct wk_dev_options {
    int threads; /* CPU threads that compute, at least 1 */
    enum wk_precision precision;
    int local_rank; /* which of the machine's devices, where it has several */
    /* The order of an op's sums depends on its sizes alone, not on addresses of its operands or on what is fastest here: slower. Always so on
     * the cpu. */
    bool by_shape;
};

/* A tensor's place in a flat buffer is a multiple of so many elements where addresses matter: 256 bytes, of 16-bit types too. */
#define WK_GRAIN 128

/* An open device. Backends put this first in a struct of their own. */
struct wk_dev {
    const struct wk_backend *backend;
    char name[128];         /* the real device: the CPU's model name, the GPU's product name */
    char pci[32], uuid[64]; /* of a GPU: "0000:3b:00.0", "GPU-8a1f..."; else "" */
    int threads;            /* CPU threads that compute */
    enum wk_precision precision;
    enum wk_type working; /* of activations, and of the values that passes read */
    bool rounds_rows;     /* works best with few different numbers of rows; see wk_dev_rows */
    bool keeps_tokens;    /* token sequences of a data set lie on it, batches are gathered there */
    bool counts_only;     /* its spans point to no memory; see count.h */
    /* Set by models around backward: dense layers overwrite the gradients of their weights. */
    bool fresh;
    size_t used_bytes[WK_MEM_CLASSES], peak_bytes[WK_MEM_CLASSES];
    struct hg_err error;          /* first failure; see sync */
    struct wk_profiler *profiler; /* that records it; NULL: none */
};

/* What the time before a mark went to. */
enum wk_mark {
    WK_MARK_BEGIN, /* nothing: a row of steps begins */
    WK_MARK_WORK,  /* part of a step */
    WK_MARK_DATA,  /* part of a step: its batch was made and brought to the device */
    WK_MARK_STEP,  /* the last part of a step */
};
struct wk_lap {
    enum wk_mark what;
    double seconds;
};

/* An LSTM layer over `steps` inputs of `in` values; gate order i, f, g, o:
 *   gates = x_t w_ih' + b_ih + h_{t-1} w_hh' + b_hh;  c_t = f c_{t-1} + i g;  h_t = o tanh(c_t);
 * h_0 = c_0 = 0 with i, f, o through the logistic function and g through tanh. */
struct wk_lstm {
    int batch, steps, in, hidden;
};
struct wk_lstm_weights {
    struct wk_span w_ih; /* (4 hidden, in) */
    struct wk_span w_hh; /* (4 hidden, hidden) */
    struct wk_span b_ih; /* (4 hidden) */
    struct wk_span b_hh; /* (4 hidden) */
};

/* A head that classifies: x (rows, in) -> batch normalisation -> dropout -> dense layer -> ReLU -> dropout -> dense layer -> logits (rows, out).
 * The first dropout draws at site rng.site, the second at the next one. mid and out are at most 32. */
struct wk_head {
    int rows, in, mid, out;
    double drop_in, drop_mid; /* 0: none */
    struct wk_rng rng;
    struct wk_span sample;        /* (rows) int32 */
    struct wk_span x;             /* (rows, in) */
    struct wk_span saved;         /* (2, in), as batchnorm_forward leaves it */
    struct wk_span normed, dense; /* (rows, in), (rows, mid): what the layers read, after dropout */
};
struct wk_head_weights {
    struct wk_span norm_weight, norm_bias; /* (in) */
    struct wk_span weight1, bias1;         /* (mid, in), (mid) */
    struct wk_span weight2, bias2;         /* (out, mid), (out) */
};

/* Token sequences, one after the other: sequence s is rows first[s] to first[s + 1] - 1 of a (rows, width)
 * tensor. The first tokens[s] of them are real, the rest is padding, which gets no attention. */
struct wk_packing {
    int sequences;
    int rows; /* of all sequences, and rows of no sequence that fill up to wk_dev_rows, whose entry in `sequence` is -1 */
    int longest;             /* rows of the longest sequence, or a few more */
    struct wk_span first;    /* (sequences + 1) int32 */
    struct wk_span tokens;   /* (sequences) int32 */
    struct wk_span sample;   /* (sequences) int32: key of a sequence's randomness */
    struct wk_span sequence; /* (rows) int32: which sequence a row belongs to */
};

/* Token sequences of a data set, on the device: number i is the tokens at[i] to at[i + 1] - 1, of type 0 before second[i] of them and
 * 1 from there on. All int32. */
struct wk_token_source {
    struct wk_span tokens;
    struct wk_span at;     /* (sequences + 1) */
    struct wk_span second; /* (sequences) */
};

/* Attention with `heads` heads of `size` values: softmax(q k' / sqrt(size)) v, probabilities dropped out with
 * `drop`. Head h draws at site rng.site + h. */
struct wk_attention {
    int heads, size;
    double drop;
    struct wk_rng rng;
};
struct wk_qkv {
    struct wk_span q, k, v; /* (rows, heads size) each */
};

/* x Phi(x), or its approximation with a hyperbolic tangent. */
enum wk_gelu { WK_GELU_ERF, WK_GELU_TANH };

/* The largest calls that a device will get, as far as the workspace of its ops depends on them; 0: none of that kind. */
struct wk_calls {
    struct wk_lstm lstm;
    int rows;       /* of a batch: samples, or tokens */
    int cols, wide; /* values of a row between layers; most inputs or outputs of a dense layer */
    int sequences, longest; /* of a packing */
    int heads;              /* of attention */
    int embeddings, types;  /* rows of all tables of embeddings, of that of types */
    size_t squares;         /* elements that a square_sum is made of */
};

/* One step of AdamW: m and v are running means of gradient and square,
 *   TORCH   value -= lr decay value, then lr m^ / (sqrt(v^) + eps) with bias-corrected m^ and v^
 *   HF      value -= lr sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps), then lr decay value
 *   GOOGLE  value -= lr (m / (sqrt(v) + eps) + decay value), nothing corrected */
enum wk_adamw_form { WK_ADAMW_TORCH, WK_ADAMW_HF, WK_ADAMW_GOOGLE };
struct wk_adamw {
    enum wk_adamw_form form;
    double lr, beta1, beta2, eps, decay;
    double scale;                 /* of the gradient, without control */
    long step;                    /* this one, from 1 */
    struct wk_span copy, control; /* see below */
    /* uint8, one for WK_GRAIN elements: 1: these do not decay; absent: all do. */
    struct wk_span spared;
};
struct wk_adadelta {
    double lr, rho, eps, scale;
    struct wk_span copy, control;
};
/* Both write the new values to `copy` too, rounded to its type; it may be absent. With a `control` the gradient's scale is its
 * SCALE, nothing changes when its SKIP is 1, and steps that were skipped do not count as steps. */

/* A training step, for devices that can record steps and launch them as a whole. */
struct wk_step {
    uint32_t number; /* of struct wk_rng */
    double lr;       /* of the update */
    long update;     /* the update's number, from 1 */
    int epoch;       /* from 0 */
    /* A step with the same key calls the same ops with the same arguments, except these. */
    bool repeats;
    uint64_t key[4]; /* everything that launches depend on */
};

/* How a control is set before an update: see backends/control.h. */
struct wk_control {
    double clip_norm; /* largest norm of the whole gradient; 0: any */
    bool scaled;      /* the loss was scaled: skip updates whose gradient is not finite */
    int grow_after;   /* steps after which the scale doubles */
};

struct wk_backend {
    const char *name, *summary;

    /* Fails with ENV if there is no such device or it cannot compute with that precision. */
    struct wk_dev *(*open)(const struct wk_dev_options *options, struct hg_err *err);
    void (*close)(struct wk_dev *dev);
    /* Lines about the device and its libraries, "key value\n", for doctor. */
    void (*describe)(struct wk_dev *dev, struct hg_buf *out);

    /* ---- Memory. Call wk_dev_alloc and wk_dev_free, which count it. ---- */
    void *(*alloc)(struct wk_dev *dev, size_t bytes); /* zeroed; NULL when there is not enough */
    void (*free)(struct wk_dev *dev, void *data);
    void (*upload)(struct wk_dev *dev, struct wk_span to, const void *host);
    void (*download)(struct wk_dev *dev, void *host, struct wk_span from);
    /* Wait for everything queued. Returns -1 with err set if anything failed since the last time. */
    int (*sync)(struct wk_dev *dev, struct hg_err *err);
    /* Bytes that are still available; 0: not known. */
    size_t (*available)(struct wk_dev *dev);
    /* Bytes of workspace that ops need for these calls, and any smaller ones. Reads only threads, precision and working type of
     * the device, which may be one that only counts. */
    size_t (*workspace)(struct wk_dev *dev, const struct wk_calls *calls);
    /* Allocate them now, so that no op has to. Once, before the first op. */
    int (*reserve)(struct wk_dev *dev, const struct wk_calls *calls, struct hg_err *err);

    /* ---- Steps; NULL if ops run when they are called ---- */
    /* Before a step's ops. false: they have been launched already, do not call them. */
    bool (*step_begin)(struct wk_dev *dev, const struct wk_step *step);
    /* After them. true: they were only recorded, call them all once more (without begin and end). */
    bool (*step_end)(struct wk_dev *dev);
    /* A place in the order of the device's work. */
    void (*mark)(struct wk_dev *dev, enum wk_mark what);
    /* Laps from mark to mark that have ended since the last call, oldest first; returns how many. Waits if the host is far ahead. */
    int (*times)(struct wk_dev *dev, struct wk_lap *laps, int most);

    /* A second row of work, or NULL (both): ops called between aside(true) and aside(false) run behind all that were called before, beside those
     * that follow; after `join` they are done for all that is called then. They need no workspace. aside(true) may say no: then there is none
     * now. */
    bool (*aside)(struct wk_dev *dev, bool on);
    void (*join)(struct wk_dev *dev);

    /* Elements of the state that lstm_forward leaves for lstm_backward. */
    size_t (*lstm_state)(struct wk_dev *dev, const struct wk_lstm *s);
    /* Bytes of dropout's mask that attention_forward leaves for attention_backward, for so many rows of sequences of at most `longest`
     * rows. NULL: backward draws it once more. */
    size_t (*attention_mask)(const struct wk_attention *a, int rows, int longest);

    /* ---- Ops: ops.def has them with their contracts. Of an open device only: dev->backend ---- */
#define OP(name, params, ...) void(*name) params;
#include "backends/ops.def"
};

/* All backends of this build, NULL-terminated. */
extern const struct wk_backend *const wk_backends[];

/* The backend of that name; NULL with err set: INPUT if the name is unknown, ENV if this build
 * lacks it. */
const struct wk_backend *wk_backend_get(const char *name, struct hg_err *err);

/* Rows of a batch of token sequences that needs at least `rows`: on a device that works best with few different numbers of them, rounded up to
 * a multiple of a power of two, the largest that adds at most about a thirtieth (and 64 for small ones); else the same number. */
int wk_dev_rows(const struct wk_dev *dev, int rows);

/* n zeroed elements in *span. Returns 0, or -1 with err set (ENV) and the span absent. */
int wk_dev_alloc(struct wk_dev *dev, enum wk_mem mem, enum wk_type type, size_t n,
                 struct wk_span *span, struct hg_err *err);
/* WK_GRAIN, or 1 if addresses do not matter to the device. */
size_t wk_dev_grain(const struct wk_dev *dev);
/* The least multiple of grain (0: of 1) that is at least n. */
size_t wk_grains(size_t n, size_t grain);
/* Count so many bytes more (or fewer) that the backend holds by itself. */
void wk_dev_book(struct wk_dev *dev, enum wk_mem mem, ptrdiff_t bytes);
/* Free what wk_dev_alloc gave, of the same class; makes the span absent. */
void wk_dev_free(struct wk_dev *dev, enum wk_mem mem, struct wk_span *span);

#endif
