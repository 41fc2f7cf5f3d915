/* SPDX-License-Identifier: Apache-2.0 */
/* Which collectives have computing beside them, and which cannot: counted in layers' passes between the moment that the rank started
 * one and the moment that it came for the result, so that it does not depend on how busy the machine is. How long they then take is
 * bench/strategies. */
#include "cells.h"
#include "team.h"

enum { WORLD = 2, LAYERS = 4, STEPS = 4 };
enum {
    EMBEDDINGS = 5,
    LAYER = 16,
    HEAD = 2,
    ALL = EMBEDDINGS + LAYERS * LAYER + HEAD
}; /* parameters */

/* Collectives of a step with nothing beside them. The first units' values are needed at once; behind the last layer's forward, and
 * behind the first layer's backward, there is too little work to count. */
static const struct how {
    const char *strategy, *options;
    int gathers, reductions;
} hows[] = {
    /* a bucket for each parameter */
    { "ddp", ", \"bucket_cap_mb\": 0, \"first_bucket_mb\": 0", 0, LAYER + EMBEDDINGS },
    { "ddp", "", 0, 1 },
    /* the root and the first layer; the last layer once more */
    { "fsdp", "", 3, 2 },
    { "fsdp", ", \"reshard_after_forward\": false", 2, 2 },
    /* a gather that is needed at once waits for the reduction before it, too */
    { "fsdp", ", \"backward_prefetch\": false", 2 + LAYERS, LAYERS + 1 },
    { "fsdp", ", \"fsdp_wrap\": \"model\"", 1, 1 },
    { "deepspeed_stage_1", ", \"reduce_bucket\": 1", EMBEDDINGS + LAYER, LAYER + EMBEDDINGS },
    { "deepspeed", ", \"reduce_bucket\": 1", EMBEDDINGS + LAYER, LAYER + EMBEDDINGS },
    { "deepspeed", "", 1, 1 },
    /* and the head, which was let go a moment ago */
    { "deepspeed_stage_3", "", EMBEDDINGS + LAYER + HEAD + LAYER, LAYER + EMBEDDINGS },
    { "deepspeed_stage_3", ", \"prefetch_elems\": 0", 2 * ALL, ALL },
    /* what never goes away is gathered after the step */
    { "deepspeed_stage_3", ", \"persistence_threshold\": 1000000", EMBEDDINGS + LAYER,
      LAYER + EMBEDDINGS },
};

struct run {
    struct wk_config config;
    struct wk_result results[WORLD];
    int alone[WK_COLLS]; /* of rank 0, in all steps but the first and the last */
};

static int work(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct run *run = context;
    struct wk_train t;
    int rc = -1;

    if (wk_train_open(&t, &run->config, comm, 1, &run->results[comm->rank], err) == 0) {
        comm->recording = true;
        rc = wk_train_run(&t, err);
    }
    for (size_t i = 0; comm->rank == 0 && i < comm->records.n; i++) {
        const struct wk_comm_record *r = &comm->records.items[i];

        if (r->plane == WK_PLANE_TRAIN && r->step > 0 && r->step < STEPS - 1)
            run->alone[r->coll] += r->asked == r->claimed;
    }
    wk_train_close(&t);
    return rc;
}

static void test_what_can_be_hidden_has_work_beside_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(hows); i++) {
        struct run run = { 0 };
        char text[600];
        int gathers, reductions;

        snprintf(
            text, sizeof text,
            "{\"model\": \"bert-tiny\", \"hidden\": 16, \"heads\": 2, \"layers\": %d, \"intermediate\": 32, \"vocab_size\": 200,"
            " \"positions\": 32, \"dataset\": \"synthetic\", \"seq_len\": 24, \"batch_size\": 2, \"samples\": %d, \"steps\": %d,"
            " \"eval\": false, \"strategy\": \"%s\"%s}",
            LAYERS, 2 * WORLD * STEPS, STEPS, hows[i].strategy, hows[i].options);
        cell_load(&run.config, text);
        team_run(WORLD, work, &run);
        gathers = run.alone[WK_COLL_ALL_GATHER];
        reductions = run.alone[WK_COLL_ALL_REDUCE] + run.alone[WK_COLL_REDUCE_SCATTER];
        if (gathers != hows[i].gathers * (STEPS - 2) ||
            reductions != hows[i].reductions * (STEPS - 2))
            fail_msg(
                "%s%s: %d gathers and %d reductions alone in %d steps, expected %d and %d a step",
                hows[i].strategy, hows[i].options, gathers, reductions, STEPS - 2, hows[i].gathers,
                hows[i].reductions);
        for (int rank = 0; rank < WORLD; rank++)
            wk_result_done(&run.results[rank]);
        wk_config_done(&run.config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_can_be_hidden_has_work_beside_it),
    };

    setenv("HPCGRID_LOG", "warn", 1);
    return cmocka_run_group_tests(tests, cell_make_file, cell_remove_file);
}
