/* SPDX-License-Identifier: Apache-2.0 */
/* What a training is made of. */
#ifndef WK_TRAIN_TRAINING_H
#define WK_TRAIN_TRAINING_H

#include "comm/comm.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "models/model.h"
#include "strategies/strategy.h"
#include "train/config.h"
#include "train/qa.h"
#include "train/result.h"
#include "data/batch.h"

/* Everything that a training holds; also the test's way in. */
struct wk_train {
    const struct wk_config *config;
    struct wk_comm *comm; /* borrowed */
    struct wk_result *result;
    struct wk_dev *dev;
    struct wk_dataset *set;
    const struct wk_model_kind *kind;
    struct wk_model *model;
    struct wk_optim optim;
    struct wk_strategy *strategy;
    struct wk_sampler sampler;
    /* (world + 1, batch) sample numbers of all ranks, then this one's; dp only. */
    int32_t *scattered;
    struct wk_resident train, test;
    struct wk_batch batch, eval_batch;
    struct wk_qa qa; /* instead of set, train, test and batches, when the model reads tokens */
    struct wk_span losses;         /* one a pass of an epoch */
    struct wk_span loss;           /* (1) of the pass that runs */
    long epoch_steps, total_steps; /* optimizer steps of an epoch, of the training */
    long steps_done;
    int collected;           /* of this epoch's steps, those whose losses are in the result */
    double marked_s, step_s; /* last mark of a device without its own; of the step so far */
    double before_s, epoch_before_s; /* trained before a checkpoint, in this epoch before it */
    struct wk_observer *observer;    /* traces and curves; see train/observe.h */
    char *checkpoint;                /* file of the training state; NULL: none is kept */
    long saves;                      /* number of the checkpoint that is there; 0: none */
    struct {
        long next, steps; /* when ranks ask each other whether to stop; steps since the last time */
        double at_s;
    } agree;
    struct wk_saved *saved; /* to resume from; NULL: none. See train/checkpoint.h */
};

#endif
