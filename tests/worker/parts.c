/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in parts: written by 1 to 4 ranks, which are threads of this process, and gone on from by 1 to 4, in other strategies too;
 * killed while they are written; damaged in every way. */
#include "cells.h"
#include "team.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/checkpoint.h"

enum { STEPS = 6, HALF = 3, BATCH = 12 /* of all ranks */, RANKS_MAX = 4 };

static char folder[] = "/tmp/hpcgrid-test-XXXXXX";

/* Strategies that cut the model in different places. */
static const struct how {
    const char *strategy, *options;
} hows[] = {
    { "fsdp", "" },
    { "fsdp", ", \"fsdp_wrap\": \"model\"" },
    { "deepspeed_stage_1", ", \"reduce_bucket\": 900" },
    { "deepspeed", ", \"variant\": \"framework\", \"reduce_bucket\": 2500" },
    { "deepspeed_stage_3", ", \"persistence_threshold\": 40" },
};

#define SHARDS ", \"checkpoint_shards\": true"

/* One training of some ranks: its configuration and what came of it. */
struct training {
    struct wk_config config;
    struct wk_result results[RANKS_MAX];
    int steps;             /* to make; the last of them is saved */
    bool refused;          /* it must not begin */
    struct hg_err why;     /* rank 0's then */
    _Atomic size_t n_held; /* bytes that devices held when it was refused */
};

static void configure(struct training *t, int world, const struct how *how, const char *more)
{
    struct hg_errs errs = HG_ERRS_INIT;
    char *path = hg_fs_join(folder, "cell.json"), text[1000];

    *t = (struct training){ .steps = HALF };
    snprintf(
        text, sizeof text,
        "{\"model\": \"bert-tiny\", \"hidden\": 16, \"heads\": 2, \"layers\": 2, \"intermediate\": 32, \"vocab_size\": 200, "
        "\"positions\": 32, \"dataset\": \"synthetic\", \"seq_len\": 24, \"lr\": 1e-3, \"eval\": false, \"schedule\": \"constant\", "
        "\"samples\": %d, \"strategy\": \"%s\", \"batch_size\": %d%s%s}",
        STEPS * BATCH, how->strategy, BATCH / world, how->options, more);
    assert_int_equal(hg_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    if (wk_config_load(path, &t->config, &errs) < 0)
        fail_msg("%s", errs.items[0].text);
    free(path);
}

static void done(struct training *t)
{
    for (int i = 0; i < RANKS_MAX; i++)
        wk_result_done(&t->results[i]);
    wk_config_done(&t->config);
}

static void note_refusal(struct training *all, const struct wk_train *t, const struct hg_err *err)
{
    for (int i = 0; i < WK_MEM_CLASSES && t->dev; i++)
        all->n_held += t->dev->peak_bytes[i];
    if (t->comm->rank == 0)
        all->why = *err;
}

/* Some steps, from a checkpoint if there is one, and into one if the cell names it. */
static int work(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct training *all = context;
    struct wk_train t;
    int rc = wk_train_open(&t, &all->config, comm, 1, &all->results[comm->rank], err);

    if (all->refused) {
        note_refusal(all, &t, err);
        wk_train_close(&t);
        *err = (struct hg_err)HG_ERR_INIT;
        return 0;
    }
    if (rc == 0) {
        long total = t.total_steps;

        t.total_steps = t.steps_done + all->steps;
        rc = wk_train_run(&t, err);
        t.total_steps = total;
        t.collected = (int)t.steps_done; /* in the middle of an epoch */
        if (rc == 0 && t.checkpoint)
            rc = wk_checkpoint_save(&t, 0, 0, err);
    }
    wk_train_close(&t);
    return rc;
}

static void run(struct training *t, int world, const struct how *how, const char *more, int steps)
{
    configure(t, world, how, more);
    t->steps = steps;
    team_run(world, work, t);
}

/* `, "checkpoint": FOLDER/NAME` */
static const char *in_file(const char *name, const char *more)
{
    static char text[200];

    snprintf(text, sizeof text, ", \"checkpoint\": \"%s/%s\"%s", folder, name, more);
    return text;
}

static void remove_files(const char *name)
{
    DIR *d = opendir(folder);
    struct dirent *e;

    while ((e = readdir(d)))
        if (strncmp(e->d_name, name, strlen(name)) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static int count_files(const char *name)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    int n = 0;

    while ((e = readdir(d)))
        n += strncmp(e->d_name, name, strlen(name)) == 0;
    closedir(d);
    return n;
}

/* ---- Other numbers of ranks ---- */

/* The first half on n ranks, the second on m. */
static void run_halves(struct training *t, int n, const struct how *first, int m,
                       const struct how *second, const char *more)
{
    struct training half;

    remove_files("a.");
    run(&half, n, first, in_file("a.safetensors", more), HALF);
    done(&half);
    assert_int_equal(count_files("a."), *more ? 1 + n : 1);
    run(t, m, second, in_file("a.safetensors", more), HALF);
    assert_int_equal(count_files("a."), *more ? 1 + m : 1);
    assert_int_equal(t->results[0].step_loss.n, STEPS);
    assert_int_equal(t->results[0].resumed, 1);
}

static double apart(const struct training *a, const struct training *b)
{
    return losses_apart(&a->results[0], &b->results[0]);
}

/* Parts hold the same bits as a whole file does; on the same ranks it goes on as if nothing had been. */
static void test_any_ranks_go_on_from_the_parts_of_any_others(void **state)
{
    double worst = 0;

    (void)state;
    for (size_t k = 0; k < N_OF(hows); k++)
        for (int n = 1; n <= RANKS_MAX; n++) {
            struct training never;

            run(&never, n, &hows[k], "", STEPS);
            for (int m = 1; m <= RANKS_MAX; m++) {
                const struct how *next = &hows[m == n ? k : (k + 1) % N_OF(hows)];
                struct training parts, whole;

                run_halves(&parts, n, &hows[k], m, next, SHARDS);
                run_halves(&whole, n, &hows[k], m, next, "");
                if (apart(&parts, &whole) > 0 || (m == n && apart(&parts, &never) > 0))
                    fail_msg("%s%s on %d ranks, then %d: %g from a whole file, %g uninterrupted",
                             hows[k].strategy, hows[k].options, n, m, apart(&parts, &whole),
                             apart(&parts, &never));
                worst = fmax(worst, apart(&parts, &never));
                done(&parts);
                done(&whole);
            }
            done(&never);
        }
    print_message("losses on other ranks differ by %.2g\n", worst);
    assert_true(worst < PICK(1e-12, 1e-5));
}

static void test_a_strategy_that_shards_nothing_goes_on_from_parts(void **state)
{
    static const struct how ddp = { "ddp", "" }, single = { "single", "" };
    struct training first, t, never;

    (void)state;
    run(&never, 1, &single, "", STEPS);
    for (int m = 1; m <= 2; m++) {
        remove_files("b.");
        run(&first, 3, &hows[0], in_file("b.safetensors", SHARDS), HALF);
        run(&t, m, m == 1 ? &single : &ddp, in_file("b.safetensors", ""), HALF);
        assert_true(apart(&t, &never) < PICK(1e-12, 1e-5));
        assert_int_equal(count_files("b."), 1); /* whole again */
        done(&first);
        done(&t);
    }
    done(&never);
}

/* ---- Killed while it is written ---- */

static const struct wk_strategy_ops *real_ops;
static struct wk_strategy_ops killing_ops;
static atomic_int fetches;
static int last_fetch;

static int fetch_or_die(struct wk_strategy *s, int state, int param, wk_real *own,
                        struct hg_err *err)
{
    if (atomic_fetch_add(&fetches, 1) == last_fetch)
        raise(SIGKILL);
    return real_ops->fetch_own(s, state, param, own, err);
}

/* The whole training, with a checkpoint every second step. */
static int work_and_die(struct wk_comm *comm, void *context, struct hg_err *err)
{
    struct training *all = context;
    struct wk_train t;
    int rc = wk_train_open(&t, &all->config, comm, 1, &all->results[comm->rank], err);

    if (rc == 0) {
        t.strategy->ops = &killing_ops;
        rc = wk_train_run(&t, err);
        t.strategy->ops = real_ops;
    }
    wk_train_close(&t);
    return rc;
}

static int run_in_process(int world, int fetch)
{
    pid_t pid = fork();
    struct training t;
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        last_fetch = fetch;
        real_ops = wk_strategy_get(hows[0].strategy, world, NULL)->ops;
        killing_ops = *real_ops;
        killing_ops.fetch_own = fetch_or_die;
        configure(&t, world, &hows[0],
                  in_file("c.safetensors", SHARDS ", \"checkpoint_every\": 2"));
        team_run(world, work_and_die, &t);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Three ranks at the same time fetch some 125 pieces of parameters and slots for each of two checkpoints: some have their part on disk when
 * another dies. */
static void test_a_death_at_any_moment_leaves_the_last_good_checkpoint(void **state)
{
    static const int deaths[] = { 0, 60, 110, 150, 190, 230 };
    struct training never, t;
    int resumed = 0;

    (void)state;
    run(&never, 3, &hows[0], "", STEPS);
    for (size_t i = 0; i < N_OF(deaths); i++) {
        long step;

        remove_files("c.");
        if (run_in_process(3, deaths[i]) == 0)
            continue; /* it was over before */
        configure(&t, 3, &hows[0], in_file("c.safetensors", SHARDS ", \"checkpoint_every\": 2"));
        t.steps = 1;
        team_run(3, work, &t);
        step = (long)t.results[0].step_loss.n;
        for (int k = 0; k < step; k++)
            assert_true(t.results[0].step_loss.items[k] == never.results[0].step_loss.items[k]);
        assert_int_equal(count_files("c."), 1 + 3); /* no litter */
        resumed += t.results[0].resumed;
        done(&t);
    }
    done(&never);
    assert_true(resumed >= 2);
}

/* ---- What cannot be gone on from ---- */

static void read_all(const char *name, struct hg_buf *out)
{
    char *path = hg_fs_join(folder, name);

    hg_buf_clear(out);
    assert_int_equal(hg_fs_read(path, 1 << 24, out, NULL), 0);
    free(path);
}

static void write_all(const char *name, const char *data, size_t n)
{
    char *path = hg_fs_join(folder, name);

    assert_int_equal(hg_fs_replace(path, data, n, 0600, NULL), 0);
    free(path);
}

/* All of several ranks refuse it, with the same words, and hold nothing yet. */
static void refuse_with(int world, const char *more, const char *words, const char *hint)
{
    struct training t;

    configure(&t, world, &hows[0], in_file("d.safetensors", more));
    t.refused = true;
    team_run(world, work, &t);
    if (t.why.code != HG_E_INPUT || !strstr(t.why.text, words))
        fail_msg("\"%s\" on %d ranks, not \"%s\"", t.why.text, world, words);
    if (!strstr(t.why.hint, hint))
        fail_msg("\"%s\" on %d ranks, not \"%s\"", t.why.hint, world, hint);
    assert_int_equal(t.n_held, 0);
    done(&t);
}

static void refuse(int world, const char *more, const char *words)
{
    refuse_with(world, more, words, "to start over");
}

static void refuse_everywhere(const char *words)
{
    for (int world = 1; world <= 3; world++)
        refuse(world, SHARDS, words);
    refuse(2, "", words);
}

#define PART "d.safetensors.1.rank1"

static void test_what_cannot_be_cut_anew_is_refused_by_name(void **state)
{
    struct hg_buf first = HG_BUF_INIT, part = HG_BUF_INIT, other = HG_BUF_INIT;
    struct hg_buf manifest = HG_BUF_INIT;
    struct training t;

    (void)state;
    /* the same step of a training with other numbers, a later step of this one, and this one */
    run(&t, 2, &hows[0], in_file("d.safetensors", SHARDS ", \"seed\": 2"), HALF);
    done(&t);
    read_all(PART, &other);
    remove_files("d.");
    run(&t, 2, &hows[0], in_file("d.safetensors", SHARDS), HALF);
    done(&t);
    read_all("d.safetensors.1.rank0", &first);
    read_all(PART, &part);
    read_all("d.safetensors", &manifest);

    write_all(PART, other.data, other.len);
    refuse_everywhere("part " PART
                      " of rank 1 of 2 (fsdp, after step 3) belongs to another training");
    write_all(PART, first.data, first.len);
    refuse_everywhere("belongs to another checkpoint: model bert-tiny, rank 0 of 2, after step 3");
    write_all(PART, part.data, part.len - 100);
    refuse_everywhere("part " PART " of rank 1 of 2 (fsdp, after step 3) was cut off");
    part.data[part.len - 3000] ^= 4;
    write_all(PART, part.data, part.len);
    refuse_everywhere("is damaged: the bytes of tensor ");
    part.data[part.len - 3000] ^= 4;
    remove_files(PART);
    refuse_everywhere("part " PART " of rank 1 of 2 (fsdp, after step 3) is missing");
    write_all(PART, part.data, part.len);
    manifest.data[manifest.len - 60] ^= 1;
    write_all("d.safetensors", manifest.data, manifest.len);
    refuse_everywhere("damaged: the bytes of ");
    manifest.data[manifest.len - 60] ^= 1;
    write_all("d.safetensors", manifest.data, manifest.len);
    refuse(3, SHARDS ", \"gelu\": \"tanh\"", "gelu is \"erf\" there and \"tanh\" here");
    refuse_with(3, SHARDS ", \"accumulate\": 2", "global_batch is 12 there and 24 here",
                "with 3 ranks and accumulate, batch_size 2 can resume it");
    refuse_with(4, SHARDS ", \"accumulate\": 2", "global_batch is 12 there and 24 here",
                "12 samples cannot be divided evenly among 4 ranks and accumulate");

    /* the part of a later step under the name of an earlier one */
    run(&t, 3, &hows[0], in_file("d.safetensors", SHARDS), 1);
    done(&t);
    read_all("d.safetensors.2.rank1", &other);
    remove_files("d.");
    write_all("d.safetensors", manifest.data, manifest.len);
    write_all("d.safetensors.1.rank0", first.data, first.len);
    write_all(PART, other.data, other.len);
    refuse(1, SHARDS, "belongs to another checkpoint: model bert-tiny, rank 1 of 3, after step 4");
    hg_buf_done(&first);
    hg_buf_done(&part);
    hg_buf_done(&other);
    hg_buf_done(&manifest);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return hg_fs_remove_tree(folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_at_any_moment_leaves_the_last_good_checkpoint),
        cmocka_unit_test(test_any_ranks_go_on_from_the_parts_of_any_others),
        cmocka_unit_test(test_a_strategy_that_shards_nothing_goes_on_from_parts),
        cmocka_unit_test(test_what_cannot_be_cut_anew_is_refused_by_name),
    };

    setenv("HPCGRID_LOG", "warn", 1);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
