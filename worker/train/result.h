/* SPDX-License-Identifier: Apache-2.0 */
/* What a training gives back, and its JSON: the part of a result that only the workload knows. */
#ifndef WK_TRAIN_RESULT_H
#define WK_TRAIN_RESULT_H

#include <jansson.h>
#include <stdbool.h>

#include "comm/comm.h"
#include "strategies/kind.h"
#include "train/places.h"

/* One rank, as gathered to all: no pointers. */
struct wk_rank_info {
    char host[64], device[128], pci[32], uuid[64]; /* the last two are "" but for GPUs */
    int rank, pid, threads;
    uint64_t mem_bytes[WK_MEM_CLASSES]; /* peaks */
    double comm_s;                      /* training plane */
};

struct wk_result {
    /* How it went. */
    struct hg_err error; /* set: failed */
    int error_rank;
    char error_host[64];
    const struct wk_verdict *verdict; /* the error is that ranks are missing; borrowed */

    /* Where the ranks are, known before training begins; read by the watching thread. */
    struct wk_place *_Atomic places;
    int n_places;

    /* What ran; empty until it is known. */
    int world, threads, batch_rows, accumulate;
    char strategy[32], model[32], backend[16], precision[8], comm_name[16];
    char dataset[64], dataset_hash[33];
    long long epochs, seed;
    int train_samples, test_samples,
        padded_samples; /* a rank repeats samples so that all have equally many */
    size_t params;
    bool dropout;

    /* Times in seconds; losses are means over the global batch. */
    double start_mono_s, init_s, train_s, eval_s;
    double noise_s; /* by which train_s may be off */
    double data_s;  /* of train_s: batches were made and brought to the device meanwhile */
    struct {
        double *items;
        size_t n, cap;
    } epoch_s, epoch_loss, step_s, step_loss;
    double trained_samples; /* real ones: repetitions are not counted */
    bool diverged;          /* a loss became NaN or infinite */

    bool evaluated;
    double accuracy, eval_loss;
    bool answers; /* of question answering: exact and f1 (percent) instead of accuracy */
    double exact, f1;
    int questions;
    json_t *comparable; /* more members of it; may be NULL */
    json_t *env;        /* versions of what it ran with; NULL: not known yet */
    json_t *profile;    /* seconds by op, of the steps that were recorded; NULL: none */
    char trace[32];     /* file name of the trace, next to the result; "": none */

    /* Checkpoints. */
    bool stopped_with_checkpoint; /* run it again to resume */
    int resumed;                  /* times that this training was resumed from one */
    long resumed_step;            /* the last time after so many steps */

    struct wk_comm_count counts[WK_PLANES][WK_COLLS];
    struct wk_expected expected;
    bool has_expected;
    struct wk_rank_info *ranks; /* world of them */
};

void wk_result_done(struct wk_result *r);

/* A new reference. */
json_t *wk_result_encode(const struct wk_result *r);

/* Write it to path as a whole. A failure gives way to what another rank of this training wrote before it. */
int wk_result_save(const struct wk_result *r, const char *path, int rank, struct hg_err *err);

/* Append a summary for people, a few lines. */
void wk_result_format(const struct wk_result *r, struct hg_buf *out);

#endif
