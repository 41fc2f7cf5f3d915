/* SPDX-License-Identifier: Apache-2.0 */
/* Cells that failed run again: because a person says so, or the matrix's "retry". */
#include "drive/again.h"

#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/ranges.h"
#include "base/text.h"
#include "drive/news.h"

struct again {
    struct hg_drive *d;
    const char *cause; /* NULL: a person's wish */
    bool (*picks)(const struct again *a, int batch, uint32_t line, const struct hg_run_cell *cell);
    /* of the one or the other */
    unsigned statuses;
    bool (*fits)(void *context, int batch, uint32_t line);
    void *context;
    enum hg_retry_cause number;
};

/* Journal the cells of one batch that are picked; returns how many. */
static long again_batch(const struct again *a, size_t b)
{
    const struct hg_run_batch *batch = &a->d->state->batches.items[b];
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf lines = HG_BUF_INIT;
    json_t *members;
    long n;

    for (size_t i = 0; i < batch->n; i++)
        if (hg_cell_is_over(&batch->cells[i]) &&
            a->picks(a, (int)b + 1, (uint32_t)i, &batch->cells[i]))
            hg_ranges_add(&set, (uint32_t)i);
    hg_ranges_format(&set, &lines);
    n = (long)hg_ranges_count(&set);
    if (n) {
        members = json_pack("{s:i,s:s,s:s*}", "batch", (int)b + 1, "lines", hg_buf_str(&lines),
                            "cause", a->cause);
        hg_drive_say(a->d, "again", members);
    }
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

/* ---- Because a person says so ---- */

static bool is_wished(const struct again *a, int batch, uint32_t line,
                      const struct hg_run_cell *cell)
{
    return a->statuses & 1u << cell->state && (!a->fits || a->fits(a->context, batch, line));
}

long hg_drive_again(struct hg_drive *d, unsigned statuses,
                    bool (*picks)(void *context, int batch, uint32_t line), void *context,
                    struct hg_err *err)
{
    struct again a = {
        .d = d, .picks = is_wished, .statuses = statuses, .fits = picks, .context = context
    };

    return again_all(&a, err);
}

/* ---- By the matrix ---- */

static int cause_of(const struct hg_run_state *state, const struct hg_run_cell *cell)
{
    switch (cell->state) {
    case HG_CELL_TIMEOUT:
        return HG_RETRY_TIMEOUT;
    case HG_CELL_NODE_FAIL:
        return HG_RETRY_NODE_FAIL;
    case HG_CELL_OOM:
        return HG_RETRY_OUT_OF_MEMORY;
    case HG_CELL_FAILED:
        return HG_RETRY_FAILED;
    case HG_CELL_LOST:
        return HG_RETRY_LOST;
    case HG_CELL_CANCELLED:
        return strstr(hg_run_text(state, cell), "preempted") ? HG_RETRY_PREEMPTED : -1;
    default:
        return -1;
    }
}

static bool is_to_retry(const struct again *a, int batch, uint32_t line,
                        const struct hg_run_cell *cell)
{
    (void)batch;
    (void)line;
    return !cell->cancel && cause_of(a->d->state, cell) == (int)a->number &&
           cell->retries[a->number] < a->d->o.retry.most[a->number];
}

int hg_drive_retry(struct hg_drive *d, struct hg_err *err)
{
    for (int c = 0; c < HG_RETRY_CAUSES; c++) {
        struct again a = { .d = d,
                           .cause = hg_retry_fields[c].name,
                           .picks = is_to_retry,
                           .number = (enum hg_retry_cause)c };
        long n = d->o.retry.most[c] ? again_all(&a, err) : 0;

        if (n < 0)
            return -1;
        if (n)
            hg_info("%ld cell%s run again after %s", n, hg_text_s((size_t)n), a.cause);
    }
    return 0;
}
