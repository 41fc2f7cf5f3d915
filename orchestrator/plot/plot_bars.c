/* SPDX-License-Identifier: Apache-2.0 */
/* Stacked bars, one for each place of a table: what its time went to, what its memory holds. Each part is
 * the median over the runs that count. */
#include "plot/plot_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "analysis/figures.h"

#define BARS_MAX 40

/* ---- Runs of a config ---- */

int hg_plot_runs_find(const struct hg_report *r, struct hg_plot_runs *runs)
{
    size_t largest = 1;

    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].config >= runs->n_configs && r->entries[i].config != HG_MAP_NONE)
            runs->n_configs = r->entries[i].config + 1;
    runs->begin = calloc(runs->n_configs + 2, sizeof *runs->begin);
    runs->entries = malloc((r->n_entries + 1) * sizeof *runs->entries);
    if (!runs->begin || !runs->entries)
        return -1;
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown && !r->entries[i].state)
            runs->begin[r->entries[i].config + 2]++;
    for (size_t c = 2; c < runs->n_configs + 2; c++) {
        largest = runs->begin[c] > largest ? runs->begin[c] : largest;
        runs->begin[c] += runs->begin[c - 1];
    }
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].shown && !r->entries[i].state)
            runs->entries[runs->begin[r->entries[i].config + 1]++] = i;
    runs->room = malloc(largest * sizeof *runs->room);
    return runs->room ? 0 : -1;
}

void hg_plot_runs_done(struct hg_plot_runs *runs)
{
    free(runs->begin);
    free(runs->entries);
    free(runs->room);
}

const struct hg_result *hg_plot_run(const struct hg_report *r, const struct hg_plot_runs *runs,
                                    size_t config, size_t i)
{
    if (config == HG_MAP_NONE || config >= runs->n_configs ||
        runs->begin[config] + i >= runs->begin[config + 1])
        return NULL;
    return r->entries[runs->entries[runs->begin[config] + i]].result;
}

/* Median of what `number` says of each run; NaN if it says nothing of any. */
static double median_of(const struct hg_report *r, const struct hg_plot_runs *runs, size_t config,
                        double (*number)(const struct hg_result *run, const char *name),
                        const char *name)
{
    const struct hg_result *run;
    size_t n = 0;

    for (size_t i = 0; (run = hg_plot_run(r, runs, config, i)); i++) {
        double v = number(run, name);

        if (!isnan(v))
            runs->room[n++] = v;
    }
    return hg_stats_median(runs->room, n);
}

/* ---- Time ---- */

enum part {
    PART_START,
    PART_DATA,
    PART_COMM,
    PART_COMPUTE,
    PART_TRAIN,
    PART_EVAL,
    PART_REST,
    PARTS
};

static const char *const part_names[PARTS] = {
    "start-up",
    "waiting for data",
    "exposed communication",
    "compute",
    "training (not split)",
    "evaluation",
    "launch, end and everything else",
};

static double get(const struct hg_result *run, const char *name)
{
    double v = hg_result_number(run, name);

    return v > 0 ? v : 0;
}

/* Seconds that the ranks waited for collectives; NaN where nobody measured. */
static double exposed_s(const struct hg_result *run)
{
    json_t *comm = hg_result_get(run, "comm"), *collective;
    double sum = json_is_object(comm) ? 0 : NAN;
    const char *name;

    json_object_foreach(comm, name, collective)
        sum += fmax(json_number_value(json_object_get(collective, "exposed_s")), 0);
    json_decref(comm);
    return sum;
}

/* One part of one run's time, by its name. */
static double time_part(const struct hg_result *run, const char *name)
{
    double train = get(run, "train_s"), comm = exposed_s(run), data = get(run, "data_s");
    double known = get(run, "init_s") + train + get(run, "eval_s");
    size_t part = 0;

    while (part < PARTS && strcmp(part_names[part], name) != 0)
        part++;
    switch (part) {
    case PART_START:
        return get(run, "init_s");
    case PART_DATA:
        return data;
    case PART_COMM:
        return isnan(comm) ? 0 : comm;
    case PART_COMPUTE:
        return isnan(comm) ? 0 : fmax(train - comm - data, 0);
    case PART_TRAIN:
        return isnan(comm) ? fmax(train - data, 0) : 0;
    case PART_EVAL:
        return get(run, "eval_s");
    default:
        return fmax(get(run, "wall_s") - known, 0);
    }
}

static bool has_time(const struct hg_result *run)
{
    return run && hg_result_number(run, "train_s") > 0 &&
           (!isnan(exposed_s(run)) || !isnan(hg_result_number(run, "init_s")));
}

/* ---- Memory ---- */

/* The class's bytes in the run's memory object. */
static double memory_part(const struct hg_result *run, const char *name)
{
    json_t *memory = hg_result_get(run, "memory");
    const json_t *value = json_object_get(memory, name);
    double bytes = json_is_number(value) ? json_number_value(value) : NAN;

    json_decref(memory);
    return bytes;
}

static bool has_memory(const struct hg_result *run)
{
    json_t *memory = run ? hg_result_get(run, "memory") : NULL;
    bool has = json_object_size(memory) > 0;

    json_decref(memory);
    return has;
}

/* Classes in order of appearance, as series that are still empty. */
static void list_classes(const struct hg_report *r, const struct hg_plot_runs *runs,
                         const struct hg_table *t, struct hg_plot *p)
{
    const char *name;
    json_t *value;

    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_result *run = hg_plot_run(r, runs, t->points[i].config, 0);
        json_t *memory = run ? hg_result_get(run, "memory") : NULL;

        json_object_foreach(memory, name, value) {
            if (json_is_number(value) && json_number_value(value) > 0)
                hg_plot_find_series(p, name);
        }
        json_decref(memory);
    }
}

/* Turn bytes into the unit that fits the longest bar. */
static void scale_bytes(struct hg_plot *p)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    double most = 0, unit = 1024;
    size_t k = 0;

    for (size_t s = 0; s < p->series.n; s++)
        for (size_t i = 0; i < p->series.items[s].points.n; i++)
            most = fmax(most, p->series.items[s].points.items[i].high);
    for (; k < 3 && most >= unit * 1024; k++)
        unit *= 1024;
    for (size_t s = 0; s < p->series.n; s++)
        for (size_t i = 0; i < p->series.items[s].points.n; i++) {
            p->series.items[s].points.items[i].low /= unit;
            p->series.items[s].points.items[i].high /= unit;
        }
    free(p->x.title);
    p->x.title = hg_str_printf("peak of each class on the fullest rank, %s", units[k]);
    p->failed = p->failed || !p->x.title;
}

/* ---- Both ---- */

static void add_bar(const struct hg_report *r, const struct hg_plot_runs *runs,
                    const struct hg_table *t, size_t point, struct hg_plot *p)
{
    struct hg_buf label = HG_BUF_INIT;
    char **slot = HG_VEC_PUSH(&p->bar_labels);
    double at = 0;

    if (!slot) {
        p->failed = true;
        return;
    }
    hg_point_label(r, t, point, HG_LABEL_PLACE, &label);
    *slot = hg_buf_detach(&label);
    p->failed = p->failed || !*slot;
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];
        double v = median_of(r, runs, t->points[point].config,
                             p->kind == HG_PLOT_TIME ? time_part : memory_part, series->label);

        if (!(v > 0))
            continue;
        hg_plot_put(p, series,
                    (struct hg_plot_point){
                        .x = v, .y = (double)(p->bar_labels.n - 1), .low = at, .high = at + v });
        at += v;
    }
}

/* Parts that no bar has are no entry of the key. */
static void drop_empty(struct hg_plot *p)
{
    size_t kept = 0;

    for (size_t s = 0; s < p->series.n; s++) {
        if (p->series.items[s].points.n)
            p->series.items[kept++] = p->series.items[s];
        else
            free(p->series.items[s].label);
    }
    p->series.n = kept;
}

int hg_plot_add_bars(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                     const struct hg_plot_runs *runs, struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    bool time = kind == HG_PLOT_TIME, data = false;
    struct hg_plot *p = hg_plot_add(r, table, kind, time ? "what the time went to" : "memory",
                                    "seconds", "", plots);
    size_t bars = 0;

    if (!p)
        return -1;
    p->bars = true;
    for (size_t part = 0; time && part < PARTS; part++)
        hg_plot_find_series(p, part_names[part]);
    if (!time)
        list_classes(r, runs, t, p);
    for (size_t i = 0; i < t->n_rows * t->n_columns; i++) {
        const struct hg_result *run = hg_plot_run(r, runs, t->points[i].config, 0);

        if (!(time ? has_time(run) : has_memory(run)))
            continue;
        data = data || !isnan(hg_result_number(run, "data_s"));
        if (bars++ < BARS_MAX)
            add_bar(r, runs, t, i, p);
    }
    drop_empty(p);
    if (!time)
        scale_bytes(p);
    if (bars > BARS_MAX) {
        char *text = hg_str_printf("the first %d of %zu places", BARS_MAX, bars);

        hg_plot_note(p, text ? text : "");
        free(text);
    }
    if (time && bars && !data)
        hg_plot_note(p, "waiting for data was not measured: it is part of the training");
    return p->failed ? -1 : 0;
}
