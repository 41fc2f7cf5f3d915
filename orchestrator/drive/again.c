/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that failed run again: because a person says so, or the matrix's "retry". */
#include "drive/again.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "drive/news.h"
#include "plan/plan.h"

/* Which cells run again. */
struct again {
    struct hg_drive *d;
    const char *cause; /* of the matrix's "retry"; NULL: a person */
    bool (*picks)(void *context, int batch, uint32_t line);
    void *context;
    unsigned statuses;
};

/* Journal the cells of one batch that are picked; returns how many. */
static long again_batch(const struct again *a, size_t b)
{
    const struct hg_run_batch *batch = &a->d->state->batches.items[b];
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf lines = HG_BUF_INIT;
    long n;

    for (size_t i = 0; i < batch->n; i++)
        if (hg_cell_is_over(&batch->cells[i]) && !batch->cells[i].removed &&
            a->statuses & 1u << batch->cells[i].state &&
            (!a->picks || a->picks(a->context, (int)b + 1, (uint32_t)i)))
            hg_ranges_add(&set, (uint32_t)i);
    hg_ranges_format(&set, &lines);
    n = (long)hg_ranges_count(&set);
    if (n)
        hg_drive_say(a->d, "again",
                     json_pack("{s:i,s:s,s:s*}", "batch", (int)b + 1, "lines", hg_buf_str(&lines),
                               "cause", a->cause));
    hg_ranges_done(&set);
    hg_buf_done(&lines);
    return n;
}

static long again_all(const struct again *a, struct hg_err *err)
{
    long total = 0;

    for (size_t b = 0; b < a->d->state->batches.n; b++)
        total += again_batch(a, b);
    return total && hg_drive_commit(a->d, err) < 0 ? -1 : total;
}

long hg_drive_again(struct hg_drive *d, unsigned statuses,
                    bool (*picks)(void *context, int batch, uint32_t line), void *context,
                    struct hg_err *err)
{
    struct again a = { .d = d, .picks = picks, .context = context, .statuses = statuses };

    return again_all(&a, err);
}

/* ---- By the matrix ---- */

struct retry {
    struct hg_drive *d;
    enum hg_retry_cause cause;
};

/* Which states a cause is about; a cancelled cell must have been preempted. */
static const enum hg_cell_state state_of[HG_RETRY_CAUSES] = {
    [HG_RETRY_TIMEOUT] = HG_CELL_TIMEOUT,   [HG_RETRY_NODE_FAIL] = HG_CELL_NODE_FAIL,
    [HG_RETRY_OUT_OF_MEMORY] = HG_CELL_OOM, [HG_RETRY_FAILED] = HG_CELL_FAILED,
    [HG_RETRY_LOST] = HG_CELL_LOST,         [HG_RETRY_PREEMPTED] = HG_CELL_CANCELLED,
};

/* "time": "auto" is raised although "retry" does not say so, unless it is as long as it may be, and was the cell's alone. */
static long long most_of(const struct retry *r, int batch, const struct hg_run_cell *cell)
{
    const struct hg_batch *b = &r->d->plan->items[batch - 1];
    long long most = r->d->o.retry.most[r->cause];

    if (most || r->cause != HG_RETRY_TIMEOUT || !b->auto_time)
        return most;
    return hg_batch_together(b) == 1 && b->time_max_s > 0 &&
                   ldexp(b->time_s, cell->retries[r->cause]) >= b->time_max_s
               ? 0
               : HG_AUTO_RAISES;
}

static bool is_to_retry(void *context, int batch, uint32_t line)
{
    const struct retry *r = context;
    const struct hg_run_cell *cell = hg_run_cell_find(r->d->state, batch, line);

    return !cell->cancel && cell->retries[r->cause] < most_of(r, batch, cell) &&
           (r->cause != HG_RETRY_PREEMPTED || strstr(hg_run_text(r->d->state, cell), "preempted"));
}

static bool has_auto_time(const struct hg_plan *plan)
{
    for (size_t b = 0; b < plan->n; b++)
        if (plan->items[b].auto_time)
            return true;
    return false;
}

int hg_drive_retry(struct hg_drive *d, struct hg_err *err)
{
    bool raises = has_auto_time(d->plan);

    for (int c = 0; c < HG_RETRY_CAUSES; c++) {
        struct retry retry = { d, (enum hg_retry_cause)c };
        struct again a = { d, hg_retry_fields[c].name, is_to_retry, &retry, 1u << state_of[c] };
        bool longer = c == HG_RETRY_TIMEOUT && raises;
        long n = d->o.retry.most[c] || longer ? again_all(&a, err) : 0;

        if (n < 0)
            return -1;
        if (n)
            hg_info("%ld cell%s run again after %s%s", n, hg_text_s((size_t)n), a.cause,
                    longer ? ", \"auto\" limits doubled" : "");
    }
    return 0;
}
