/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/comparable.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

/* ---- What they computed ---- */

/* Members of a cell that replace those that a result's `comparable` does not have. */
static const char *const comparable_keys[] = { "precision", "tf32",    "global_batch",
                                               "seq_len",   "padding", "gelu",
                                               "epochs",    "dataset", "revision" };

const json_t *hg_comparable_get(const struct hg_result *result, const char *key)
{
    const json_t *value = json_object_get(result->comparable, key);

    if (!value)
        value = json_object_get(result->cell, key);
    return json_is_null(value) ? NULL : value;
}

bool hg_comparable_is_same(const struct hg_result *own, const struct hg_result *other,
                           const char *key)
{
    const json_t *a = hg_comparable_get(own, key), *b = hg_comparable_get(other, key);

    return a == b || (a && b && hg_json_equal(a, b));
}

static bool is_comparable_key(const char *key)
{
    for (size_t i = 0; i < sizeof comparable_keys / sizeof *comparable_keys; i++)
        if (strcmp(comparable_keys[i], key) == 0)
            return true;
    return false;
}

void hg_comparable_each(const struct hg_result *a, const struct hg_result *b,
                        void (*see)(void *context, const char *key), void *context)
{
    const struct hg_result *sides[2] = { a, b };
    const char *key;
    json_t *value;

    for (size_t i = 0; i < sizeof comparable_keys / sizeof *comparable_keys; i++)
        see(context, comparable_keys[i]);
    for (size_t i = 0; i < 2; i++) {
        json_object_foreach((json_t *)sides[i]->comparable, key, value) {
            if (!is_comparable_key(key))
                see(context, key);
        }
    }
}

struct likeness {
    const struct hg_result *a, *b;
    bool (*ignored)(const void *context, const char *key);
    const void *context;
    bool differs;
};

static void compare_key(void *context, const char *key)
{
    struct likeness *l = context;

    if (strcmp(key, "global_batch") != 0 && !l->ignored(l->context, key) &&
        !hg_comparable_is_same(l->a, l->b, key))
        l->differs = true;
}

bool hg_comparable_is_like(const struct hg_result *a, const struct hg_result *b,
                           bool (*ignored)(const void *context, const char *key),
                           const void *context)
{
    struct likeness l = { a, b, ignored, context, false };

    hg_comparable_each(a, b, compare_key, &l);
    return !l.differs;
}

/* ---- What they ran on ---- */

/* Members of a result's `env` that describe what it ran on. */
static const char *const env_keys[] = { "gpu",   "cpu",    "driver", "cuda",   "nccl",
                                        "cudnn", "cublas", "mpi",    "kernel", "modules" };

/* Numbers of `env` that drift by themselves: reported if they differ by more than this fraction. */
#define CLOCK_TOLERANCE 0.02

static bool is_clock(const char *key)
{
    return strstr(key, "clock") || strstr(key, "mhz") || strstr(key, "power_limit");
}

static bool is_env_key(const char *key)
{
    for (size_t i = 0; i < sizeof env_keys / sizeof *env_keys; i++)
        if (strcmp(env_keys[i], key) == 0)
            return true;
    return is_clock(key);
}

static const json_t *env_value(const struct hg_result *result, const char *key)
{
    return json_object_get(result->env, key);
}

/* Only members that both have can differ. */
static bool env_differs(const struct hg_result *own, const struct hg_result *other, const char *key)
{
    const json_t *a = env_value(own, key), *b = env_value(other, key);
    double x = json_number_value(a), y = json_number_value(b);

    if (!a || !b || json_is_null(a) || json_is_null(b))
        return false;
    if (is_clock(key) && json_is_number(a) && json_is_number(b))
        return fabs(x - y) > CLOCK_TOLERANCE * fmax(fabs(x), fabs(y));
    return !hg_json_equal(a, b);
}

void hg_comparable_each_env(const struct hg_result *own, const struct hg_result *other,
                            void (*see)(void *context, const char *key, const json_t *mine,
                                        const json_t *theirs),
                            void *context)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)own->env, key, value) {
        if (is_env_key(key) && env_differs(own, other, key))
            see(context, key, value, env_value(other, key));
    }
    if (own->device && other->device && strcmp(own->device, other->device) != 0) {
        json_t *mine = hg_json_text(own->device), *theirs = hg_json_text(other->device);

        see(context, "device", mine, theirs);
        json_decref(mine);
        json_decref(theirs);
    }
}
