/* SPDX-License-Identifier: Apache-2.0 */
#include "results/result_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"

enum type { ANY, NUMBER, NUMBERS, OBJECT, LIST, TRUTH };

static const char *const type_names[] = {
    [NUMBER] = "a number", [NUMBERS] = "a list of numbers", [OBJECT] = "an object",
    [LIST] = "a list",     [TRUTH] = "true or false",
};

/* Keys that tables calculate with, so their type matters. */
static const struct {
    const char *key;
    enum type type;
    const char *doc;
} typed[] = {
    { "train_s", NUMBER,
      "seconds of training, what reports tabulate if nothing else is asked for" },
    { "init_s", NUMBER, "seconds before the training" },
    { "epoch_s", NUMBERS, "seconds of each epoch" },
    { "step_s", OBJECT, "times of steps: `mean`, `p50`, `p99` and the like" },
    { "samples_per_s", NUMBER, "rate of training" },
    { "steps_per_s", NUMBER, "rate of training" },
    { "final_loss", NUMBER, "loss at the end" },
    { "eval", OBJECT, "figures of the evaluation: `eval.accuracy`, `eval.f1`" },
    { "comm", OBJECT, "communication: bytes, seconds, exposed seconds" },
    { "memory", OBJECT, "bytes by class" },
    { "energy_j", NUMBER, "energy in joules" },
    { "ranks", LIST, "an object for each rank" },
    { "comparable", OBJECT, "what must be equal before two results may stand in one table" },
    { "diverged", TRUTH, "the loss became NaN or infinite" },
    { "env", OBJECT, "the machine and its software" },
};
#define N_TYPED (sizeof typed / sizeof *typed)

const char *const hg_result_keys_own[] = {
    "schema",        "crc",         "hpcgrid",        "run_key",     "id",     "cell",
    "attempt",       "attempt_in",  "status",         "error",       "wall_s", "exit_code",
    "started",       "ended",       "oversubscribed", "rehearsal",   "slurm",  "added",
    "removed",       "baseline_id", "checkpoint",     "suspended_s", "ending", "code",
    "clock_ahead_s", NULL
};

bool hg_result_key_is_own(const char *key)
{
    return hg_text_is_one_of(key, strlen(key), hg_result_keys_own);
}

const char *hg_result_key_nearest(const char *metric, const json_t *more)
{
    const char *names[64], *key, *near = NULL;
    char *first = hg_strndup(metric, strcspn(metric, "."));
    size_t n = 0;
    json_t *value;

    for (; hg_result_keys_own[n]; n++)
        names[n] = hg_result_keys_own[n];
    for (size_t i = 0; i < N_TYPED; i++)
        names[n++] = typed[i].key;
    json_object_foreach((json_t *)more, key, value) {
        if (n < sizeof names / sizeof *names)
            names[n++] = key;
    }
    near = hg_text_nearest(first, names, n);
    if (near && strcmp(near, first) == 0)
        near = NULL;
    free(first);
    return near;
}

static enum type type_of(const char *key)
{
    for (size_t i = 0; i < N_TYPED; i++)
        if (strcmp(typed[i].key, key) == 0)
            return typed[i].type;
    return ANY;
}

const char *hg_result_key_known(size_t i, const char **type, const char **doc)
{
    if (i >= N_TYPED)
        return NULL;
    *type = type_names[typed[i].type];
    *doc = typed[i].doc;
    return typed[i].key;
}

const char *hg_result_key_type(const char *key)
{
    return type_names[type_of(key)];
}

static bool is_amount(const json_t *v)
{
    return json_is_null(v) || json_is_number(v);
}

static bool has_type(const json_t *v, enum type type)
{
    size_t i;
    json_t *item;

    switch (type) {
    case NUMBER:
        return is_amount(v);
    case NUMBERS:
        json_array_foreach((json_t *)v, i, item)
            if (!is_amount(item))
                return false;
        return json_is_array(v) || json_is_null(v);
    case OBJECT:
        return json_is_object(v) || json_is_null(v);
    case LIST:
        return json_is_array(v) || json_is_null(v);
    case TRUTH:
        return json_is_boolean(v);
    case ANY:
        break;
    }
    return true;
}

int hg_result_key_check(const char *key, const json_t *value, struct hg_err *err)
{
    if (!has_type(value, type_of(key)))
        return hg_err_set(err, HG_E_INPUT, "the result's \"%s\" must be %s, it is %s", key,
                          hg_result_key_type(key), hg_json_type_name(value));
    if (strcmp(key, "train_s") == 0 && json_is_number(value) && !(json_number_value(value) > 0))
        return hg_err_set(err, HG_E_INPUT, "the result's \"train_s\" must be above 0");
    return 0;
}
