/* SPDX-License-Identifier: Apache-2.0 */
#include "results/inputs.h"

#include <ctype.h>
#include <string.h>

#include "results/metric.h"

const char *const hg_inputs_keys[] = {
    "precision",
    "tf32",
    "global_batch",
    "batch_size",
    "seq_len",
    "padding",
    "gelu",
    "epochs",
    "dataset",
    "revision",
    "model",
    "dtype",
    "amp",
    "dropout",
    "max_length",
    "parameters",
    "compile",
    "optimizer",
    "dataset_size",
    "num_samples",
    "gradient_accumulation_steps",
    "trainable_parameters",
    "fp16",
    "bf16",
    "gradient_checkpointing",
    NULL,
};

/* What trainers (transformers, accelerate, Lightning) call the same. */
static const struct {
    const char *theirs, *ours;
} aliases[] = {
    { "mixed_precision", "precision" },
    { "per_device_train_batch_size", "batch_size" },
    { "global_batch_size", "global_batch" },
    { "max_seq_length", "seq_len" },
    { "max_seq_len", "seq_len" },
    { "sequence_length", "seq_len" },
    { "num_train_epochs", "epochs" },
    { "num_epochs", "epochs" },
    { "n_epochs", "epochs" },
    { "max_epochs", "epochs" },
    { "dataset_name", "dataset" },
    { "model_name", "model" },
    { "model_name_or_path", "model" },
    { "num_parameters", "parameters" },
    { "optim", "optimizer" },
};

/* Objects in which trainers keep their settings. */
static const char *const settings[] = {
    "settings", "config", "args", "hparams", "hyperparameters", "params", NULL,
};

/* Members of `env` that describe hardware and software, besides versions and clocks. */
static const char *const env_keys[] = {
    "gpu",      "cpu",      "driver",    "cuda",      "nccl",         "cudnn",       "cublas",
    "blas",     "mpi",      "kernel",    "machine",   "os",           "modules",     "container",
    "image",    "python",   "torch",     "pytorch",   "jax",          "torchvision", "tensorflow",
    "numpy",    "xformers", "lightning", "deepspeed", "transformers", "accelerate",  "framework",
    "compiler", "cublaslt", "triton",    "apex",      "flash_attn",   NULL,
};

bool hg_inputs_is_network(const char *variable)
{
    static const char *const prefixes[] = {
        "NCCL_", "UCX_", "OMPI_MCA_", "FI_", "GLOO_", "MPICH_"
    };

    if (strstr(variable, "DEBUG") || strstr(variable, "_LOG"))
        return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool is_platform(const char *key)
{
    static const char *const parts[] = { "version",  "clock",       "mhz", "power_limit",
                                         "throttle", "NUM_THREADS", NULL };

    for (size_t i = 0; env_keys[i]; i++)
        if (strcmp(env_keys[i], key) == 0)
            return true;
    for (size_t i = 0; parts[i]; i++) {
        const char *found = strstr(key, parts[i]);

        if (found && (found == key || !isalpha((unsigned char)found[-1])))
            return true;
    }
    return hg_inputs_is_network(key);
}

/* Beside `env` the same names may be something else: a time, a host's name, a device's index, per cent of the cores. */
static bool is_platform_beside(const char *key, const json_t *value)
{
    if (json_is_object(value) || json_is_array(value) || hg_metric_is_time(key) ||
        strncmp(key, "wall", 4) == 0 || strcmp(key, "machine") == 0)
        return false;
    return is_platform(key) &&
           !(json_is_number(value) && (strcmp(key, "gpu") == 0 || strcmp(key, "cpu") == 0));
}

/* Add a member to an object that may not be there yet. */
static void add(json_t **object, const char *key, json_t *value)
{
    if (!value || json_is_null(value))
        return;
    if (!*object)
        *object = json_object();
    json_object_set(*object, key, value);
}

/* Those that are not there yet. */
static void add_inputs(json_t **inputs, const json_t *from)
{
    for (size_t i = 0; hg_inputs_keys[i]; i++)
        if (!json_object_get(*inputs, hg_inputs_keys[i]))
            add(inputs, hg_inputs_keys[i], json_object_get(from, hg_inputs_keys[i]));
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!json_object_get(*inputs, aliases[i].ours))
            add(inputs, aliases[i].ours, json_object_get(from, aliases[i].theirs));
}

json_t *hg_inputs_find(const json_t *entry)
{
    json_t *inputs = NULL;

    add_inputs(&inputs, entry);
    for (size_t i = 0; settings[i]; i++)
        if (json_object_get(entry, settings[i]))
            add_inputs(&inputs, json_object_get(entry, settings[i]));
    return inputs;
}

json_t *hg_inputs_platform(const json_t *entry)
{
    json_t *platform = NULL, *value;
    const char *key;

    json_object_foreach((json_t *)entry, key, value) {
        if (is_platform_beside(key, value))
            add(&platform, key, value);
    }
    json_object_foreach(json_object_get(entry, "env"), key, value) {
        if (is_platform(key))
            add(&platform, key, value);
    }
    return platform;
}
