/* SPDX-License-Identifier: Apache-2.0 */
#include "train/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/text.h"
#include "backends/rng.h"
#include "strategies/strategies.h"
#include "contract/keys.h"

#define SUFFIX ".safetensors"

/* Where files are, and how the job was requested. */
static bool is_place(const char *key)
{
    static const char *const keys[] = {
        "checkpoint", "cache", "data", "vocab", "predictions", NULL
    };

    return hg_text_is_one_of(key, strlen(key), keys) || hg_key_has_role(key, HG_ROLE_LOOSE);
}

/* What is measured or reported and does not change what is learned. */
static bool is_watching(const char *key)
{
    static const char *const keys[] = { "checkpoint_every", "eval",        "test_batch",
                                        "test_samples",     "tensorboard", "null_threshold",
                                        "cpus_per_task",    "stop_on_nan", NULL };

    return strncmp(key, "trace", 5) == 0 || hg_text_is_one_of(key, strlen(key), keys);
}

/* How the work is shared out: another number of ranks or another strategy may resume. */
static bool is_sharing(const char *key)
{
    static const char *const keys[] = { "strategy",       "batch_size", "accumulate",   "nodes",
                                        "tasks_per_node", "balance",    "comm_timeout", NULL };

    return hg_text_is_one_of(key, strlen(key), keys) ||
           (wk_strategy_is_option(key) && strcmp(key, "bf16_gradients") != 0 &&
            strcmp(key, "sync_batchnorm") != 0);
}

/* A model's actual sizes say more than its name and the requested sizes. */
static void set_size(json_t *o, const struct wk_model_size *size)
{
    if (!size)
        return;
    json_object_del(o, "model");
    json_object_update_new(
        o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "layers", (json_int_t)size->layers, "hidden",
                     (json_int_t)size->hidden, "heads", (json_int_t)size->heads, "intermediate",
                     (json_int_t)size->intermediate, "vocab_size", (json_int_t)size->vocab_size,
                     "positions", (json_int_t)size->positions));
}

/* How much of what data, as it was found: the last members, because others say better why these differ. */
static void set_found(json_t *o, const struct wk_train *t)
{
    static const char *const asked[] = { "dataset", "samples", "epochs", "steps" };

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        json_object_del(o, asked[i]);
    json_object_set_new(o, "samples", json_integer(t->sampler.n));
    json_object_set_new(o, "dataset_hash", json_string(t->set ? t->set->train_hash : t->qa.hash));
    json_object_set_new(o, "epochs",
                        json_integer((t->total_steps + t->epoch_steps - 1) / t->epoch_steps));
    json_object_set_new(o, "steps", json_integer(t->total_steps));
}

/* The parameters that are in force, without the places of files, and how many bits draw an element of dropout: it was 32, said nowhere. */
static json_t *values_in_force(const struct wk_train *t)
{
    json_t *o = wk_config_encode(t->config), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(o, next, key, value)
        if (is_place(key))
            json_object_del(o, key);
    set_size(o, t->kind->size);
    if (t->config->dropout)
        json_object_set_new(o, "dropout_bits", json_integer(WK_DROP_BITS));
    return o;
}

json_t *wk_identity_training(const struct wk_train *t)
{
    const struct wk_config *c = t->config;
    json_t *o = values_in_force(t), *value;
    const char *key;
    void *next;

    json_object_foreach_safe(o, next, key, value)
        if (is_watching(key) || is_sharing(key))
            json_object_del(o, key);
    json_object_set_new(o, "global_batch",
                        json_integer(c->batch_size * c->accumulate * t->comm->world));
    if (t->kind->n_buffers && !c->sync_batchnorm) /* statistics of a rank's batch */
        json_object_set_new(o, "batch_size", json_integer(c->batch_size));
    set_found(o, t);
    return o;
}

/* All that a file in a folder is for: no two cells share one. A new reference. */
static json_t *identity_of_cell(const struct wk_train *t)
{
    const struct wk_result *r = t->result;
    json_t *o = values_in_force(t), *known = wk_config_encode(t->config), *value;
    const char *key;

    json_object_foreach(t->config->given, key, value)
        if (key[0] != '_' && !is_place(key) && !json_object_get(known, key)) /* of hpcgrid */
            json_object_set(o, key, value);
    json_decref(known);
    set_found(o, t);
    json_object_set_new(o, "test_samples",
                        json_integer(t->set ? t->set->test.n : (json_int_t)t->qa.test.n));
    json_object_del(o, "tasks_per_node");
    json_object_del(o, "dp_devices");
    json_object_set_new(o, "nodes", json_integer(wk_places_nodes(r->places, r->n_places)));
    json_object_set_new(o, "world", json_integer(t->comm->world));
    return o;
}

static char *identity_text(const struct wk_train *t)
{
    json_t *o = identity_of_cell(t);
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(o, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    json_decref(o);
    return hg_buf_detach(&text);
}

char *wk_identity_file(const struct wk_train *t)
{
    const char *path = t->config->checkpoint;
    char hash[33], *text;

    if (hg_text_ends_with(path, SUFFIX))
        return hg_strdup(path);
    text = identity_text(t);
    hg_hash128_hex(text, strlen(text), hash);
    free(text);
    return hg_str_printf("%s/%s-%.12s" SUFFIX, path, t->config->model, hash);
}

/* Another number of ranks may resume if the batches of all of them make the same step. */
static void say_batch(const struct wk_train *t, long long batch, struct hg_err *err)
{
    long long passes = t->comm->world * t->config->accumulate;
    char here[64];

    snprintf(here, sizeof here, "%d rank%s%s", t->comm->world, t->comm->world == 1 ? "" : "s",
             t->config->accumulate > 1 ? " and accumulate" : "");
    if (batch > 0 && batch % passes == 0)
        hg_err_hint(err, "with %s, batch_size %lld can resume it", here, batch / passes);
    else
        hg_err_hint(err,
                    "%lld samples cannot be divided evenly among %s: use a number of ranks "
                    "that divides them, or remove it to start over",
                    batch, here);
}

int wk_identity_differ(const struct wk_train *t, const json_t *theirs, const json_t *ours,
                       struct hg_err *err)
{
    struct hg_buf a = HG_BUF_INIT, b = HG_BUF_INIT;
    const char *key;
    json_t *value;
    json_t *all = json_copy((json_t *)(uintptr_t)theirs);

    hg_err_hint(err, "remove it to start over, or name another \"checkpoint\"");
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
                   "the checkpoint belongs to another training: %s is %s there and %s here", key,
                   x ? hg_buf_str(&a) : "absent", y ? hg_buf_str(&b) : "absent");
        if (strcmp(key, "global_batch") == 0)
            say_batch(t, (long long)json_integer_value(x), err);
        break;
    }
    if (err && !err->code)
        hg_err_set(err, HG_E_INPUT, "the checkpoint belongs to another training");
    hg_err_at(err, t->checkpoint, "");
    json_decref(all);
    hg_buf_done(&a);
    hg_buf_done(&b);
    return -1;
}
