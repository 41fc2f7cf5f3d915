/* SPDX-License-Identifier: Apache-2.0 */
#include "results/doubts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/text.h"

/* Time outside of what is measured is doubtful above this, and above two thirds of wall_s. */
#define UNEXPLAINED_S 60
#define EXPLAINED_PART (1.0 / 3)
/* A rank is slow if it took this many times the median of all, and a second more. */
#define SLOW_RANK 2
/* Rates and epochs may leave out the first steps or an evaluation. */
#define RATE_TOLERANCE 0.25
#define EPOCHS_TOLERANCE 0.1
#define LEFT_OUT_PART 0.01
/* A network is slow below this part of what the site states; told by collectives of so many bytes a call. */
#define SLOW_NETWORK 0.03
#define TELLING_BYTES 4e6

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- How it ended ---- */

static const struct {
    const char *slurm, *state;
} endings[] = {
    { "TIMEOUT", "timeout" },     { "DEADLINE", "timeout" },    { "OUT_OF_ME", "oom" },
    { "CANCELLED", "cancelled" }, { "PREEMPTED", "cancelled" }, { "FAILED", "failed" },
    { "NODE_FAIL", "node_fail" }, { "BOOT_FAIL", "node_fail" }, { "LAUNCH_FAILED", "node_fail" },
    { "REVOKED", "cancelled" },
};

/* 137, or "0:9" as sacct writes an exit code and a signal. */
static bool is_failure(const json_t *code)
{
    const char *text = json_string_value(code);
    char *end;

    if (json_is_number(code))
        return json_number_value(code) != 0;
    return text && (strtol(text, &end, 10) != 0 || (*end == ':' && atol(end + 1) != 0));
}

static const char *state_of_slurm(const json_t *entry, char why[static 64])
{
    const json_t *slurm = json_object_get(entry, "slurm"), *state = json_object_get(slurm, "state");
    const char *word = json_string_value(state ? state : slurm);

    if (!word)
        word = json_string_value(json_object_get(entry, "slurm_state"));
    for (size_t i = 0; word && i < sizeof endings / sizeof *endings; i++)
        if (strncmp(word, endings[i].slurm, strlen(endings[i].slurm)) == 0) {
            snprintf(why, 64, "Slurm: %.40s", word);
            return endings[i].state;
        }
    return NULL;
}

const char *hg_doubts_state(const json_t *entry, char why[static 64])
{
    static const char *const codes[] = { "exit_code", "exit_status", "returncode", "signal" };
    static const char *const ends[] = { "success", "completed", "finished" };
    const json_t *slurm = json_object_get(entry, "slurm"), *error = json_object_get(entry, "error");
    const char *state = state_of_slurm(entry, why);

    for (size_t i = 0; i < 2 * sizeof codes / sizeof *codes && !state; i++) {
        const char *name = codes[i / 2];
        const json_t *code = json_object_get(i % 2 ? slurm : entry, name);

        if (!is_failure(code))
            continue;
        if (json_is_string(code))
            snprintf(why, 64, "%s %.20s", name, json_string_value(code));
        else
            snprintf(why, 64, "%s %.0f", name, json_number_value(code));
        state = "failed";
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends && !state; i++) {
        if (!json_is_false(json_object_get(entry, ends[i])))
            continue;
        snprintf(why, 64, "%s false", ends[i]);
        state = "failed";
    }
    if (!state && (json_is_object(error) || json_string_length(error))) {
        snprintf(why, 64, "it has an error");
        state = "failed";
    }
    return state;
}

/* ---- Doubts ---- */

struct doubts {
    const json_t *entry;
    const struct hg_result *r;
    json_t *found;
};

static void add(struct doubts *d, const char *what, char *value)
{
    if (!d->found)
        d->found = json_object();
    json_object_set_new(d->found, what, hg_json_text(value));
    free(value);
}

static void check_end(struct doubts *d)
{
    char why[64];

    if (d->r->ok && hg_doubts_state(d->entry, why))
        add(d, "counts as good, but ended otherwise: ", hg_str_printf("%s", why));
}

/* The time of all of a run, of its last start only; the train_s of a worker that resumed is of all of its starts. */
static void check_span(struct doubts *d, const char *name, double span_s, bool holds_all)
{
    double train_s = number(d->entry, "train_s");
    double known_s =
        train_s + fmax(0, number(d->entry, "init_s")) + fmax(0, number(d->entry, "eval_s"));

    if (train_s > 1.01 * span_s && !json_is_object(json_object_get(d->entry, "resumed")))
        add(d, "more time than it ran: ",
            hg_str_printf("train_s %.6g of %s %.6g", train_s, name, span_s));
    else if (holds_all && span_s - known_s > UNEXPLAINED_S && known_s < EXPLAINED_PART * span_s)
        add(d, "most of its time is not measured: ",
            hg_str_printf("train_s %.6g of %s %.6g", train_s, name, span_s));
}

static void check_times(struct doubts *d)
{
    const json_t *rank = json_array_get(json_object_get(d->entry, "ranks"), 0);
    double wall_s = number(d->entry, "wall_s");

    check_span(d, "real_s", number(rank, "real_s"), isnan(wall_s));
    check_span(d, "wall_s", wall_s, true);
}

/* What `comparable`, the cell or the result itself says. */
static double input(const struct doubts *d, const char *key)
{
    double v = number(d->r->comparable, key);

    v = isnan(v) ? number(d->r->cell, key) : v;
    return isnan(v) ? number(d->entry, key) : v;
}

static void check_epochs(struct doubts *d)
{
    const json_t *list = json_object_get(d->entry, "epoch_s");
    double train_s = number(d->entry, "train_s"), epochs = input(d, "epochs"), sum = 0;
    size_t n = json_array_size(list), i;
    json_t *item;

    json_array_foreach(list, i, item)
        sum += json_number_value(item);
    if (sum > train_s * (1 + EPOCHS_TOLERANCE))
        add(d, "its epochs took longer than all of it: ",
            hg_str_printf("epoch_s %.6g in all, train_s %.6g", sum, train_s));
    if (n > 0 && (double)n < floor(epochs))
        add(d, "not all of its epochs are in its time: ",
            hg_str_printf("epoch_s has %zu of %.0f", n, epochs));
    else if (n > 1 && sum < EXPLAINED_PART * train_s)
        add(d, "its epochs are a small part of its time: ",
            hg_str_printf("epoch_s %.6g in all, train_s %.6g", sum, train_s));
    if ((double)n > ceil(epochs) + 1) /* one to warm up */
        add(d, "more epochs than it was to train: ",
            hg_str_printf("epoch_s has %zu, epochs %.6g", n, epochs));
}

/* At least half of the steps that were made (a training may end early) took as long as the median, or longer. */
static void check_steps(struct doubts *d)
{
    const json_t *step = json_object_get(d->entry, "step_s");
    double train_s = number(d->entry, "train_s"), median = number(step, "median");
    double steps = number(d->entry, "steps");

    steps = isnan(steps) ? d->r->steps : steps;
    if (median * steps / 2 > train_s)
        add(d, "its steps took longer than all of it: ",
            hg_str_printf("%.0f steps of %.6g s, train_s %.6g", steps, median, train_s));
}

/* Work that its time should hold and does not. Mixed precision leaves out the first few steps. */
static void check_left_out(struct doubts *d)
{
    static const char *const early[] = { "early_stopped", "stopped_early", NULL };
    static const char *const skipped[] = { "skipped_steps", "steps_skipped", NULL };

    for (size_t i = 0; early[i]; i++)
        if (json_is_true(json_object_get(d->entry, early[i])))
            add(d, "its training stopped early: ", hg_str_printf("%s", early[i]));
    for (size_t i = 0; skipped[i]; i++)
        if (number(d->entry, skipped[i]) > LEFT_OUT_PART * d->r->steps)
            add(d, "some of its steps were left out: ",
                hg_str_printf("%s %.0f of %.0f", skipped[i], number(d->entry, skipped[i]),
                              d->r->steps));
}

/* JSON has no NaN: programs write null. */
static void check_loss(struct doubts *d)
{
    const json_t *curve = json_object_get(json_object_get(d->entry, "loss"), "loss"), *item;
    size_t i;

    if (json_is_null(json_object_get(d->entry, "final_loss")) && !d->r->diverged)
        add(d, "its loss is null, as NaN is written: ", hg_str_printf("final_loss"));
    json_array_foreach(curve, i, item) {
        if (!json_is_null(item) || d->r->diverged)
            continue;
        add(d, "its loss is null, as NaN is written: ", hg_str_printf("value %zu of loss", i + 1));
        return;
    }
}

/* hpcgrid-worker adds up the time over all its starts, and says so with an object. */
static void check_resumed(struct doubts *d)
{
    const json_t *from = json_object_get(d->entry, "resumed");

    from = from ? from : json_object_get(d->entry, "resumed_from");
    if (json_is_true(from) || json_is_string(from) || json_number_value(from) > 0)
        add(d, "resumed from a checkpoint: ", hg_str_printf("does train_s hold what came before?"));
}

/* ---- Ranks and devices ---- */

/* GPUs: one rank for each, but `dp` drives several; cores: one rank for each task. */
static double expected_ranks(const struct doubts *d)
{
    const char *strategy = json_string_value(json_object_get(d->r->cell, "strategy"));
    double nodes = number(d->r->cell, "nodes"), tasks = number(d->r->cell, "tasks_per_node");

    if (strategy && strcmp(strategy, "dp") == 0)
        return NAN;
    if (!d->r->on_cores)
        return d->r->devices;
    return (isnan(nodes) ? 1 : nodes) * tasks;
}

static void check_size(struct doubts *d, const char *key, double expected, const char *unit)
{
    double v = number(d->entry, key);

    v = isnan(v) ? number(d->r->comparable, key) : v;
    if (!isnan(v) && !isnan(expected) && v != expected)
        add(d, "ran on other devices than its cell names: ",
            hg_str_printf("%s %.0f, the cell has %.0f %s", key, v, expected, unit));
}

static void check_sizes(struct doubts *d)
{
    static const char *const counts[] = { "n_gpus", "num_gpus", "gpus", "gpu_count" };
    const char *unit = d->r->on_cores ? "tasks" : "GPUs";

    check_size(d, "world_size", expected_ranks(d), unit);
    check_size(d, "world", expected_ranks(d), unit);
    if (d->r->on_cores)
        return;
    check_size(d, "devices", d->r->devices, unit);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) /* in all, or of a node */
        if (number(d->entry, counts[i]) != number(d->r->cell, "gpus_per_node"))
            check_size(d, counts[i], d->r->devices, unit);
    if (d->r->device && strncasecmp(d->r->device, "cpu", 3) == 0 && !d->r->rehearsal &&
        !isnan(number(d->r->cell, "gpus_per_node")))
        add(d, "ran on other devices than its cell names: ",
            hg_str_printf("device %s, the cell has %.0f GPUs", d->r->device, d->r->devices));
}

/* Words that mean one thing only; trainers have names of their own for much else. */
static bool is_known(const json_t *word)
{
    static const char *const words[] = { "single", "dp",   "ddp",  "fsdp", "deepspeed",
                                         "fp64",   "fp32", "fp16", "bf16", NULL };

    return json_is_string(word) &&
           hg_text_is_one_of(json_string_value(word), json_string_length(word), words);
}

static bool contradict(const json_t *asked, const json_t *said)
{
    return ((json_is_number(asked) && json_is_number(said)) ||
            (is_known(asked) && is_known(said))) &&
           !hg_json_equal(asked, said);
}

/* What the cell asked for, and what ran. A rehearsal is smaller on purpose. */
static void check_cell(struct doubts *d)
{
    static const char *const keys[] = {
        "nodes",  "gpus_per_node", "tasks_per_node", "strategy",     "precision",
        "epochs", "seq_len",       "max_length",     "dataset_size", "parameters",
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys && !d->r->rehearsal; i++) {
        const json_t *asked = json_object_get(d->r->cell, keys[i]),
                     *said = json_object_get(d->r->comparable, keys[i]);
        struct hg_buf text = HG_BUF_INIT;

        said = said ? said : json_object_get(d->r->inputs, keys[i]);
        said = said ? said : json_object_get(d->entry, keys[i]);
        if (!contradict(asked, said))
            continue;
        hg_buf_puts(&text, keys[i]);
        hg_buf_puts(&text, " ");
        hg_json_dump(said, HG_JSON_COMPACT, &text);
        hg_buf_puts(&text, ", the cell has ");
        hg_json_dump(asked, HG_JSON_COMPACT, &text);
        add(d, "did not run what its cell names: ", hg_str_printf("%s", hg_buf_str(&text)));
        hg_buf_done(&text);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* All ranks of a training end together. */
static void check_slow_rank(struct doubts *d, const json_t *ranks)
{
    double *v = hg_alloc((json_array_size(ranks) + 1) * sizeof *v), slowest = 0, median;
    size_t n = 0, i, which = 0;
    json_t *rank;

    json_array_foreach(ranks, i, rank) {
        double real_s = number(rank, "real_s");

        if (isnan(real_s))
            continue;
        which = real_s > slowest ? i : which;
        slowest = fmax(slowest, real_s);
        v[n++] = real_s;
    }
    qsort(v, n, sizeof *v, compare_doubles);
    median = n ? v[(n - 1) / 2] : NAN;
    if (slowest > SLOW_RANK * median && slowest - median > 1)
        add(d, "one rank ran much longer than the others: ",
            hg_str_printf("rank %zu %.6g s, the median %.6g s", which, slowest, median));
    free(v);
}

/* Of all ranks the first that differs from rank 0 in a member. */
static const json_t *odd_rank(const json_t *ranks, const char *key)
{
    const json_t *first = json_object_get(json_array_get(ranks, 0), key);
    size_t i;
    json_t *rank;

    json_array_foreach(ranks, i, rank) {
        const json_t *other = json_object_get(rank, key);

        if (first && other && !json_equal((json_t *)first, (json_t *)other))
            return other;
    }
    return NULL;
}

static void check_ranks(struct doubts *d)
{
    const json_t *ranks = json_object_get(d->entry, "ranks"), *first = json_array_get(ranks, 0);
    const char *device = json_string_value(odd_rank(ranks, "device"));
    bool real = !d->r->rehearsal && !d->r->on_cores;
    size_t i;
    json_t *rank;

    if (json_array_size(ranks) < 2)
        return;
    check_slow_rank(d, ranks);
    json_array_foreach(ranks, i, rank) {
        const json_t *code = json_object_get(rank, "exit_code"),
                     *uuid = json_object_get(rank, "uuid");

        if (d->r->ok && is_failure(code) && json_is_number(code))
            add(d, "counts as good, but ended otherwise: ",
                hg_str_printf("exit_code %.0f of rank %zu", json_number_value(code), i));
        if (i > 0 && uuid && json_equal((json_t *)uuid, json_object_get(first, "uuid")))
            add(d, "two of its ranks shared a GPU: ", hg_str_printf("0 and %zu", i));
    }
    if (device)
        add(d, "its ranks ran on different devices: ",
            hg_str_printf("%s and %s", json_string_value(json_object_get(first, "device")),
                          device));
    if (real && number(d->r->cell, "nodes") > 1 && json_object_get(first, "host") &&
        !odd_rank(ranks, "host"))
        add(d, "ran on one node: ",
            hg_str_printf("%s, the cell has %.0f",
                          json_string_value(json_object_get(first, "host")),
                          number(d->r->cell, "nodes")));
}

/* Payload by the ring's formula is what crosses the border of a node in one direction. The quickest collective counts: in others the ranks
 * may have waited for each other. */
static void check_network(struct doubts *d)
{
    double stated = number(json_object_get(d->entry, "env"), "network_gbit_s"), most = 0;
    const char *name, *which = NULL;
    json_t *coll;

    if (d->r->rehearsal || !(number(d->r->cell, "nodes") > 1))
        return;
    json_object_foreach(json_object_get(d->entry, "comm"), name, coll) {
        double bytes = number(coll, "ring_bytes"), gbit_s = 8e-9 * bytes / number(coll, "seconds");

        if (bytes >= TELLING_BYTES * number(coll, "calls") && gbit_s > most) {
            most = gbit_s;
            which = name;
        }
    }
    if (which && most < SLOW_NETWORK * stated)
        add(d, "its network was slow: ",
            hg_str_printf("%s at %.3g Gbit/s, a node has %.6g: another interface?", which, most,
                          stated));
}

/* ---- Samples ---- */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= RATE_TOLERANCE * fmax(a, b);
}

/* A count of samples is that of one epoch or of all; of each epoch a part of a batch may be left out or filled up. */
static void check_rate(struct doubts *d)
{
    double samples = input(d, "samples"), epochs = input(d, "epochs"), trained = d->r->trained;
    double batch = input(d, "global_batch"), rounding;

    epochs = isnan(epochs) ? 1 : epochs;
    batch = isnan(batch) ? input(d, "batch_size") * d->r->devices : batch;
    rounding = isnan(batch) ? 0 : epochs * batch;
    if (isnan(samples) || isnan(trained) || is_near(trained, samples) ||
        is_near(trained, samples * epochs) || is_near(trained, d->r->steps * batch) ||
        fabs(trained - samples * epochs) <= rounding)
        return;
    add(d, "its samples_per_s is not samples / train_s: ",
        hg_str_printf("samples_per_s x train_s is %.6g, samples %.6g", trained, samples));
}

/* ---- All of it ---- */

static double first_number(const json_t *entry, const char *const *keys)
{
    const json_t *eval = json_object_get(entry, "eval");
    double v = NAN;

    for (; *keys && isnan(v); keys++)
        v = strncmp(*keys, "eval.", 5) == 0 ? number(eval, *keys + 5) : number(entry, *keys);
    return v;
}

json_t *hg_doubts_find(const json_t *entry, struct hg_result *r)
{
    static const char *const amounts[] = { "samples", "train_samples", "train_examples", "examples",
                                           NULL };
    static const char *const losses[] = { "final_loss", "train_loss", "eval.loss",
                                          "eval_loss",  "loss",       NULL };
    static const char *const scores[] = {
        "eval.f1", "eval.em", "eval.accuracy", "eval_accuracy", "accuracy", "f1", "em",
        "score",   NULL
    };
    struct doubts d = { entry, r, NULL };

    r->steps = input(&d, "steps");
    r->noise_times = number(entry, "train_s") / number(entry, "noise_s");
    r->trained = number(entry, "samples_per_s") * number(entry, "train_s");
    if (isnan(r->trained))
        r->trained = first_number(entry, amounts);
    r->loss = first_number(entry, losses);
    r->score = first_number(entry, scores);
    check_end(&d);
    check_times(&d);
    check_epochs(&d);
    check_steps(&d);
    check_left_out(&d);
    check_loss(&d);
    check_resumed(&d);
    check_sizes(&d);
    check_cell(&d);
    check_ranks(&d);
    check_network(&d);
    check_rate(&d);
    return d.found;
}
