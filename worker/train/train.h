/* SPDX-License-Identifier: Apache-2.0 */
/* One training from configuration to result. */
#ifndef WK_TRAIN_TRAIN_H
#define WK_TRAIN_TRAIN_H

#include "comm/comm.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "models/model.h"
#include "strategies/strategy.h"
#include "train/config.h"
#include "strategies/optim.h"
#include "train/places.h"
#include "train/qa.h"
#include "train/result.h"

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
    int32_t
        *scattered; /* (world + 1, batch) sample numbers of all ranks, then this one's; dp only */
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
    struct wk_saved *saved;          /* to go on from; NULL: none. See train/checkpoint.h */
};

/* Read the data, open device, model and strategy. The others must outlive it. Returns 0, or -1 with
 * err set; end it with wk_train_close either way. */
int wk_train_open(struct wk_train *t, const struct wk_config *config, struct wk_comm *comm,
                  int threads, struct wk_result *result, struct hg_err *err);
void wk_train_close(struct wk_train *t);

/* All epochs; times and losses go to the result. Stops with an error when a signal asked for it
 * (wk_train_signal). */
int wk_train_run(struct wk_train *t, struct hg_err *err);

/* Loss and accuracy on the test set, shared out over the ranks. A signal ends it between two passes, like the training: what is
 * trained must be in the checkpoint by then, where one is kept. */
int wk_train_eval(struct wk_train *t, struct hg_err *err);

/* What the ranks are and sent, into the result. Every rank calls it. */
int wk_train_account(struct wk_train *t, struct hg_err *err);

/* For predictions (train/predict.h): what a training would open, without a device. wk_train_plan reads the data set, or imagines
 * one as large as it may be; wk_train_count fills the bytes of activations, workspace and data that one rank would hold. End it
 * with wk_train_close. */
int wk_train_plan(struct wk_train *t, const struct wk_config *config, struct wk_comm *comm,
                  bool read_data, struct hg_err *err);
int wk_train_count(const struct wk_train *t, const char *backend, enum wk_precision precision,
                   int threads, double mem_bytes[WK_MEM_CLASSES], struct hg_err *err);

/* From a signal handler: the number of the signal that ends the training after the step it is in; 0
 * to go on. */
void wk_train_signal(int number);
/* That number. */
int wk_train_stopped(void);

/* The whole way; a failure is in err and not yet in the result. */
int wk_train_all(const struct wk_config *config, struct wk_comm *comm, int threads,
                 struct wk_result *result, struct hg_err *err);

/* The same in one process with several devices, a thread each (dp); `threads` is a device's. */
int wk_train_devices(const struct wk_config *config, int devices, int threads,
                     struct wk_result *result, struct hg_err *err);

/* Whether the cell could train, as far as that shows without a device or other ranks: read its data set and judge all of it.
 * Returns 0, or -1 with err set as wk_train_all would. */
int wk_train_check(const struct wk_config *config, struct hg_err *err);

#endif
