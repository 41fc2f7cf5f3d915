/* SPDX-License-Identifier: Apache-2.0 */
/* Mixed precision on the CPU: every op reads its 16-bit operands into reals, computes as ever, and rounds what it wrote. That is slow,
 * and it is what a GPU does (16-bit operands, sums in fp32, one rounding at the end), so trainings in bf16 and fp16 can be rehearsed
 * and tested on any machine. */
#include "backends/cpu/half.h"

#include "backends/cpu/device.h"
#include "base/alloc.h"

/* The operands of one call that are not reals. */
struct call {
    struct wk_dev *dev;
    struct {
        struct wk_span half, real;
        bool written, own;
    } items[20];
    int n;
};

#define LINE 16 /* operands begin at multiples of so many reals */

/* n reals of the reserved memory, or of their own if it is full: one op at a time takes from it, and returns all at its end. */
static struct wk_span take(struct call *k, size_t n, bool *own)
{
    struct cpu *c = cpu_of(k->dev);
    size_t lines = (n + LINE - 1) / LINE * LINE;
    struct wk_span real;

    *own = c->operands.n - c->operands_taken < lines;
    if (*own) {
        if (wk_dev_alloc(k->dev, WK_MEM_WORKSPACE, WK_REAL, n, &real, NULL) < 0)
            hg_alloc_failed();
        return real;
    }
    real = wk_span_part(c->operands, c->operands_taken, n);
    c->operands_taken += lines;
    return real;
}

/* The operand as reals. Elements of an output that an op does not write keep their bits: those after the last row, or all. */
static struct wk_span use(struct call *k, struct wk_span s, bool written)
{
    struct wk_span real;
    bool own;

    if (!s.data || (s.type != WK_BF16 && s.type != WK_F16))
        return s;
    real = take(k, s.n, &own);
    cpu_of(k->dev)->plain->convert(k->dev, real, s);
    k->items[k->n].half = s;
    k->items[k->n].real = real;
    k->items[k->n].own = own;
    k->items[k->n++].written = written;
    return real;
}

static void end(struct call *k)
{
    for (int i = 0; i < k->n; i++) {
        if (k->items[i].written)
            cpu_of(k->dev)->plain->convert(k->dev, k->items[i].half, k->items[i].real);
        if (k->items[i].own)
            wk_dev_free(k->dev, WK_MEM_WORKSPACE, &k->items[i].real);
    }
    cpu_of(k->dev)->operands_taken = 0;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Each line is an op, or an upper bound of several. */
size_t wk_cpu_operands(const struct wk_calls *m)
{
    size_t rows = (size_t)m->rows, narrow = rows * (size_t)m->cols, wide = rows * (size_t)m->wide;
    size_t in = (size_t)m->lstm.in, hidden = (size_t)m->lstm.hidden;
    size_t n = 3 * wide; /* backward of GELU and ReLU */

    n = most(n, 2 * wide + narrow + (size_t)m->cols * (size_t)m->wide); /* of dense layers */
    n = most(n, 4 * narrow + 3 * (size_t)m->cols);                      /* norms */
    if (m->heads)
        n = most(n, 7 * narrow + wide); /* backward of attention */
    if (m->embeddings)
        n = most(n, narrow + (size_t)m->embeddings * (size_t)m->cols);
    if (m->lstm.batch)
        n = most(n, rows * ((size_t)m->lstm.steps * in + hidden) + 4 * hidden * (in + hidden + 2));
    return n + sizeof(((struct call *)0)->items) / sizeof *((struct call *)0)->items * LINE;
}

/* Each op with its 16-bit operands as reals. */
#define IN(s) s = use(&k, s, false);
#define OUT(s) s = use(&k, s, true);
#define INS(s) \
    s = &(struct wk_qkv){ use(&k, s->q, false), use(&k, s->k, false), use(&k, s->v, false) };
#define OUTS(s) \
    s = &(struct wk_qkv){ use(&k, s->q, true), use(&k, s->k, true), use(&k, s->v, true) };
#define WEIGHTS(s)                                                                   \
    s = &(struct wk_lstm_weights){ use(&k, s->w_ih, false), use(&k, s->w_hh, false), \
                                   use(&k, s->b_ih, false), use(&k, s->b_hh, false) };
#define FUSED_OP(...)
#define OP(name, params, args, ...)     \
    static void half_##name params      \
    {                                   \
        struct call k = { .dev = dev }; \
                                        \
        __VA_ARGS__                     \
        cpu_of(dev)->plain->name args;  \
        end(&k);                        \
    }
#include "backends/ops.def"

void wk_cpu_half_ops(struct wk_backend *table)
{
#define OP(name, ...) table->name = half_##name;
#define FUSED_OP(...)
#include "backends/ops.def"
}
