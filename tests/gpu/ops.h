/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops.c: an op, its shapes, and how far a backend may be from the cpu backend in fp32. A case's function runs the op
 * once on the device of its run, and keeps the outputs; it is called with the reference device, and with the tested one. */
#ifndef HG_TESTS_GPU_OPS_H
#define HG_TESTS_GPU_OPS_H

#include "backends/backend.h"

#define OPS_SPANS_MAX 48
#define OPS_OUTPUTS_MAX 12
#define OPS_SHAPE 4         /* numbers of a shape */
#define OPS_SEQUENCES_MAX 8 /* of a packing */
#define OPS_FILL 3          /* rows behind the last sequence, on the tested device */

struct ops_output {
    const char *name;
    size_t n;
    float *values;
};

struct ops_run {
    struct wk_dev *dev;
    enum wk_type working; /* of activations on this device */
    enum wk_type rounded; /* what inputs are rounded to on both devices */
    bool cut;             /* inputs have only the 10 bits of fraction that products in tf32 read */
    bool tested;
    const char *dirty; /* an output with something in rows that only fill up */
    struct wk_span spans[OPS_SPANS_MAX];
    struct ops_output outputs[OPS_OUTPUTS_MAX];
    int n_spans, n_outputs;
};

struct ops_case {
    const char *name;
    void (*run)(struct ops_run *r, const int *shape);
    const int *shapes;            /* OPS_SHAPE numbers each; a first number below 0 ends them */
    double bounds[WK_PRECISIONS]; /* fp32, tf32, bf16, fp16 */
    const char *why;              /* what the bound comes from */
};

/* Each ended by one without a name. */
extern const struct ops_case ops_cases_rows[], ops_cases_tokens[], ops_cases_attention[];

/* Tensors of a run; they live as long as it. scale times noise in (-1, 1), plus shift; of type WK_REAL, or of the working type. */
struct wk_span ops_alloc(struct ops_run *r, enum wk_type type, size_t n); /* zeros */
struct wk_span ops_real(struct ops_run *r, size_t n, uint32_t what, float scale, float shift);
struct wk_span ops_work(struct ops_run *r, size_t n, uint32_t what, float scale, float shift);
struct wk_span ops_ints(struct ops_run *r, const int32_t *values, size_t n);
struct wk_span ops_bytes(struct ops_run *r, const uint8_t *values, size_t n);
float ops_noise(uint32_t what, size_t i);

/* Sequences of so many rows, of which so many are tokens; ended by one without a name. */
struct ops_lengths {
    const char *name;
    int sequences;
    int32_t rows[OPS_SEQUENCES_MAX], tokens[OPS_SEQUENCES_MAX];
};
extern const struct ops_lengths ops_lengths[];

/* The tested device gets OPS_FILL rows more, which belong to no sequence. */
struct ops_packing {
    struct wk_packing p;
    int rows; /* of the sequences */
};
struct ops_packing ops_pack(struct ops_run *r, const struct ops_lengths *l);
struct wk_span ops_rows(struct ops_run *r, const struct ops_packing *p, size_t cols, uint32_t what,
                        float scale);

/* Keep an output for comparison: all of it; the rows of a packing; the same when all other rows must be zeros. */
void ops_keep(struct ops_run *r, const char *name, struct wk_span s);
void ops_keep_rows(struct ops_run *r, const char *name, const struct ops_packing *p,
                   struct wk_span s);
void ops_keep_clean(struct ops_run *r, const char *name, const struct ops_packing *p,
                    struct wk_span s);

/* emulated.c or real.c: a backend that only this program has, or NULL; and a new order of its threads, where it has one. */
const struct wk_backend *ops_backend(const char *name);
void ops_shuffle(uint64_t seed);

#endif
