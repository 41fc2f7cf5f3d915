/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/comparable.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "results/inputs.h"

/* ---- What they computed ---- */

const json_t *hg_comparable_get(const struct hg_result *result, const char *key)
{
    const json_t *value = json_object_get(result->comparable, key);

    if (!value)
        value = json_object_get(result->cell, key);
    if (!value)
        value = json_object_get(result->inputs, key);
    return json_is_null(value) ? NULL : value;
}

/* The same for each device, or in all. Without a global batch; with one that is compared. */
static bool is_batch_same(const struct hg_result *a, const struct hg_result *b)
{
    double x = json_number_value(hg_comparable_get(a, "batch_size"));
    double y = json_number_value(hg_comparable_get(b, "batch_size"));

    return (hg_comparable_get(a, "global_batch") && hg_comparable_get(b, "global_batch")) ||
           fabs(x * a->devices - y * b->devices) < 0.5;
}

/* "BF16" is bf16. */
static bool is_equal(const json_t *a, const json_t *b)
{
    return json_is_string(a) && json_is_string(b)
               ? strcasecmp(json_string_value(a), json_string_value(b)) == 0
               : hg_json_equal(a, b);
}

bool hg_comparable_is_same(const struct hg_result *own, const struct hg_result *other,
                           const char *key)
{
    const json_t *a = hg_comparable_get(own, key), *b = hg_comparable_get(other, key);

    return a == b || (a && b && is_equal(a, b)) ||
           (strcmp(key, "batch_size") == 0 && is_batch_same(own, other));
}

static bool is_input(const char *key)
{
    for (size_t i = 0; hg_inputs_keys[i]; i++)
        if (strcmp(hg_inputs_keys[i], key) == 0)
            return true;
    return false;
}

void hg_comparable_each(const struct hg_result *a, const struct hg_result *b,
                        void (*see)(void *context, const char *key), void *context)
{
    const struct hg_result *sides[2] = { a, b };
    const char *key;
    json_t *value;

    for (size_t i = 0; hg_inputs_keys[i]; i++)
        see(context, hg_inputs_keys[i]);
    for (size_t i = 0; i < 2; i++) {
        json_object_foreach((json_t *)sides[i]->comparable, key, value) {
            if (!is_input(key))
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

/* Libraries that only several devices need. */
static const char *const comm_keys[] = { "nccl", "mpi" };

/* Numbers of `env` that drift by themselves: reported if they differ by more than this fraction. */
#define CLOCK_TOLERANCE 0.02

static bool is_clock(const char *key)
{
    return strstr(key, "clock") || strstr(key, "mhz") || strstr(key, "power_limit");
}

static bool is_one_of(const char *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}

static const json_t *env_value(const struct hg_result *result, const char *key)
{
    return json_object_get(result->platform, key);
}

static bool env_differs(const struct hg_result *own, const struct hg_result *other, const char *key)
{
    const json_t *a = env_value(own, key), *b = env_value(other, key);
    double x = json_number_value(a), y = json_number_value(b);

    if (!a || !b)
        return a != b && !is_one_of(comm_keys, sizeof comm_keys / sizeof *comm_keys, key);
    if (is_clock(key) && json_is_number(a) && json_is_number(b))
        return fabs(x - y) > CLOCK_TOLERANCE * fmax(fabs(x), fabs(y));
    return !is_equal(a, b);
}

void hg_comparable_each_env(const struct hg_result *own, const struct hg_result *other,
                            void (*see)(void *context, const char *key, const json_t *mine,
                                        const json_t *theirs),
                            void *context)
{
    const struct hg_result *sides[2] = { own, other };
    bool silent = own->platform == other->platform; /* equal values are kept once */
    const char *key;
    json_t *value;

    if (!silent && (!own->platform || !other->platform)) {
        value = json_string("given");
        see(context, "env", own->platform ? value : NULL, own->platform ? NULL : value);
        json_decref(value);
        silent = true;
    }
    for (size_t i = 0; i < 2 && !silent; i++)
        json_object_foreach((json_t *)sides[i]->platform, key, value) {
            if ((i == 0 || !env_value(own, key)) && env_differs(own, other, key))
                see(context, key, env_value(own, key), env_value(other, key));
        }
    if (own->device && other->device && strcasecmp(own->device, other->device) != 0) {
        json_t *mine = hg_json_text(own->device), *theirs = hg_json_text(other->device);

        see(context, "device", mine, theirs);
        json_decref(mine);
        json_decref(theirs);
    }
}
