/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that are stopped or killed at steps that look random, and go on from their checkpoints, against one that is left alone:
 * every loss and every parameter has the same bits. And trainings on other numbers of threads. Each runs in a process of its own. */
#include "worker.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/hash.h"
#include "train/loop.h"
#include "train/train.h"

#define STEPS_MAX 64
#define BERT                                                                                       \
    "\"model\": \"bert-tiny\", \"hidden\": 16, \"layers\": 2, \"heads\": 2, \"vocab_size\": 300, " \
    "\"dataset\": \"synthetic\", \"samples\": 30, \"seq_len\": 48, \"lengths\": \"uniform\", "     \
    "\"batch_size\": 2, \"accumulate\": 2, \"epochs\": 3, \"lr\": 1e-3, \"warmup\": 0.1, "         \
    "\"clip_norm\": 0.5, \"eval\": false"
/* Products large enough to be shared out over threads. */
#define WIDER                                                                                      \
    "\"model\": \"bert-tiny\", \"hidden\": 72, \"layers\": 2, \"heads\": 2, \"vocab_size\": 300, " \
    "\"dataset\": \"synthetic\", \"samples\": 40, \"seq_len\": 128, \"lengths\": \"uniform\", "    \
    "\"batch_size\": 8, \"epochs\": 3, \"lr\": 1e-3, \"clip_norm\": 0.5, \"eval\": false"
#define RNN                                                                                      \
    "\"samples\": 300, \"batch_size\": 32, \"epochs\": 3, \"lr\": 1, \"schedule\": \"linear\", " \
    "\"eval\": false"

/* In fp16, from a loss scale that takes gradients out of range: it halves, steps are skipped. */
#define FP16 BERT ", \"precision\": \"fp16\""

/* What a training's process leaves behind. */
struct outcome {
    int steps, resumed;
    wk_real control[WK_CONTROL_N]; /* loss scale and skipped steps; 0 where there are none */
    double losses[STEPS_MAX];
    char params[33]; /* hash of all of them */
};

static char folder[] = "/tmp/hpcgrid-test-XXXXXX";
static struct outcome *outcome; /* shared with the processes */

/* Where the training meets a signal: after the update of this step. */
static const struct wk_strategy_ops *real_ops;
static long stop_step;
static int stop_number;

static int update_and_stop(struct wk_strategy *s, double lr, struct hg_err *err)
{
    int rc = real_ops->update(s, lr, err);

    if (s->updates == stop_step && stop_number == SIGKILL)
        raise(SIGKILL);
    if (s->updates == stop_step)
        wk_train_signal(stop_number);
    return rc;
}

static void keep_outcome(const struct wk_train *t)
{
    char all[1 << 16] = "";
    int at = 0;

    outcome->steps = (int)t->result->step_loss.n;
    outcome->resumed = t->result->resumed;
    for (int i = 0; i < outcome->steps && i < STEPS_MAX; i++)
        outcome->losses[i] = t->result->step_loss.items[i];
    if (t->strategy->control.n)
        t->dev->backend->download(t->dev, outcome->control, t->strategy->control);
    for (int i = 0; i < t->kind->n_params; i++) {
        hg_hash128_hex(t->strategy->params[i].value.data,
                       t->strategy->params[i].value.n *
                           wk_type_size(t->strategy->params[i].value.type),
                       all + at);
        at += 32;
    }
    hg_hash128_hex(all, (size_t)at, outcome->params);
}

static void scale_too_far(const struct wk_train *t)
{
    const wk_real start[WK_CONTROL_N] = {
        [WK_CONTROL_SCALE] = 1, [WK_CONTROL_LOSS_SCALE] = (wk_real)WK_LOSS_SCALE_MOST
    };

    t->dev->backend->upload(t->dev, t->strategy->control, start);
}

/* The process of one training: 0 done, 75 stopped with a checkpoint, 1 failed. */
static int train_here(const char *text, int threads)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct wk_comm *comm = wk_comm_self.open(&err);
    char *path = hg_fs_join(folder, "cell.json");
    struct wk_strategy_ops ops;
    struct wk_config config;
    struct wk_result result = { 0 };
    struct wk_train t;
    int rc = 1;

    if (hg_fs_replace(path, text, strlen(text), 0600, &err) < 0 ||
        wk_config_load(path, &config, &errs) < 0 ||
        wk_train_open(&t, &config, comm, threads, &result, &err) < 0)
        goto out;
    if (t.dev->precision == WK_MIXED_FP16 && !result.resumed)
        scale_too_far(&t);
    real_ops = t.strategy->ops;
    ops = *real_ops;
    ops.update = update_and_stop;
    t.strategy->ops = &ops;
    if (wk_train_run(&t, &err) == 0)
        rc = 0;
    else if (result.stopped_with_checkpoint)
        rc = 75;
    keep_outcome(&t);
    t.strategy->ops = real_ops;
    wk_train_close(&t);
out:
    if (rc == 1)
        fprintf(stderr, "%s %s\n", err.text, errs.n ? errs.items[0].text : "");
    return rc;
}

/* Exit code of the process, 128 + n when signal n ended it. */
static int train(const char *text, int threads, long step, int number)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        stop_step = step;
        stop_number = number;
        _exit(train_here(text, threads));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int make_folder(void **state)
{
    (void)state;
    setenv("HPCGRID_LOG", "warn", 1);
    outcome =
        mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return outcome != MAP_FAILED && mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    munmap(outcome, sizeof *outcome);
    return hg_fs_remove_tree(folder, NULL);
}

/* The next number of a sequence that looks random, from 1 to most. */
static long any(uint32_t *seed, long most)
{
    uint32_t bits[4];

    wk_philox(2026, (*seed)++, 0, 0, 0, bits);
    return 1 + (long)(bits[0] % (uint32_t)most);
}

/* Stops it over and over until it is done; every time it must be stopped the way that was asked for. */
static void stop_and_go(const char *cell, const struct outcome *whole, uint32_t *seed)
{
    static int files;
    static const int numbers[] = { SIGKILL, SIGUSR1, SIGKILL, SIGTERM };
    char text[1024], file[64];
    int stops = (int)any(seed, 4), code = 1;

    snprintf(file, sizeof file, "%s/%d.safetensors", folder, ++files);
    snprintf(text, sizeof text, "{%s, \"checkpoint\": \"%s\", \"checkpoint_every\": %ld}", cell,
             file, any(seed, 6));
    for (int i = 0; i < stops; i++) {
        int number = numbers[any(seed, 4) - 1];
        long step = any(seed, whole->steps - 1);

        code = train(text, 1, step, number);
        if (code == 0) /* the step was behind the last checkpoint */
            break;
        assert_int_equal(code, number == SIGKILL ? 128 + SIGKILL : 75);
    }
    if (code != 0)
        assert_int_equal(train(text, 1, 0, 0), 0);
    assert_memory_equal(outcome->losses, whole->losses, sizeof whole->losses);
    assert_string_equal(outcome->params, whole->params);
    assert_memory_equal(outcome->control, whole->control, sizeof whole->control);
    assert_int_equal(outcome->steps, whole->steps);
}

static struct outcome check_stops(const char *cell, int steps, int rounds)
{
    struct outcome whole;
    char text[1024];
    uint32_t seed = 0;
    int resumed = 0;

    snprintf(text, sizeof text, "{%s}", cell);
    memset(outcome, 0, sizeof *outcome);
    assert_int_equal(train(text, 1, 0, 0), 0);
    whole = *outcome;
    assert_int_equal(whole.steps, steps);
    for (int i = 0; i < rounds; i++) {
        memset(outcome, 0, sizeof *outcome);
        stop_and_go(cell, &whole, &seed);
        resumed += outcome->resumed;
    }
    print_message("%d trainings went on %d times\n", rounds, resumed);
    assert_true(resumed >= rounds);
    return whole;
}

static void test_bert_goes_on_from_any_step_with_the_same_bits(void **state)
{
    (void)state;
    check_stops(BERT, 24, getenv("HPCGRID_TEST_ROUNDS") ? atoi(getenv("HPCGRID_TEST_ROUNDS")) : 12);
}

static void test_the_rnn_goes_on_from_any_step_with_the_same_bits(void **state)
{
    (void)state;
    check_stops(RNN, 30, 6);
}

static void test_the_loss_scale_goes_on_with_the_training(void **state)
{
    struct outcome whole = check_stops(FP16, 24, 6);

    (void)state;
    print_message("loss scale %g, %g steps skipped\n", (double)whole.control[WK_CONTROL_LOSS_SCALE],
                  (double)whole.control[WK_CONTROL_SKIPPED]);
    assert_true(whole.control[WK_CONTROL_SKIPPED] > 0);
    assert_true(whole.control[WK_CONTROL_LOSS_SCALE] < (wk_real)WK_LOSS_SCALE_MOST);
}

static void test_losses_agree_on_any_number_of_threads(void **state)
{
    double first[STEPS_MAX], worst = 0;

    (void)state;
    for (int threads = 1; threads <= 4; threads++)
        for (int again = 0; again < 2; again++) {
            double before[STEPS_MAX];

            memcpy(before, outcome->losses, sizeof before);
            memset(outcome, 0, sizeof *outcome);
            assert_int_equal(train("{" WIDER "}", threads, 0, 0), 0);
            if (again)
                assert_memory_equal(outcome->losses, before, sizeof before);
            else if (threads == 1)
                memcpy(first, outcome->losses, sizeof first);
            for (int i = 0; i < outcome->steps; i++)
                worst = fmax(worst, fabs(outcome->losses[i] - first[i]) / first[i]);
        }
    print_message("losses on 1 to 4 threads differ by %.2g\n", worst);
    assert_true(worst <= 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bert_goes_on_from_any_step_with_the_same_bits),
        cmocka_unit_test(test_the_rnn_goes_on_from_any_step_with_the_same_bits),
        cmocka_unit_test(test_the_loss_scale_goes_on_with_the_training),
        cmocka_unit_test(test_losses_agree_on_any_number_of_threads),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
