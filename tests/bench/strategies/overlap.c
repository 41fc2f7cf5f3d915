/* SPDX-License-Identifier: Apache-2.0 */
/* How much of their communication strategies hide behind computing, over a link that is slow on purpose: two ranks are threads,
 * every collective sleeps as long as its ring bytes take. Prints a line a strategy: milliseconds a step in collectives, of these waited
 * for, hideable, and the part of the hideable that was hidden.
 *
 * Hideable is what has a layer's pass beside it (tests/worker/overlap.c says which that is): not the last bucket of ddp and deepspeed,
 * nor the values of the first units that the latter gathers after a step; of fsdp not the gathers of the root and of the first layer
 * before forward, nor that of the last layer before backward, nor the last reductions.
 *
 *   overlap MIB_PER_S [STEPS] */
#include <stdio.h>
#include <stdlib.h>

#include "../../worker/team.h"
#include "base/fs.h"
#include "train/loop.h"
#include "train/train.h"

enum { WORLD = 2, LAYERS = 8 };

struct bench {
    struct wk_config config;
    struct wk_result results[WORLD];
    double bytes_per_s, seconds, exposed_s, fixed_s; /* of rank 0's steps but the first */
    double train_s;
};

static void add_up(struct bench *b, const struct wk_comm *comm)
{
    for (size_t i = 0; i < comm->records.n; i++) {
        const struct wk_comm_record *r = &comm->records.items[i];

        if (r->plane != WK_PLANE_TRAIN || r->step == 0)
            continue;
        b->seconds += r->end_s - r->start_s;
        b->exposed_s += r->exposed_s;
        if (r->asked == r->claimed)
            b->fixed_s += r->end_s - r->start_s;
    }
}

static int work(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct bench *b = context;
    struct wk_train t;
    int rc = -1;

    if (wk_train_open(&t, &b->config, comm, 1, &b->results[comm->rank], err) == 0) {
        comm->link_bytes_per_s = b->bytes_per_s;
        comm->recording = true;
        rc = wk_train_run(&t, err);
        if (comm->rank == 0)
            add_up(b, comm);
    }
    wk_train_close(&t);
    return rc;
}

static void measure(const char *strategy, const char *options, double mib_per_s, int steps)
{
    char path[] = "/tmp/hpcgrid-bench-XXXXXX", text[600];
    struct hg_errs errs = HG_ERRS_INIT;
    struct bench b = { .bytes_per_s = mib_per_s * 1024 * 1024 };
    double hideable, n = steps - 1;

    snprintf(
        text, sizeof text,
        "{\"model\": \"bert-tiny\", \"hidden\": 128, \"layers\": %d, \"vocab_size\": 1000, \"positions\": 128, \"dataset\": \"synthetic\","
        " \"seq_len\": 128, \"lengths\": \"fixed\", \"batch_size\": 16, \"samples\": %d, \"steps\": %d, \"eval\": false,"
        " \"strategy\": \"%s\"%s}",
        LAYERS, 16 * WORLD * steps, steps, strategy, options);
    if (mkstemp(path) < 0 || hg_fs_replace(path, text, strlen(text), 0600, NULL) < 0 ||
        wk_config_load(path, &b.config, &errs) < 0) {
        fprintf(stderr, "%s\n", errs.n ? errs.items[0].text : path);
        exit(1);
    }
    remove(path);
    team_run(WORLD, work, &b);
    hideable = b.seconds - b.fixed_s;
    printf("%-17s %10.1f %10.1f %10.1f %10.1f %9.0f %%\n", strategy,
           1e3 * b.results[0].train_s / steps, 1e3 * b.seconds / n, 1e3 * b.exposed_s / n,
           1e3 * hideable / n, 100 * (b.seconds - b.exposed_s) / hideable);
    for (int i = 0; i < WORLD; i++)
        wk_result_done(&b.results[i]);
    wk_config_done(&b.config);
}

int main(int argc, char **argv)
{
    double mib_per_s = argc > 1 ? atof(argv[1]) : 200;
    int steps = argc > 2 ? atoi(argv[2]) : 12;

    setenv("HPCGRID_LOG", "warn", 0);
    printf("%d ranks, %g MiB/s, ms a step%10s %10s %10s %10s %11s\n", WORLD, mib_per_s, "", "", "",
           "", "");
    printf("%-17s %10s %10s %10s %10s %11s\n", "strategy", "step", "sent in", "exposed", "hideable",
           "hidden");
    measure("ddp", ", \"bucket_cap_mb\": 0.8, \"first_bucket_mb\": 0.8", mib_per_s, steps);
    measure("fsdp", "", mib_per_s, steps);
    measure("deepspeed", ", \"reduce_bucket\": 200000", mib_per_s, steps);
    measure("deepspeed_stage_3", "", mib_per_s, steps);
    return 0;
}
