/* SPDX-License-Identifier: Apache-2.0 */
/* A data set on the device as a whole; batches are gathered there. */
#ifndef WK_DATA_BATCH_H
#define WK_DATA_BATCH_H

#include "data/dataset.h"
#include "models/model.h"

/* A part on the device. */
struct wk_resident {
    int n, width;
    double mean, std;
    struct wk_span values, labels;
};
int wk_resident_open(struct wk_resident *r, const struct wk_dataset *set,
                     const struct wk_part *part, struct wk_dev *dev, struct hg_err *err);
void wk_resident_close(struct wk_resident *r, struct wk_dev *dev);

/* A batch with room for so many rows; wk_batch_gather fills it with the samples that host array
 * `ids` names. */
int wk_batch_open(struct wk_batch *b, int rows, int width, struct wk_dev *dev, struct hg_err *err);
void wk_batch_close(struct wk_batch *b, struct wk_dev *dev);
void wk_batch_gather(struct wk_batch *b, const struct wk_resident *r, const int32_t *ids, int rows,
                     struct wk_dev *dev);

#endif
