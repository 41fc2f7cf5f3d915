/* SPDX-License-Identifier: Apache-2.0 */
/* Before anything is submitted: what can be found out without submitting. */
#include "drive/check.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "drive/window.h"

#define LIMITS_TRIES 3
#define PROBES_MAX 64 /* batches that are probed before the first submission */

int hg_drive_load_limits(struct hg_drive *d, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    double start = hg_drive_mono(d);

    if (d->has_limits)
        return 0;
    /* A request that got lost, perhaps with its agent, is repeated. */
    for (int i = 1; d->o.executor->limits(d->o.session, &d->limits, &why) < 0; i++) {
        if (why.code != HG_E_AGAIN || i == LIMITS_TRIES ||
            hg_drive_mono(d) - start > d->o.deadline_s / 4) {
            *err = why;
            return -1;
        }
        why = (struct hg_err)HG_ERR_INIT;
    }
    if (!d->limits.max_array_size || !d->limits.max_jobs)
        return hg_err_set(err, HG_E_REFUSED,
                          "%s does not accept job arrays (MaxArraySize %u, MaxJobCount "
                          "%u)",
                          d->o.executor->name, d->limits.max_array_size, d->limits.max_jobs);
    if (!d->limits.min_job_age_s) /* MinJobAge=0: nothing is ever purged */
        d->limits.min_job_age_s = UINT32_MAX;
    d->has_limits = true;
    return 0;
}

/* As it is now. */
static bool was_submitted(const struct hg_drive *d, int batch)
{
    const struct hg_run_state *state = d->state;

    for (size_t i = 0; i < state->submissions.n; i++)
        if (state->submissions.items[i].batch == batch &&
            !hg_drive_is_outdated(d, &state->submissions.items[i]))
            return true;
    return false;
}

/* Will any of its cells be submitted, now or by a retry? */
static bool has_work(const struct hg_run_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++)
        if (batch->cells[i].state != HG_CELL_OK && !batch->cells[i].removed)
            return true;
    return batch->n == 0;
}

/* The first waiting cell of the batch as a job of its own. */
static json_t *probe_job(const struct hg_drive *d, int batch)
{
    char tasks[] = "0";
    struct hg_submission sub = { .number = 1,
                                 .claim = 1,
                                 .batch = batch,
                                 .tasks = tasks,
                                 .together = hg_batch_together(&d->plan->items[batch - 1]) };

    hg_text_random_hex(16, sub.key);
    return hg_drive_make_job(d, &sub);
}

/* "partition cpus (hardware.cpu.partition of the site)" */
static void name_member(const struct hg_batch *b, const char *name, bool absent_too,
                        struct hg_buf *out)
{
    const char *place = json_string_value(json_object_get(b->places, name));
    const json_t *value = json_object_get(b->job, name);

    if (!place || (!value && !absent_too))
        return;
    hg_buf_puts(out, out->len ? ", " : "it requests ");
    if (json_is_string(value))
        hg_buf_printf(out, "%s %s (%s)", name, json_string_value(value), place);
    else if (value)
        hg_buf_printf(out, "%s %lld (%s)", name, (long long)json_integer_value(value), place);
    else
        hg_buf_printf(out, "no %s (%s)", name, place);
}

/* What Slurm refuses, and where that is written; everything that can be meant if Slurm does not say. */
static void name_members(const struct hg_batch *b, const char *about, struct hg_buf *out)
{
    const char *name;
    json_t *place;

    for (const char *p = about; *p;) {
        size_t n = strcspn(p, ",");
        char member[32];

        snprintf(member, sizeof member, "%.*s", (int)n, p);
        name_member(b, member, !about[n], out);
        p += n + (p[n] == ',');
    }
    if (!*about)
        json_object_foreach(b->places, name, place)
            name_member(b, name, false, out);
}

void hg_drive_explain_refusal(const struct hg_drive *d, int batch, const char *what,
                              struct hg_err *why)
{
    const struct hg_batch *b = &d->plan->items[batch - 1];
    const char *site = json_string_value(json_object_get(d->plan->site, "name"));
    const char *about = d->o.executor->facts(d->o.session)->about;
    char where[256] = "", hint[sizeof why->hint];
    struct hg_buf requests = HG_BUF_INIT;

    if (b->hardware)
        snprintf(where, sizeof where, ", hardware %s%s%s", b->hardware, site ? " of site " : "",
                 site ? site : "");
    hg_err_wrap(why, "batch %d (%zu cell%s%.200s) %s", batch, b->n, hg_text_s(b->n), where, what);
    name_members(b, about, &requests);
    memcpy(hint, why->hint, sizeof hint);
    if (requests.len)
        hg_err_hint(why, "%.200s%s%.300s", hint, *hint ? "\n" : "", hg_buf_str(&requests));
    hg_buf_done(&requests);
}

int hg_drive_check(struct hg_drive *d, struct hg_errs *errs)
{
    const struct hg_run_state *state = d->state;
    struct hg_err err = HG_ERR_INIT;
    size_t before = errs->n;
    int probed = 0;

    if (hg_drive_load_limits(d, &err) < 0)
        return hg_errs_add(errs, &err);
    for (int batch = 1; (size_t)batch <= state->batches.n && probed < PROBES_MAX; batch++) {
        struct hg_err why = HG_ERR_INIT;
        json_t *job;
        int rc;

        if (was_submitted(d, batch) || !has_work(&state->batches.items[batch - 1]))
            continue;
        job = probe_job(d, batch);
        rc = d->o.executor->probe(d->o.session, job, &why);
        json_decref(job);
        probed++;
        if (rc == 0 || why.code == HG_E_AGAIN || why.code == HG_E_AMBIGUOUS)
            continue;
        if (why.code == HG_E_REFUSED)
            hg_drive_explain_refusal(d, batch, "would be refused", &why);
        hg_errs_add(errs, &why);
        if (why.code == HG_E_ENV)
            break;
    }
    return errs->n > before ? -1 : 0;
}
