/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/vec.h"

double hg_plan_heartbeat_s(const json_t *site)
{
    double s = json_number_value(json_object_get(site, "heartbeat_s"));

    return s > 0 ? s : HG_SITE_HEARTBEAT_S;
}

void hg_batch_set_request(struct hg_batch *b)
{
    json_t *job = json_copy(b->job);
    struct hg_buf text = HG_BUF_INIT;

    json_object_del(job, "name"); /* where the run is, and its name, are the same in all its jobs */
    json_object_del(job, "script");
    json_object_del(job, "work_dir");
    hg_json_dump(job, HG_JSON_SORT, &text);
    for (char **m = b->modules; m && *m; m++)
        hg_buf_printf(&text, "\n%s", *m);
    snprintf(b->request, sizeof b->request, "%016" PRIx64, hg_hash64(text.data, text.len));
    hg_buf_done(&text);
    json_decref(job);
}

void hg_batch_push(struct hg_batch *b, char *id)
{
    hg_vec_grow((void **)&b->ids, b->n, &b->cap, sizeof *b->ids);
    b->ids[b->n++] = id;
}

size_t hg_batch_first(const struct hg_batch *b, const struct hg_repeats *repeats)
{
    size_t n = b->turns ? 0 : b->n - (size_t)hg_ranges_count(&b->removed);

    for (size_t i = 0; i < b->n && b->turns; i++)
        n += (b->turns[i].configuration && b->turns[i].run <= repeats->min);
    return n;
}

unsigned hg_batch_together(const struct hg_batch *b)
{
    return b->together > 1 ? b->together : 1;
}

size_t hg_batch_jobs(const struct hg_batch *b, size_t n)
{
    return (n + hg_batch_together(b) - 1) / hg_batch_together(b);
}

static double hours(const struct hg_batch *b, size_t n)
{
    return (double)n / hg_batch_together(b) * (double)b->devices * b->time_s / 3600;
}

double hg_batch_device_hours(const struct hg_batch *b)
{
    return hours(b, b->n);
}

double hg_batch_first_hours(const struct hg_batch *b, const struct hg_repeats *repeats)
{
    return hours(b, hg_batch_first(b, repeats));
}

void hg_batch_done(struct hg_batch *b)
{
    json_decref(b->job);
    json_decref(b->places);
    for (size_t i = 0; i < b->n; i++)
        free(b->ids[i]);
    free(b->ids);
    free(b->turns);
    for (char **m = b->modules; m && *m; m++)
        free(*m);
    free(b->modules);
    free(b->hardware);
    free(b->backend);
    free(b->shape);
    hg_buf_done(&b->cells);
    free(b->saved);
    free(b->at);
    hg_ranges_done(&b->removed);
    hg_ranges_done(&b->done);
}

void hg_skips_add(struct hg_skips *skips, const char *id, const char *why, size_t at)
{
    *HG_VEC_PUSH(skips) = (struct hg_skip){ hg_strdup(id), NULL, hg_strdup(why), at };
}

void hg_skips_name(struct hg_skips *skips, struct hg_names *names)
{
    for (size_t i = 0; i < skips->n; i++) {
        struct hg_buf name = HG_BUF_INIT;

        hg_names_append(names, skips->items[i].at, &name);
        skips->items[i].name = hg_buf_detach(&name);
    }
}

void hg_skips_done(struct hg_skips *skips)
{
    for (size_t i = 0; i < skips->n; i++) {
        free(skips->items[i].id);
        free(skips->items[i].name);
        free(skips->items[i].why);
    }
    HG_VEC_DONE(skips);
}

void hg_plan_free(struct hg_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->n; i++)
        hg_batch_done(&plan->items[i]);
    HG_VEC_DONE(plan);
    hg_skips_done(&plan->skips);
    hg_cells_count_done(&plan->count);
    json_decref(plan->skipped);
    json_decref(plan->workload);
    json_decref(plan->site);
    free(plan->name);
    free(plan);
}
