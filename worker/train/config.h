/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell requests, decoded from its JSON by the table contract/worker_params.def. */
#ifndef WK_TRAIN_CONFIG_H
#define WK_TRAIN_CONFIG_H

#include <stdbool.h>

#include "base/json.h"
#include "strategies/kind.h"

/* One field per parameter that is built; the file says what each is. Strings are owned. */
struct wk_config {
    char *model, *dataset, *data, *strategy, *backend, *precision, *optimizer;
    long long batch_size, epochs, steps, samples, test_samples, seed, test_batch;
    double lr, gamma, rho, eps;
    bool dropout, eval;
    /* Options of strategies; what the cell does not give is as its variant says. */
    char *variant, *fsdp_wrap, *zero_reduce;
    double bucket_cap_mb, first_bucket_mb;
    bool balance, sync_batchnorm, bucket_view, bf16_gradients, reshard_after_forward,
        backward_prefetch;
    long long dp_devices;
    long long reduce_bucket, persistence_threshold, max_live, max_reuse_distance, prefetch_elems;
    struct wk_strategy_options options; /* all of them, as the strategy takes them */
    long long hidden, layers, heads, intermediate, vocab_size, positions; /* 0: the model's */
    long long accumulate, seq_len, doc_stride, checkpoint_every, length_min;
    double beta1, beta2, weight_decay, warmup, clip_norm, comm_timeout, null_threshold;
    double length_mean, length_sd;
    bool stop_on_nan, skip_bad_answers, tensorboard, trace, checkpoint_shards, deterministic_reduce;
    long long trace_skip, trace_wait, trace_warmup, trace_active, trace_repeat;
    char *schedule, *decay, *padding, *windows, *labels, *lengths, *gelu;
    char *init, *vocab, *cache, *checkpoint, *predictions; /* NULL: none */
    /* Where the cell runs: 0 if it does not say. Compared with what was started. */
    long long nodes, tasks_per_node, cpus_per_task;
    json_t *given; /* the document, for the result */
    /* Of files beside the result; lent by whoever loads it; NULL: the working folder. */
    const char *folder;
};

/* Decode a cell file ("-": standard input). Every problem is added to errs with its place. Returns
 * 0 or -1; the config must be released with wk_config_done either way. */
int wk_config_load(const char *path, struct wk_config *config, struct hg_errs *errs);
/* The same for a cell in memory. */
int wk_config_decode(const json_t *cell, struct wk_config *config, struct hg_errs *errs);
void wk_config_done(struct wk_config *config);

/* The parameters with the values that are in force, whether the cell gives them or not: two cells with the same values request the same. Texts
 * that are not set are absent, numbers that the model or the data set defines are 0. A new reference. */
json_t *wk_config_encode(const struct wk_config *config);

/* Devices that a process drives: dp's, else 1. */
int wk_config_devices(const struct wk_config *config);

/* Append the names of the parameters by section; name and meaning of those of one section, or of "all". Returns 0, or -1 with err set
 * (USAGE) when there is no such section. */
void wk_config_overview(struct hg_buf *out);
int wk_config_help(const char *section, struct hg_buf *out, struct hg_err *err);

#endif
