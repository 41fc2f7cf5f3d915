/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/params.h"

#include <stdio.h>
#include <string.h>

const struct hg_strategy hg_strategies[] = {
#define HG_STRATEGY(name, max_nodes, max_tasks, max_devices, summary) \
    { #name, max_nodes, max_tasks, max_devices, summary },
#include "contract/strategies.def"
#undef HG_STRATEGY
    { 0 },
};

const struct hg_param hg_params[] = {
#define HG_WORKER_PARAM(kind, name, min, max, doc) { #name, HG_PARAM_##kind, min, max, doc },
#include "contract/worker_params.def"
#undef HG_WORKER_PARAM
    { 0 },
};

static const struct {
    const char *param, *word;
} words[] = {
#define HG_WORKER_WORD(param, word) { #param, word },
#include "contract/worker_words.def"
#undef HG_WORKER_WORD
};
#define N_WORDS (sizeof words / sizeof *words)

static const struct {
    const char *strategy, *name;
} options[] = {
#define HG_STRATEGY_OPTION(strategy, parameter) { #strategy, #parameter },
#include "contract/strategy_options.def"
#undef HG_STRATEGY_OPTION
};
#define N_OPTIONS (sizeof options / sizeof *options)

const struct hg_strategy *hg_strategy_find(const char *name)
{
    for (const struct hg_strategy *s = hg_strategies; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

bool hg_param_is_option(const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

bool hg_strategy_has_option(const char *strategy, const char *name)
{
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].strategy, strategy) == 0 && strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

const char *hg_option_owners(const char *name)
{
    static char out[256];
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (strcmp(options[i].name, name) == 0 && used + 32 < sizeof out)
            used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", used ? ", " : "",
                                     options[i].strategy);
    return out;
}

const struct hg_param *hg_param_find(const char *name)
{
    for (const struct hg_param *p = hg_params; p->name; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

size_t hg_param_words(const struct hg_param *p, size_t max, const char *out[])
{
    size_t n = 0;

    for (size_t i = 0; i < N_WORDS && n < max; i++)
        if (strcmp(words[i].param, p->name) == 0)
            out[n++] = words[i].word;
    return n;
}
