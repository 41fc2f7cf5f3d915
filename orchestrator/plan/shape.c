/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "contract/sbatch.h"
#include "matrix/cell.h"
#include "matrix/judge.h"
#include "plan/rehearse.h"

/* ---- sbatch options as typed ---- */

static void push_options(const json_t *value, struct hg_shape *s)
{
    struct hg_words words = HG_WORDS_INIT;

    hg_member_words(value, &words);
    for (size_t i = 0; i < words.n; i++) {
        long lead = hg_sbatch_signal_lead(words.items[i]);

        if (lead >= 0)
            s->signal_lead_s = lead;
        else
            hg_words_push(&s->extra, words.items[i]);
    }
    hg_words_done(&words);
}

static void push_strings(char *const *strings, struct hg_words *out)
{
    for (; strings && *strings; strings++)
        hg_words_push(out, *strings);
}

/* ---- Numbers: the cell was judged when the matrix was read ---- */

static long long count_of(const json_t *cell, const char *key, long long otherwise)
{
    const json_t *value = json_object_get(cell, key);

    return value ? (long long)json_number_value(value) : otherwise;
}

static long long mib_of(const char *text, long long times)
{
    uint64_t bytes = 0;

    hg_text_size_parse(text, &bytes, NULL);
    return (long long)ceil((double)bytes * (double)times / (1 << 20));
}

static void fill_memory(const json_t *cell, struct hg_shape *s)
{
    const char *mem = json_string_value(json_object_get(cell, "mem"));

    s->own_mem = mem != NULL;
    if (mem)
        s->mem_mib = mib_of(mem, 1);
    else if (s->hw->mem_per_gpu && s->gpus_per_node)
        s->mem_mib = mib_of(s->hw->mem_per_gpu, s->gpus_per_node);
}

/* The CPUs of a task: as the cell says, else the share of the node's CPUs that belongs to its GPUs,
 * else 1. */
static void fill_cpus(const json_t *cell, struct hg_shape *s)
{
    long long per_gpu = count_of(cell, "cpus_per_gpu", s->hw->cpus_per_gpu), share = 1;

    if (per_gpu && s->gpus_per_node)
        share = (per_gpu * s->gpus_per_node + s->tasks_per_node - 1) / s->tasks_per_node;
    s->own_cpus =
        !per_gpu || per_gpu != s->hw->cpus_per_gpu || json_object_get(cell, "cpus_per_task");
    s->cpus_per_task = count_of(cell, "cpus_per_task", share);
}

/* A box has no modules. */
static void lose_foreign(struct hg_shape *s)
{
    hg_rehearse_options(&s->extra, &s->lost);
    for (size_t i = 0; i < s->modules.n; i++) {
        char *text = hg_str_printf("module %s", s->modules.items[i]);

        hg_words_push(&s->lost, text);
        free(text);
    }
    hg_words_cut(&s->modules, 0);
}

void hg_shape_make(const struct hg_site *site, const json_t *cell, struct hg_shape *s)
{
    *s = (struct hg_shape){ .time_s = hg_cell_time_s(cell),
                            .auto_time = hg_cell_time_is_auto(cell) };
    s->hw = hg_site_find_hardware(site, json_string_value(json_object_get(cell, "hardware")));
    s->nodes = count_of(cell, "nodes", 1);
    s->gpus_per_node = s->hw->gpus_per_node ? count_of(cell, "gpus_per_node", 1) : 0;
    s->tasks_per_node = count_of(cell, "tasks_per_node", s->gpus_per_node ? s->gpus_per_node : 1);
    fill_cpus(cell, s);
    fill_memory(cell, s);
    push_strings(site->extra, &s->extra);
    push_strings(site->modules, &s->modules);
    push_options(json_object_get(cell, "sbatch"), s);
    hg_member_words(json_object_get(cell, "modules"), &s->modules);
    if (site->rehearsal)
        lose_foreign(s);
}

void hg_shape_done(struct hg_shape *s)
{
    hg_words_done(&s->extra);
    hg_words_done(&s->modules);
    hg_words_done(&s->lost);
}

static void key_words(const char *name, const struct hg_words *words, struct hg_buf *out)
{
    for (size_t i = 0; i < words->n; i++) {
        hg_buf_printf(out, " %s=", name);
        hg_json_dump_string(words->items[i], strlen(words->items[i]), out);
    }
}

void hg_shape_key(const struct hg_shape *s, struct hg_buf *out)
{
    hg_buf_printf(out, "%s %lldx%lld tasks=%lld cpus=%lld mem=%lld", s->hw->name, s->nodes,
                  s->gpus_per_node, s->tasks_per_node, s->cpus_per_task, s->mem_mib);
    if (s->time_s > 0)
        hg_buf_printf(out, " time=%.0f", s->time_s);
    if (s->auto_time)
        hg_buf_puts(out, " auto");
    if (s->signal_lead_s)
        hg_buf_printf(out, " signal=%lld", s->signal_lead_s);
    key_words("sbatch", &s->extra, out);
    key_words("module", &s->modules, out);
}

size_t hg_shape_key_same(const char *a, const char *b)
{
    size_t same = 0;

    for (size_t k = 0;; k++) {
        if ((!a[k] || a[k] == ' ') && (!b[k] || b[k] == ' '))
            same = k;
        if (!a[k] || a[k] != b[k])
            return same;
    }
}

/* ---- The job object ---- */

static void set_text(json_t *job, const char *key, const char *value)
{
    if (value && value[0])
        json_object_set_new(job, key, json_string(value));
}

static void set_count(json_t *job, const char *key, long long value)
{
    if (value)
        json_object_set_new(job, key, json_integer(value));
}

static void set_gres(json_t *job, const struct hg_shape *s)
{
    char text[256];

    if (!s->gpus_per_node)
        return;
    snprintf(text, sizeof text, "%s:%lld", s->hw->gres ? s->hw->gres : "gpu", s->gpus_per_node);
    set_text(job, "gres", text);
}

/* The number after "core:" in "Licenses=core:8,gold:1", a line of slurm.conf; 0 if it has none. */
static long long find_licenses(const char *line, const char *name, size_t n)
{
    static const char key[] = "Licenses=";

    if (strncasecmp(line, key, strlen(key)) != 0)
        return 0;
    line += strlen(key);
    while (strncmp(line, name, n) != 0) {
        line += strcspn(line, ", \t\n");
        if (*line++ != ',')
            return 0;
    }
    return strtoll(line + n, NULL, 10);
}

/* How many of a licence ("core:") the box has that is in use; it may have been started with other
 * CPUs than are ours. Without one: the CPUs that a box of ours would have. */
static long long licenses_there(const char *name, size_t n)
{
    const char *conf = getenv("SLURM_CONF");
    FILE *f = conf ? fopen(conf, "re") : NULL;
    long long there = 0;
    char *line = NULL;
    size_t cap = 0;

    while (f && !there && getline(&line, &cap, f) > 0)
        there = find_licenses(line, name, n);
    free(line);
    if (f)
        fclose(f);
    return there > 0 ? there : hg_proc_cpus();
}

/* "core:%": as many as the job computes on, at most those that are there. So cells of several
 * arrays do not share this machine's cores. */
static void set_licenses(json_t *job, const struct hg_shape *s, const struct hg_site *site)
{
    bool shrink = json_is_true(json_object_get(site->rehearsal, "shrink")); /* one thread a rank */
    long long wanted = s->nodes * s->tasks_per_node * (shrink ? 1 : s->cpus_per_task);
    const char *pattern = site->licenses;
    const char *mark = pattern ? strchr(pattern, '%') : NULL;
    const char *name = pattern;
    long long there;
    char text[256];

    if (!mark) {
        set_text(job, "licenses", pattern);
        return;
    }
    for (const char *p = pattern; p < mark; p++)
        name = *p == ',' ? p + 1 : name;
    there = licenses_there(name, (size_t)(mark - name));
    snprintf(text, sizeof text, "%.*s%lld%s", (int)(mark - pattern), pattern,
             wanted < there ? wanted : there, mark + 1);
    set_text(job, "licenses", text);
}

static json_t *words_json(const struct hg_words *words)
{
    json_t *list = json_array();

    for (size_t i = 0; i < words->n; i++)
        json_array_append_new(list, json_string(words->items[i]));
    return list;
}

long long hg_shape_lead_s(const struct hg_shape *s, const struct hg_site *site, bool worker)
{
    return s->signal_lead_s ? s->signal_lead_s : worker ? site->signal_lead_s : 0;
}

bool hg_shape_has_time(double time_s, long long lead_s)
{
    return time_s > (double)(lead_s + HG_SHAPE_EARLY_S);
}

json_t *hg_shape_job(const struct hg_shape *s, const struct hg_site *site, const char *name,
                     bool worker)
{
    long long lead_s = hg_shape_lead_s(s, site, worker);
    json_t *job = json_object();

    set_text(job, "name", name);
    set_text(job, "partition", s->hw->partition);
    set_count(job, "nodes", s->nodes);
    set_count(job, "tasks_per_node", s->tasks_per_node);
    set_count(job, "cpus_per_task", s->cpus_per_task);
    set_gres(job, s);
    set_count(job, "mem_mib", s->mem_mib);
    set_count(job, "time_s", (long long)ceil(s->time_s));
    set_text(job, "account", s->hw->account ? s->hw->account : site->account);
    set_text(job, "qos", s->hw->qos ? s->hw->qos : site->qos);
    set_text(job, "constraint", s->hw->constraint);
    set_text(job, "reservation", site->reservation);
    set_licenses(job, s, site);
    if (hg_shape_has_time(s->time_s, lead_s))
        set_count(job, "signal_lead_s", lead_s);
    json_object_set_new(job, "requeue", json_true());
    if (s->extra.n)
        json_object_set_new(job, "extra", words_json(&s->extra));
    return job;
}

json_t *hg_shape_places(const struct hg_shape *s)
{
    const struct {
        const char *member, *of_matrix, *of_site, *of_hardware; /* the first that is not NULL */
    } places[] = {
        { "partition", NULL, NULL, "partition" },
        { "constraint", NULL, NULL, "constraint" },
        { "account", NULL, s->hw->account ? NULL : "account", "account" },
        { "qos", NULL, s->hw->qos ? NULL : "qos", "qos" },
        { "reservation", NULL, "reservation", NULL },
        { "licenses", NULL, "licenses", NULL },
        { "nodes", "nodes", NULL, NULL },
        { "tasks_per_node", "tasks_per_node", NULL, NULL },
        { "cpus_per_task", s->own_cpus ? "cpus_per_task" : NULL, NULL, "cpus_per_gpu" },
        { "gres", NULL, NULL, s->hw->gres ? "gres" : "gpus_per_node" },
        { "mem_mib", s->own_mem || !s->hw->mem_per_gpu ? "mem" : NULL, NULL, "mem_per_gpu" },
        { "time_s", "time", NULL, NULL },
    };
    json_t *all = json_object();

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        json_object_set_new(
            all, places[i].member,
            places[i].of_matrix ? json_sprintf("%s of the matrix", places[i].of_matrix)
            : places[i].of_site
                ? json_sprintf("%s of the site", places[i].of_site)
                : json_sprintf("hardware.%s.%s of the site", s->hw->name, places[i].of_hardware));
    return all;
}
