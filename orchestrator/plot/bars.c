/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/bars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "analysis/labels.h"

#define BARS_MAX 40

/* The report's statistic of `number` over the runs that have it; NaN if none does. */
static double center_of(const struct hg_report *r, const struct hg_plot_runs *runs, size_t config,
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
    return hg_stats_center(runs->room, n, r->statistic).value;
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

/* Exposed communication in seconds; NaN if it was not measured. */
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
}

/* ---- Both ---- */

static void add_bar(const struct hg_report *r, const struct hg_plot_runs *runs,
                    const struct hg_table *t, size_t point, struct hg_plot *p)
{
    struct hg_buf label = HG_BUF_INIT;
    double at = 0;

    hg_point_label(r, t, point, HG_LABEL_PLACE, &label);
    *HG_VEC_PUSH(&p->bar_labels) = hg_buf_detach(&label);
    for (size_t s = 0; s < p->series.n; s++) {
        struct hg_plot_series *series = &p->series.items[s];
        double v = center_of(r, runs, t->points[point].config,
                             p->kind == HG_PLOT_TIME ? time_part : memory_part, series->label);

        if (!(v > 0))
            continue;
        hg_plot_put(p, series,
                    (struct hg_plot_point){
                        .x = v, .y = (double)(p->bar_labels.n - 1), .low = at, .high = at + v });
        at += v;
    }
}

void hg_plot_add_bars(const struct hg_report *r, size_t table, enum hg_plot_kind kind,
                      const struct hg_plot_runs *runs, struct hg_plots *plots)
{
    const struct hg_table *t = &r->tables.items[table];
    bool time = kind == HG_PLOT_TIME, data = false;
    struct hg_plot *p =
        hg_plot_add(r, table, kind, time ? "time breakdown" : "memory", "seconds", "", plots);
    size_t bars = 0;

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
    hg_plot_drop_empty(p); /* parts that no bar has */
    if (!time)
        scale_bytes(p);
    if (bars > BARS_MAX) {
        char *text = hg_str_printf("the first %d of %zu places", BARS_MAX, bars);

        hg_plot_note(p, text);
        free(text);
    }
    if (time && bars && !data)
        hg_plot_note(p, "waiting for data was not measured: it is part of the training");
}
