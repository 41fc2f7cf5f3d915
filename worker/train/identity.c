/* SPDX-License-Identifier: Apache-2.0 */
#include "train/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SUFFIX ".safetensors"

/* Members of a cell that do not change what is trained. */
static bool is_outside(const char *key)
{
    static const char *const keys[] = {
        "checkpoint",    "checkpoint_every", "cache",       "data", "vocab",
        "cpus_per_task", "predictions",      "time",        "mem",  "sbatch",
        "eval",          "test_batch",       "test_samples"
    };

    if (key[0] == '_')
        return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* Members that say how the work is shared out, not what is learned: another number of ranks or another strategy may go on. */
static bool is_sharing(const char *key)
{
    static const char *const keys[] = { "strategy",      "batch_size",     "accumulate", "site",
                                        "hardware",      "nodes",          "container",  "modules",
                                        "gpus_per_node", "tasks_per_node", "repeat",     "balance",
                                        "cpus_per_gpu",  "comm_timeout" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return wk_strategy_is_option(key) && strcmp(key, "bf16_gradients") != 0 &&
           strcmp(key, "sync_batchnorm") != 0;
}

json_t *wk_identity_training(const struct wk_train *t)
{
    json_t *o = json_object(), *value;
    const char *key;

    json_object_foreach(t->config->given, key, value)
        if (!is_outside(key) && !is_sharing(key))
            json_object_set_new(o, key, json_deep_copy(value));
    json_object_set_new(o, "dataset_hash", json_string(t->result->dataset_hash));
    json_object_set_new(o, "precision", json_string(t->config->precision));
    json_object_set_new(
        o, "global_batch",
        json_integer(t->config->batch_size * t->config->accumulate * t->comm->world));
    if (t->kind->n_buffers && !t->config->sync_batchnorm) /* statistics of a rank's batch */
        json_object_set_new(o, "batch_size", json_integer(t->config->batch_size));
    return o;
}

/* All that a file in a folder is for: no two cells share one. A new reference. */
static json_t *identity_of(const struct wk_train *t)
{
    json_t *o = json_object(), *value;
    const char *key;

    json_object_foreach(t->config->given, key, value)
        if (!is_outside(key))
            json_object_set_new(o, key, json_deep_copy(value));
    json_object_set_new(o, "dataset_hash", json_string(t->result->dataset_hash));
    json_object_set_new(o, "world", json_integer(t->comm->world));
    json_object_set_new(o, "precision", json_string(t->config->precision));
    return o;
}

static char *identity_text(const struct wk_train *t)
{
    json_t *o = identity_of(t);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(o, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    json_decref(o);
    return hg_buf_detach(&text);
}

char *wk_identity_file(const struct wk_train *t)
{
    const char *path = t->config->checkpoint;
    size_t n = strlen(path), suffix = strlen(SUFFIX);
    char hash[33], *text;

    if (n > suffix && strcmp(path + n - suffix, SUFFIX) == 0)
        return strdup(path);
    text = identity_text(t);
    if (!text)
        return NULL;
    hg_hash128_hex(text, strlen(text), hash);
    free(text);
    return hg_str_printf("%s/%s-%.12s" SUFFIX, path, t->config->model, hash);
}

/* Another number of ranks may go on if the batches of all of them make the same step. */
static void say_batch(const struct wk_train *t, long long batch, struct hg_err *err)
{
    long long passes = t->comm->world * t->config->accumulate;
    char here[64];

    snprintf(here, sizeof here, "%d rank%s%s", t->comm->world, t->comm->world == 1 ? "" : "s",
             t->config->accumulate > 1 ? " and accumulate" : "");
    if (batch > 0 && batch % passes == 0)
        hg_err_hint(err, "with %s, batch_size %lld goes on from it", here, batch / passes);
    else
        hg_err_hint(err,
                    "%lld samples cannot be shared out evenly on %s: use a number of ranks "
                    "that divides them, or remove it to begin anew",
                    batch, here);
}

int wk_identity_differ(const struct wk_train *t, const json_t *theirs, const json_t *ours,
                       struct hg_err *err)
{
    struct hg_buf a = HG_BUF_INIT, b = HG_BUF_INIT;
    const char *key;
    json_t *value;
    json_t *all = json_copy((json_t *)(uintptr_t)theirs);

    hg_err_hint(err, "remove it to begin anew, or name another \"checkpoint\"");
    json_object_update_missing(all, (json_t *)(uintptr_t)ours);
    json_object_foreach(all, key, value) {
        json_t *x = json_object_get(theirs, key), *y = json_object_get(ours, key);

        if (x && y && hg_json_equal(x, y))
            continue;
        if (x)
            hg_json_dump(x, HG_JSON_COMPACT, &a);
        if (y)
            hg_json_dump(y, HG_JSON_COMPACT, &b);
        hg_err_set(err, HG_E_INPUT,
                   "the checkpoint is of another training: %s is %s there and %s here", key,
                   x ? hg_buf_str(&a) : "absent", y ? hg_buf_str(&b) : "absent");
        if (strcmp(key, "global_batch") == 0)
            say_batch(t, (long long)json_integer_value(x), err);
        break;
    }
    if (err && !err->code)
        hg_err_set(err, HG_E_INPUT, "the checkpoint is of another training");
    hg_err_at(err, t->checkpoint, "");
    json_decref(all);
    hg_buf_done(&a);
    hg_buf_done(&b);
    return -1;
}
