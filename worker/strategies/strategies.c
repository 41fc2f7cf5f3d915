/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/strategies.h"

#include <string.h>

#include "base/text.h"

/* A kind is called wk_strategy_NAME. */
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) \
    extern const struct wk_strategy_kind wk_strategy_##name;
#include "contract/strategies.def"
#undef HG_STRATEGY

static const struct wk_strategy_kind *const kinds[] = {
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) &wk_strategy_##name,
#include "contract/strategies.def"
#undef HG_STRATEGY
};

const struct wk_strategy_limits wk_strategy_limits[] = {
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) \
    { #name, max_nodes, max_tasks, max_devices, summary },
#include "contract/strategies.def"
#undef HG_STRATEGY
    { 0 },
};

#define N_LIMITS (sizeof wk_strategy_limits / sizeof *wk_strategy_limits - 1)

const struct wk_strategy_option wk_strategy_option_list[] = {
#define HG_STRATEGY_OPTION(strategy, parameter) { #strategy, #parameter },
#include "contract/strategy_options.def"
#undef HG_STRATEGY_OPTION
    { 0 },
};

bool wk_strategy_is_option(const char *parameter)
{
    for (const struct wk_strategy_option *o = wk_strategy_option_list; o->strategy; o++)
        if (strcmp(o->parameter, parameter) == 0)
            return true;
    return false;
}

bool wk_strategy_has_option(const char *strategy, const char *parameter)
{
    for (const struct wk_strategy_option *o = wk_strategy_option_list; o->strategy; o++)
        if (strcmp(o->parameter, parameter) == 0 && strcmp(o->strategy, strategy) == 0)
            return true;
    return !wk_strategy_is_option(parameter);
}

const struct wk_strategy_limits *wk_strategy_find(const char *name)
{
    for (size_t i = 0; i < N_LIMITS; i++)
        if (strcmp(wk_strategy_limits[i].name, name) == 0)
            return &wk_strategy_limits[i];
    return NULL;
}

static void unknown_strategy(const char *name, struct hg_err *err)
{
    const char *names[N_LIMITS];

    for (size_t i = 0; i < N_LIMITS; i++)
        names[i] = wk_strategy_limits[i].name;
    hg_err_set(err, HG_E_INPUT, "unknown strategy \"%s\"", name);
    hg_text_suggest(err, name, names, N_LIMITS);
}

const struct wk_strategy_kind *wk_strategy_get(const char *name, int world, struct hg_err *err)
{
    const struct wk_strategy_limits *limits = wk_strategy_find(name);

    if (!limits) {
        unknown_strategy(name, err);
        return NULL;
    }
    if (limits->max_tasks && world > limits->max_tasks) {
        hg_err_set(err, HG_E_INPUT,
                   "strategy %s runs as one rank, %d were started: each would train alone", name,
                   world);
        hg_err_hint(err, "use strategy \"ddp\", or one task");
        return NULL;
    }
    return kinds[limits - wk_strategy_limits];
}

struct wk_strategy_options wk_strategy_defaults(const char *name, bool framework)
{
    struct wk_strategy_options o = { .bucket_mib = 25, .first_bucket_mib = 1 };
    bool stage_3 = strcmp(name, "deepspeed_stage_3") == 0;
    bool zero = strncmp(name, "deepspeed", 9) == 0 && !stage_3;

    o.reduce_elems = framework ? 200e6 : 25 * 1024 * 1024 / 4.0;
    o.bucket_copies = framework && strcmp(name, "ddp") == 0;
    o.wrap_model = framework && strcmp(name, "fsdp") == 0;
    o.all_reduce = o.framework_state = framework && zero;
    o.prefetch_elems = 5e7;
    if (framework && stage_3) {
        o.persistence_threshold = 1e5;
        o.max_live = o.max_reuse_distance = 1e9;
    }
    return o;
}
