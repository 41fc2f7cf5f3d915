/* SPDX-License-Identifier: Apache-2.0 */
#include "data/batch.h"

int wk_resident_open(struct wk_resident *r, const struct wk_dataset *set,
                     const struct wk_part *part, struct wk_dev *dev, struct hg_err *err)
{
    size_t n = (size_t)part->n;

    *r = (struct wk_resident){
        .n = part->n, .width = set->width, .mean = set->mean, .std = set->std
    };
    if (wk_dev_alloc(dev, WK_MEM_DATA, WK_U8, n * (size_t)set->width, &r->values, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_DATA, WK_I32, n, &r->labels, err) < 0)
        return -1;
    dev->backend->upload(dev, r->values, part->values);
    dev->backend->upload(dev, r->labels, part->labels);
    return 0;
}

void wk_resident_close(struct wk_resident *r, struct wk_dev *dev)
{
    wk_dev_free(dev, WK_MEM_DATA, &r->values);
    wk_dev_free(dev, WK_MEM_DATA, &r->labels);
}

int wk_batch_open(struct wk_batch *b, int rows, int width, struct wk_dev *dev, struct hg_err *err)
{
    size_t n = (size_t)rows;

    *b = (struct wk_batch){ 0 };
    if (wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, dev->working, n * (size_t)width, &b->x, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_I32, n, &b->labels, err) < 0 ||
        wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_I32, n, &b->sample, err) < 0)
        return -1;
    return 0;
}

void wk_batch_close(struct wk_batch *b, struct wk_dev *dev)
{
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &b->x);
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &b->labels);
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &b->sample);
}

void wk_batch_gather(struct wk_batch *b, const struct wk_resident *r, const int32_t *ids, int rows,
                     struct wk_dev *dev)
{
    b->rows = rows;
    dev->backend->upload(dev, wk_span_part(b->sample, 0, (size_t)rows), ids);
    dev->backend->gather_u8(dev, b->x, r->values, b->sample, rows, r->width, r->mean, r->std);
    dev->backend->gather_i32(dev, b->labels, r->labels, b->sample, rows);
}
