/* SPDX-License-Identifier: Apache-2.0 */
#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

static int alloc(struct wk_span *span, int n, struct wk_dev *dev, struct hg_err *err)
{
    return wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_I32, (size_t)n, span, err);
}

int wk_token_batch_open(struct wk_token_batch *b, int rows, int tokens, struct wk_dev *dev,
                        struct hg_err *err)
{
    struct wk_batch *d = &b->batch;
    int32_t *at;

    *b = (struct wk_token_batch){ .rows_max = rows, .tokens_max = tokens };
    at = b->host = malloc((5 * (size_t)rows + 1 + 3 * (size_t)tokens) * sizeof *b->host);
    if (!at)
        return hg_err_oom(err);
    b->first = at;
    b->tokens = at += rows + 1;
    b->sample = at += rows;
    b->starts = at += rows;
    b->ends = at += rows;
    b->sequence = at += rows;
    b->ids = at += tokens;
    b->types = at + tokens;
    if (alloc(&d->packing.first, rows + 1, dev, err) < 0 ||
        alloc(&d->packing.tokens, rows, dev, err) < 0 || alloc(&d->sample, rows, dev, err) < 0 ||
        alloc(&d->starts, rows, dev, err) < 0 || alloc(&d->ends, rows, dev, err) < 0 ||
        alloc(&d->packing.sequence, tokens, dev, err) < 0 || alloc(&d->ids, tokens, dev, err) < 0 ||
        alloc(&d->types, tokens, dev, err) < 0)
        return -1;
    d->packing.sample = d->sample;
    return 0;
}

void wk_token_batch_close(struct wk_token_batch *b, struct wk_dev *dev)
{
    struct wk_batch *d = &b->batch;
    struct wk_span *all[] = { &d->packing.first, &d->packing.tokens, &d->packing.sequence,
                              &d->sample,        &d->starts,         &d->ends,
                              &d->ids,           &d->types };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        wk_dev_free(dev, WK_MEM_ACTIVATIONS, all[i]);
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

void wk_token_batch_next(struct wk_token_batch *b, int n, int start, int end, int32_t sample,
                         int32_t **ids, int32_t **types)
{
    struct wk_packing *p = &b->batch.packing;
    int s = p->sequences++, at = p->rows, rows = b->pad_to > n ? b->pad_to : n;

    b->tokens[s] = n;
    b->sample[s] = sample;
    b->starts[s] = start;
    b->ends[s] = end;
    for (int i = 0; i < rows; i++)
        b->sequence[at + i] = s;
    memset(b->ids + at + n, 0, (size_t)(rows - n) * sizeof *b->ids);
    memset(b->types + at + n, 0, (size_t)(rows - n) * sizeof *b->types);
    *ids = b->ids + at;
    *types = b->types + at;
    p->rows += rows;
    p->longest = rows > p->longest ? rows : p->longest;
    b->first[s + 1] = p->rows;
    b->batch.rows = p->sequences;
}

static void send(struct wk_span to, const int32_t *host, int n, struct wk_dev *dev)
{
    dev->backend->upload(dev, wk_span_part(to, 0, (size_t)n), host);
}

void wk_token_batch_end(struct wk_token_batch *b, struct wk_dev *dev)
{
    const struct wk_batch *d = &b->batch;
    int n = d->packing.sequences, rows = d->packing.rows;

    send(d->packing.first, b->first, n + 1, dev);
    send(d->packing.tokens, b->tokens, n, dev);
    send(d->packing.sequence, b->sequence, rows, dev);
    send(d->sample, b->sample, n, dev);
    send(d->starts, b->starts, n, dev);
    send(d->ends, b->ends, n, dev);
    send(d->ids, b->ids, rows, dev);
    send(d->types, b->types, rows, dev);
}

void wk_token_batch_gather(struct wk_token_batch *b, const struct wk_features *f,
                           const int32_t *ids, int rows, int pad_to, struct wk_dev *dev)
{
    wk_token_batch_begin(b, pad_to);
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
