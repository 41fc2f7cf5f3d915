/* SPDX-License-Identifier: Apache-2.0 */
#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Staging memory and the device's are laid out alike, so that one transfer sends all. */
static int32_t *part(struct wk_token_batch *b, size_t *at, int n, struct wk_span *span)
{
    int32_t *host = b->host + *at;

    *span = wk_span_part(b->device, *at, (size_t)n);
    *at += (size_t)n;
    return host;
}

int wk_token_batch_open(struct wk_token_batch *b, int rows, int tokens, struct wk_dev *dev,
                        struct hg_err *err)
{
    struct wk_batch *d = &b->batch;
    size_t n, at = 0;

    tokens = wk_dev_rows(dev, tokens);
    n = 5 * (size_t)rows + 1 + 3 * (size_t)tokens;
    *b = (struct wk_token_batch){ .rows_max = rows, .tokens_max = tokens };
    b->host = hg_alloc_zeroed(n, sizeof *b->host);
    if (wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_I32, n, &b->device, err) < 0)
        return -1;
    b->first = part(b, &at, rows + 1, &d->packing.first);
    b->tokens = part(b, &at, rows, &d->packing.tokens);
    b->sample = part(b, &at, rows, &d->sample);
    b->starts = part(b, &at, rows, &d->starts);
    b->ends = part(b, &at, rows, &d->ends);
    b->sequence = part(b, &at, tokens, &d->packing.sequence);
    b->ids = part(b, &at, tokens, &d->ids);
    b->types = part(b, &at, tokens, &d->types);
    d->packing.sample = d->sample;
    return 0;
}

void wk_token_batch_close(struct wk_token_batch *b, struct wk_dev *dev)
{
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &b->device);
    free(b->host);
    *b = (struct wk_token_batch){ 0 };
}

void wk_token_batch_begin(struct wk_token_batch *b, int pad_to)
{
    struct wk_packing *p = &b->batch.packing;

    b->pad_to = pad_to;
    b->batch.rows = 0;
    p->sequences = p->rows = p->longest = 0;
    b->first[0] = 0;
}

/* What is known of a sequence besides its tokens. Returns its rows. */
static int place(struct wk_token_batch *b, int n, int start, int end, int32_t sample)
{
    struct wk_packing *p = &b->batch.packing;
    int s = p->sequences++, rows = b->pad_to > n ? b->pad_to : n;

    b->tokens[s] = n;
    b->sample[s] = sample;
    b->starts[s] = start;
    b->ends[s] = end;
    p->rows += rows;
    p->longest = rows > p->longest ? rows : p->longest;
    b->first[s + 1] = p->rows;
    b->batch.rows = p->sequences;
    return rows;
}

void wk_token_batch_next(struct wk_token_batch *b, int n, int start, int end, int32_t sample,
                         int32_t **ids, int32_t **types)
{
    int s = b->batch.packing.sequences, at = b->batch.packing.rows;
    int rows = place(b, n, start, end, sample);

    for (int i = 0; i < rows; i++)
        b->sequence[at + i] = s;
    memset(b->ids + at + n, 0, (size_t)(rows - n) * sizeof *b->ids);
    memset(b->types + at + n, 0, (size_t)(rows - n) * sizeof *b->types);
    *ids = b->ids + at;
    *types = b->types + at;
}

/* Rows of no sequence up to a number that the device has seen before. */
static void round_up(struct wk_token_batch *b, const struct wk_dev *dev)
{
    struct wk_packing *p = &b->batch.packing;

    p->rows = wk_dev_rows(dev, p->rows);
    p->longest = wk_dev_rows(dev, p->longest);
}

void wk_token_batch_end(struct wk_token_batch *b, struct wk_dev *dev)
{
    int real = b->batch.packing.rows;

    round_up(b, dev);
    for (int i = real; i < b->batch.packing.rows; i++) {
        b->sequence[i] = -1;
        b->ids[i] = b->types[i] = 0;
    }
    dev->backend->upload(dev, b->device, b->host);
}

/* Only what is known of sequences is sent; it lies before what is known of rows. */
static void gather_there(struct wk_token_batch *b, const struct wk_features *f,
                         const struct wk_token_source *from, const int32_t *ids, int rows,
                         struct wk_dev *dev)
{
    struct wk_batch *d = &b->batch;

    for (int i = 0; i < rows; i++) {
        size_t at = (size_t)ids[i];
        const struct wk_feature *item = &f->items[at];

        place(b, (int)wk_feature_length(f, at), (int)item->start, (int)item->end, ids[i]);
    }
    round_up(b, dev);
    dev->backend->upload(dev, wk_span_part(b->device, 0, (size_t)(b->sequence - b->host)), b->host);
    dev->backend->gather_tokens(dev, d->ids, d->types, &d->packing, from);
}

void wk_token_batch_gather(struct wk_token_batch *b, const struct wk_features *f,
                           const struct wk_token_source *from, const int32_t *ids, int rows,
                           int pad_to, struct wk_dev *dev)
{
    wk_token_batch_begin(b, pad_to);
    if (from) {
        gather_there(b, f, from, ids, rows, dev);
        return;
    }
    for (int i = 0; i < rows; i++) {
        size_t at = (size_t)ids[i];
        const struct wk_feature *item = &f->items[at];
        int32_t *tokens, *types;

        wk_token_batch_next(b, (int)wk_feature_length(f, at), (int)item->start, (int)item->end,
                            ids[i], &tokens, &types);
        wk_feature_write(f, at, tokens, types);
    }
    wk_token_batch_end(b, dev);
}

/* ---- All sequences on the device ---- */

static size_t tokens_of(const struct wk_features *f)
{
    size_t n = f->items ? 0 : f->n_context;

    for (size_t i = 0; f->items && i < f->n; i++)
        n += wk_feature_length(f, i);
    return n;
}

/* Write and send all; types tell only where the second part begins. */
static int send_all(struct wk_token_source *s, const struct wk_features *f, struct wk_dev *dev,
                    struct hg_err *err)
{
    int32_t *tokens = hg_alloc((s->tokens.n + f->max_length + 1) * sizeof *tokens);
    int32_t *at = hg_alloc((f->n + 1) * sizeof *at), *second = hg_alloc(f->n * sizeof *second);
    int32_t *types = hg_alloc((f->max_length + 1) * sizeof *types);
    int rc;

    at[0] = 0;
    for (size_t i = 0; i < f->n; i++) {
        wk_feature_write(f, i, tokens + at[i], types);
        at[i + 1] = at[i] + (int32_t)wk_feature_length(f, i);
        second[i] = (int32_t)wk_feature_context(f, i);
    }
    dev->backend->upload(dev, s->tokens, tokens);
    dev->backend->upload(dev, s->at, at);
    dev->backend->upload(dev, s->second, second);
    rc = dev->backend->sync(dev, err);
    free(tokens);
    free(at);
    free(second);
    free(types);
    return rc;
}

int wk_token_source_open(struct wk_token_source *s, const struct wk_features *f, struct wk_dev *dev,
                         struct hg_err *err)
{
    size_t n = tokens_of(f), sequences = f->items ? f->n : f->n_questions;

    *s = (struct wk_token_source){ 0 };
    if (n > INT32_MAX)
        return hg_err_set(err, HG_E_INPUT, "%zu tokens are more than can be kept on %s", n,
                          dev->name);
    if (wk_dev_alloc(dev, WK_MEM_DATA, WK_I32, n, &s->tokens, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_DATA, WK_I32, sequences + 1, &s->at, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_DATA, WK_I32, sequences, &s->second, err) < 0)
        return -1;
    return dev->counts_only ? 0 : send_all(s, f, dev, err);
}

void wk_token_source_close(struct wk_token_source *s, struct wk_dev *dev)
{
    wk_dev_free(dev, WK_MEM_DATA, &s->tokens);
    wk_dev_free(dev, WK_MEM_DATA, &s->at);
    wk_dev_free(dev, WK_MEM_DATA, &s->second);
}

long long wk_tokens_most(const struct wk_features *f, int rows, int pad_to)
{
    size_t counts[WK_FEATURE_LENGTH_MAX + 1] = { 0 };
    long long most = 0;

    if (pad_to)
        return (long long)rows * pad_to;
    for (size_t i = 0; i < f->n; i++)
        counts[wk_feature_length(f, i)]++;
    for (size_t length = WK_FEATURE_LENGTH_MAX; length > 0 && rows > 0; length--) {
        size_t n = counts[length] < (size_t)rows ? counts[length] : (size_t)rows;

        most += (long long)(n * length);
        rows -= (int)n;
    }
    return most;
}
