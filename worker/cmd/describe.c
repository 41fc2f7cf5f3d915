/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker describe: what this build can do. */
#include <string.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "models/models.h"
#include "strategies/strategies.h"
#include "train/revision.h"

/* No limit is null. */
static json_t *limit(int n)
{
    return n ? json_integer(n) : json_null();
}

static json_t *describe_strategy(const struct wk_strategy_limits *s)
{
    json_t *options = json_array();

    for (const struct wk_strategy_option *o = wk_strategy_option_list; o->strategy; o++)
        if (strcmp(o->strategy, s->name) == 0)
            json_array_append_new(options, json_string(o->parameter));
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", s->name, "summary", s->summary,
                     "max_nodes", limit(s->max_nodes), "max_tasks", limit(s->max_tasks),
                     "max_devices", limit(s->max_devices), "options", options);
}

static json_t *describe_models(void)
{
    json_t *models = json_array();

    for (const struct wk_model_entry *m = wk_models; m->name; m++) {
        const struct wk_model_kind *kind = wk_model_get(m->name, NULL);

        if (kind)
            json_array_append_new(models, json_pack("{s:s, s:s, s:I}", "name", m->name, "summary",
                                                    m->summary, "parameters",
                                                    (json_int_t)wk_model_n(kind)));
        wk_model_free(kind);
    }
    return models;
}

static json_t *describe_all(void)
{
    json_t *strategies = json_array(), *backends = json_array();

    for (const struct wk_strategy_limits *s = wk_strategy_limits; s->name; s++)
        json_array_append_new(strategies, describe_strategy(s));
    for (const struct wk_backend *const *b = wk_backends; *b; b++)
        json_array_append_new(
            backends, json_pack("{s:s, s:s}", "name", (*b)->name, "summary", (*b)->summary));
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "revision", WK_REVISION, "precision",
                     WK_PRECISION, "models", describe_models(), "strategies", strategies,
                     "backends", backends);
}

static bool json = true; /* the only format */

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;

    (void)argc;
    (void)argv;
    wk_cmd_print_json(describe_all(), HG_JSON_INDENT, &err);
    return hg_errs_add(errs, &err);
}

const struct wk_cmd wk_cmd_describe = {
    .name = "describe",
    .summary = "models, strategies and backends of this build, as JSON",
    .opts = (const struct hg_opt[]){ { HG_OPT_FLAG, 0, "json", &json, NULL, "print JSON", 0, 0 },
                                     { 0 } },
    .run = run,
};
