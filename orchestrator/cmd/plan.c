/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "matrix/matrix.h"
#include "cmd/auto_limits.h"
#include "cmd/cells.h"
#include "cmd/forecast.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "plan/batch.h"
#include "plan/files.h"
#include "plan/plan.h"
#include "plan/script.h"

/* What an array can hold where the site has not changed Slurm's MaxArraySize. */
#define DEFAULT_ARRAY 1000

static const char *select_text, *site, *out_dir;
static bool scripts, as_json, forecast;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    HG_OPTION_SITE(&site),
    { HG_OPT_FLAG, 'f', "forecast", &forecast, NULL, "device-hours and duration, by earlier runs",
      0, 0 },
    { HG_OPT_FLAG, 0, "scripts", &scripts, NULL, "also print the batch scripts", 0, 0 },
    { HG_OPT_STRING, 'o', "out", &out_dir, "DIR",
      "write plan and scripts to DIR, for sbatch by hand", 0, 0 },
    HG_OPTION_JSON(&as_json),
    { 0 },
};

/* ---- What it costs ---- */

static size_t submissions(const struct hg_plan *plan, size_t array_max)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        n += (hg_batch_jobs(&plan->items[i], plan->items[i].n) + array_max - 1) / array_max;
    return n;
}

/* Do cells share jobs? *jobs: of all batches. */
static bool shares_jobs(const struct hg_plan *plan, size_t *jobs)
{
    bool shares = false;

    *jobs = 0;
    for (size_t i = 0; i < plan->n; i++) {
        shares = shares || plan->items[i].together > 1;
        *jobs += hg_batch_jobs(&plan->items[i], plan->items[i].n);
    }
    return shares;
}

/* Total of the batches with a time limit; *unpriced: cells without. */
static double total_hours(const struct hg_plan *plan, size_t *unpriced)
{
    double hours = 0;

    *unpriced = 0;
    for (size_t i = 0; i < plan->n; i++) {
        hours += hg_batch_device_hours(&plan->items[i]);
        *unpriced += plan->items[i].time_s > 0 ? 0 : plan->items[i].n;
    }
    return hours;
}

static size_t first_cells(const struct hg_plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        n += hg_batch_first(&plan->items[i], &plan->repeats);
    return n;
}

static double first_hours(const struct hg_plan *plan)
{
    double hours = 0;

    for (size_t i = 0; i < plan->n; i++)
        hours += hg_batch_first_hours(&plan->items[i], &plan->repeats);
    return hours;
}

/* ---- Text ---- */

static long long number(const struct hg_batch *b, const char *key)
{
    return json_integer_value(json_object_get(b->job, key));
}

static const char *text(const struct hg_batch *b, const char *key)
{
    const char *value = json_string_value(json_object_get(b->job, key));

    return value ? value : "-";
}

/* jobs: with their number. */
static void print_batch(const struct hg_batch *b, bool jobs)
{
    char time[32] = "-", memory[32] = "-";

    if (b->time_s > 0)
        hg_text_duration_slurm(b->time_s, time);
    if (number(b, "mem_mib"))
        snprintf(memory, sizeof memory, "%lldM", number(b, "mem_mib"));
    printf("%5d %6zu", b->number, b->n);
    if (jobs)
        printf(" %5zu", hg_batch_jobs(b, b->n));
    printf("  %-10s %5lld %5lld %5lld  %-14s %9s %12s", b->hardware, number(b, "nodes"),
           number(b, "tasks_per_node"), number(b, "cpus_per_task"), text(b, "gres"), memory, time);
    if (b->time_s > 0)
        printf(" %9.4g\n", hg_batch_device_hours(b));
    else
        printf(" %9s\n", "-");
}

static void print_table(const struct hg_plan *plan, const char *site_name)
{
    size_t unpriced, jobs, least = submissions(plan, SIZE_MAX / 2),
                           usual = submissions(plan, DEFAULT_ARRAY);
    double hours = total_hours(plan, &unpriced);
    bool shares = shares_jobs(plan, &jobs);

    printf("%s on %s: %zu cell%s in %zu batch%s", plan->name, site_name, plan->cells,
           hg_text_s(plan->cells), plan->n, plan->n == 1 ? "" : "es");
    if (shares)
        printf(", one after another in %zu job%s", jobs, hg_text_s(jobs));
    printf(
        "\n\nbatch  cells %s hardware   nodes tasks  cpus  gres             mem/node         time  "
        "device-h\n",
        shares ? " jobs " : "");
    for (size_t i = 0; i < plan->n; i++)
        print_batch(&plan->items[i], shares);
    printf("\nsubmissions  %zu", least);
    if (usual > least)
        printf("  (%zu where an array holds %d)", usual, DEFAULT_ARRAY);
    if (hg_repeats_are_adaptive(&plan->repeats))
        printf("\nfirst round  %zu cells, %.4g device-hours; a configuration has %lld to %lld runs",
               first_cells(plan), first_hours(plan), plan->repeats.min, plan->repeats.max);
    printf("\nat most      %.4g device-hours", hours);
    if (unpriced)
        printf(", and %zu cell%s without a time limit", unpriced, hg_text_s(unpriced));
    putchar('\n');
}

/* What earlier runs say of a plan. */
struct ahead {
    const struct hg_measured *measured;
    struct hg_measured own; /* where no "auto" limits have read the runs */
    struct hg_outlook outlook;
    struct hg_pace pace;
    const char *pace_from;
};

static void look_ahead(const struct hg_plan *plan, const struct hg_matrix *m, struct ahead *a)
{
    *a = (struct ahead){ .measured = hg_auto_limits_measured(m) };
    if (!a->measured) {
        hg_measured_read(&a->own, NULL, m->name, 0);
        a->measured = &a->own;
    }
    a->pace = a->measured->pace;
    a->pace_from = m->running      ? "limits.running"
                   : a->pace.slots ? "as in the last run, whose waiting in the queue is included"
                                   : "not known how many will run at a time";
    if (m->running)
        a->pace.slots = (size_t)m->running;
    hg_forecast_plan(a->measured, plan, a->pace, &a->outlook);
}

static void print_auto(const struct hg_matrix *m)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_auto_limits_append(m, &text);
    if (text.len)
        printf("%s\n", hg_buf_str(&text));
    hg_buf_done(&text);
}

static void print_forecast(const struct hg_plan *plan, const struct hg_matrix *m)
{
    struct hg_buf text = HG_BUF_INIT;
    struct ahead a;

    look_ahead(plan, m, &a);
    hg_buf_puts(&text, "forecast     ");
    hg_outlook_append_hours(&a.outlook, &text);
    hg_buf_puts(&text, "\n             ");
    hg_outlook_append_sources(a.measured->forecast, &a.outlook, &text);
    hg_measured_append_runs(a.measured, &text);
    hg_buf_puts(&text, "\nduration     ");
    hg_outlook_append_time(&a.outlook, 0, &text);
    hg_buf_printf(&text, ", %zu at a time (%s)", a.pace.slots ? a.pace.slots : 1, a.pace_from);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    hg_measured_done(&a.own);
}

static json_t *forecast_json(const struct hg_plan *plan, const struct hg_matrix *m)
{
    struct ahead a;
    json_t *out;

    look_ahead(plan, m, &a);
    out = hg_outlook_json(&a.outlook, a.pace);
    json_object_set_new(out, "runs", hg_json_text(hg_buf_str(&a.measured->from)));
    hg_measured_done(&a.own);
    return out;
}

/* Where a run of this name would lie: what the scripts would say. Yours. */
static char *script_folder(const struct hg_plan *plan, struct hg_err *err)
{
    char *relative = hg_str_printf("%s/%s/NEW", hg_options_reports(NULL), plan->name);
    char *dir = hg_fs_absolute(out_dir ? out_dir : relative, err);

    free(relative);
    return dir;
}

static int print_scripts(const struct hg_plan *plan, struct hg_err *err)
{
    char *dir = script_folder(plan, err);
    int rc = dir ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < plan->n; i++) {
        struct hg_buf script = HG_BUF_INIT;

        rc = hg_plan_script(plan, &plan->items[i], dir, &script, err);
        if (rc == 0)
            printf("\n==> batches/%d.sh <==\n%s", plan->items[i].number, hg_buf_str(&script));
        hg_buf_done(&script);
    }
    free(dir);
    return rc;
}

/* ---- JSON ---- */

static json_t *batch_json(const struct hg_batch *b)
{
    json_t *o =
        json_pack("{s:i, s:I, s:s, s:I, s:O}", "number", b->number, "cells", (json_int_t)b->n,
                  "hardware", b->hardware, "devices", (json_int_t)b->devices, "job", b->job);
    json_t *ids = json_array();

    json_object_set_new(o, "jobs", json_integer((json_int_t)hg_batch_jobs(b, b->n)));
    json_object_set_new(o, "together", json_integer(hg_batch_together(b)));
    if (b->time_s > 0)
        json_object_set_new(o, "device_hours", hg_json_number(hg_batch_device_hours(b)));
    for (size_t i = 0; i < b->n; i++)
        json_array_append_new(ids, json_string(b->ids[i]));
    json_object_set_new(o, "ids", ids);
    return o;
}

static void print_json(const struct hg_plan *plan, const struct hg_matrix *m)
{
    size_t unpriced;
    double hours = total_hours(plan, &unpriced);
    json_t *batches = json_array(), *skipped = json_array();
    json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:f, s:I}", "name", plan->name, "site",
                          m->site->name, "cells", (json_int_t)plan->cells, "submissions",
                          (json_int_t)submissions(plan, SIZE_MAX / 2), "device_hours", hours,
                          "cells_without_limit", (json_int_t)unpriced);

    if (hg_repeats_are_adaptive(&plan->repeats))
        json_object_set_new(o, "first_round",
                            json_pack("{s:I,s:f}", "cells", (json_int_t)first_cells(plan),
                                      "device_hours", first_hours(plan)));
    for (size_t i = 0; i < plan->n; i++)
        json_array_append_new(batches, batch_json(&plan->items[i]));
    json_object_set_new(o, "batches", batches);
    for (size_t i = 0; i < plan->skips.n; i++)
        json_array_append_new(skipped, json_pack("{s:s, s:o}", "id", plan->skips.items[i].id,
                                                 "reason", hg_json_text(plan->skips.items[i].why)));
    json_object_set_new(o, "skipped", skipped);
    if (forecast)
        json_object_set_new(o, "forecast", forecast_json(plan, m));
    hg_print_json(o);
}

/* ---- The command ---- */

static int save(struct hg_plan *plan, const struct hg_matrix *m, struct hg_err *err)
{
    char *existing = hg_fs_join(out_dir, "plan.json");
    int rc = -1;

    if (hg_fs_exists(existing)) {
        hg_err_set(err, HG_E_USAGE, "%s already contains a plan", out_dir);
        hg_err_hint(err, "name a new folder");
    } else if (hg_fs_mkdirs(out_dir, 0700, err) == 0) {
        rc = hg_plan_save(plan, m, out_dir, err);
    }
    free(existing);
    return rc;
}

static void print_elsewhere(const struct hg_plan *plan, const struct hg_matrix *m)
{
    struct hg_words lines = HG_WORDS_INIT;

    hg_cells_list_elsewhere(m, &plan->count, select_text, &lines);
    for (size_t i = 0; i < lines.n; i++)
        puts(lines.items[i]);
    hg_words_done(&lines);
}

static int show(struct hg_plan *plan, const struct hg_matrix *m, struct hg_err *err)
{
    hg_cells_print_warnings(&plan->count);
    hg_cells_print_skips(&plan->skips, true);
    if (out_dir && save(plan, m, err) < 0)
        return -1;
    if (as_json) {
        print_json(plan, m);
        return 0;
    }
    print_table(plan, m->site->name);
    print_auto(m);
    if (forecast)
        print_forecast(plan, m);
    print_elsewhere(plan, m);
    return scripts ? print_scripts(plan, err) : 0;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *select = select_text ? hg_selector_parse(select_text, &err) : NULL;
    struct hg_matrix *m = err.code ? NULL : hg_matrix_load(argv[0], site, errs);
    bool known = m && (!select || hg_selector_check(select, m->grid, &err) == 0);
    struct hg_plan *plan = NULL;
    int rc = -1;

    (void)argc;
    if (known) {
        hg_auto_limits_set(m, NULL);
        plan = hg_plan_make(m, select, NULL, errs);
    }
    if (plan)
        rc = show(plan, m, &err);
    hg_errs_add(errs, &err);
    hg_plan_free(plan);
    hg_matrix_free(m);
    hg_selector_free(select);
    return rc;
}

const struct hg_cmd hg_cmd_plan = {
    .name = "plan",
    .args = "MATRIX",
    .summary = "Show what would be submitted: batches, resources, cost.",
    .details = "Cells with the same resources share a batch, which is one job array. For that,\n"
               "wall times are rounded up to a few steps, but never above the longest one\n"
               "requested. Slurm is not contacted.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
