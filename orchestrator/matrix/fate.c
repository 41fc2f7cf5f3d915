/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/fate.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "contract/keys.h"
#include "matrix/params.h"

struct hg_fates {
    const struct hg_grid *g;
    bool worker;            /* the program is hpcgrid-worker */
    bool *option;           /* per column: an option of some strategies only */
    int devices;            /* column of the parameter dp_devices, -1: none */
    hg_value strategy_name; /* looked up last; ABSENT: none yet */
    const struct hg_strategy *strategy;
    hg_value time; /* read last; ABSENT: none yet */
    double time_s;
    struct hg_buf why;
};

struct hg_fates *hg_fates_create(const struct hg_grid *g, bool worker)
{
    struct hg_fates *f = hg_alloc_zeroed(1, sizeof *f);

    f->g = g;
    f->worker = worker;
    f->strategy_name = HG_VALUE_ABSENT;
    f->time = HG_VALUE_ABSENT;
    f->devices = hg_grid_column(g, "dp_devices");
    f->option = hg_alloc_zeroed(g->columns.n, sizeof *f->option);
    for (size_t i = 0; i < g->columns.n; i++)
        f->option[i] = worker && hg_param_is_option(g->columns.items[i].name);
    return f;
}

void hg_fates_free(struct hg_fates *f)
{
    if (!f)
        return;
    free(f->option);
    hg_buf_done(&f->why);
    free(f);
}

static bool because(struct hg_fates *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool because(struct hg_fates *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&f->why, fmt, ap);
    va_end(ap);
    return true;
}

static bool too_big_for_node(struct hg_fates *f, const struct hg_hardware *hw,
                             const hg_value *values)
{
    double gpus = hg_value_number(values[HG_COLUMN_GPUS_PER_NODE]);
    double tasks = hg_value_number(values[HG_COLUMN_TASKS_PER_NODE]);
    double cpus = hg_value_number(values[HG_COLUMN_CPUS_PER_TASK]);
    double per_gpu = hg_value_number(values[HG_COLUMN_CPUS_PER_GPU]);

    if (gpus > 0 && !hw->gpus_per_node)
        return because(f, "%.0f GPU%s per node requested, %s has none", gpus,
                       hg_text_s((unsigned long long)gpus), hw->name);
    if (gpus > (double)hw->gpus_per_node)
        return because(f, "%.0f GPU%s per node requested, %s has %lld", gpus,
                       hg_text_s((unsigned long long)gpus), hw->name, hw->gpus_per_node);
    if (!hw->cores_per_node)
        return false;
    if (tasks * cpus > (double)hw->cores_per_node)
        return because(f, "%.0f task%s with %.0f core%s each requested, a node of %s has %lld",
                       tasks, hg_text_s((unsigned long long)tasks), cpus,
                       hg_text_s((unsigned long long)cpus), hw->name, hw->cores_per_node);
    if (gpus * per_gpu > (double)hw->cores_per_node)
        return because(f, "%.0f GPU%s with %.0f core%s each requested, a node of %s has %lld", gpus,
                       hg_text_s((unsigned long long)gpus), per_gpu,
                       hg_text_s((unsigned long long)per_gpu), hw->name, hw->cores_per_node);
    return false;
}

/* Seconds; 0: the cell asks for none. */
static double time_of(struct hg_fates *f, hg_value time)
{
    const char *text;

    if (time == f->time)
        return f->time_s;
    text = hg_pool_string(f->g->pool, time);
    f->time = time;
    f->time_s = text ? 0 : hg_value_number(time);
    if (text)
        hg_text_duration_parse(text, &f->time_s, NULL);
    return f->time_s;
}

static bool too_much_for_job(struct hg_fates *f, const struct hg_hardware *hw,
                             const hg_value *values)
{
    double nodes = hg_value_number(values[HG_COLUMN_NODES]);
    char asked[32];

    if (hw->max_nodes && nodes > (double)hw->max_nodes)
        return because(f, "%.0f nodes requested, a job on %s may have %lld", nodes, hw->name,
                       hw->max_nodes);
    if (!hw->max_time || !(time_of(f, values[HG_COLUMN_TIME]) > hw->max_time_s))
        return false;
    hg_text_duration_slurm(f->time_s, asked);
    return because(f, "a time limit of %s requested, a job on %s may have %s", asked, hw->name,
                   hw->max_time);
}

static bool above(struct hg_fates *f, const char *strategy, double n, int limit, const char *one,
                  const char *many)
{
    if (!limit || n <= limit)
        return false;
    return because(f, "strategy %s runs on at most %d %s, %.0f requested", strategy, limit,
                   limit == 1 ? one : many, n);
}

/* A value that "derive" made for {{key...}} or {{key?text}}. */
static bool wrong_for_command(struct hg_fates *f, const hg_value *values)
{
    for (size_t i = 0; i < f->g->derives.n; i++) {
        const struct hg_column *c = &f->g->columns.items[f->g->derives.items[i].column];
        hg_value value = values[f->g->derives.items[i].column];
        char scratch[32];
        const char *text;
        size_t len;

        if ((!c->list && !c->flag) || hg_value_is_absent(value))
            continue;
        text = hg_pool_text(f->g->pool, value, scratch, &len);
        if (c->list && text[0] != '[')
            return because(f, "{{%s...}}: %.*s is not a list", c->name, (int)len, text);
        if (c->flag && text[0] != 't' && text[0] != 'f')
            return because(f, "{{%s?...}}: %.*s is not true or false", c->name, (int)len, text);
    }
    return false;
}

/* An option that only other strategies have would be refused by the worker. */
static bool wrong_option(struct hg_fates *f, const hg_value *values)
{
    for (size_t i = HG_KEY_COUNT; i < f->g->columns.n; i++) {
        const char *name = f->g->columns.items[i].name;

        if (f->option[i] && !hg_value_is_absent(values[i]) &&
            !hg_strategy_has_option(f->strategy->name, name))
            return because(f, "strategy %s has no %s, that is an option of %s", f->strategy->name,
                           name, hg_option_owners(name));
    }
    return false;
}

static bool wrong_for_strategy(struct hg_fates *f, const hg_value *values)
{
    double nodes = hg_value_number(values[HG_COLUMN_NODES]);
    double per_node = hg_value_number(values[HG_COLUMN_TASKS_PER_NODE]), tasks = nodes * per_node;
    double gpus_per_node = hg_value_number(values[HG_COLUMN_GPUS_PER_NODE]);
    double gpus = nodes * gpus_per_node;
    const struct hg_strategy *s = f->strategy;

    if (above(f, s->name, nodes, s->max_nodes, "node", "nodes") ||
        above(f, s->name, gpus > 0 ? gpus : tasks, s->max_devices, "device", "devices") ||
        above(f, s->name, tasks, s->max_tasks, "task", "tasks"))
        return true;
    if (wrong_option(f, values))
        return true;
    if (f->devices >= 0 && gpus_per_node > 0 && hg_value_number(values[f->devices]) > gpus_per_node)
        return because(f, "%.0f devices requested, the cell has %.0f GPU%s per node",
                       hg_value_number(values[f->devices]), gpus_per_node,
                       hg_text_s((unsigned long long)gpus_per_node));
    if (s->max_tasks == 1 || gpus_per_node <= 0 || per_node == gpus_per_node)
        return false;
    return because(
        f, "strategy %s runs one task per GPU, %.0f task%s and %.0f GPU%s per node requested",
        s->name, per_node, hg_text_s((unsigned long long)per_node), gpus_per_node,
        hg_text_s((unsigned long long)gpus_per_node));
}

static const struct hg_strategy *look_up_strategy(struct hg_fates *f, hg_value name)
{
    const char *text;

    if (name == f->strategy_name)
        return f->strategy;
    text = hg_pool_string(f->g->pool, name);
    f->strategy_name = name;
    f->strategy = text ? hg_strategy_find(text) : NULL;
    return f->strategy;
}

const char *hg_fate_why_not_at(struct hg_fates *f, const struct hg_site *site,
                               const hg_value *values)
{
    const char *hardware = hg_pool_string(f->g->pool, values[HG_COLUMN_HARDWARE]);

    hg_buf_clear(&f->why);
    if (hardware && !hg_site_find_hardware(site, hardware))
        because(f, "site %s has no hardware \"%s\"", site->name, hardware);
    else if (!hg_value_is_absent(values[HG_COLUMN_CONTAINER]) && !site->container)
        because(f, "site %s does not say how to run in a container", site->name);
    return f->why.len ? hg_buf_str(&f->why) : NULL;
}

const char *hg_fate_why_not(struct hg_fates *f, const struct hg_hardware *hw,
                            const hg_value *values)
{
    hg_buf_clear(&f->why);
    if (f->worker)
        look_up_strategy(f, values[HG_COLUMN_STRATEGY]);
    if (too_big_for_node(f, hw, values) || too_much_for_job(f, hw, values) ||
        wrong_for_command(f, values) || (f->worker && f->strategy && wrong_for_strategy(f, values)))
        return hg_buf_str(&f->why);
    return NULL;
}
