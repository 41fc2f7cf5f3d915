/* SPDX-License-Identifier: Apache-2.0 */
/* Orders to the scheduler about tasks: cancel, hold, release. */
#include "drive/orders.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "drive/news.h"
#include "rundir/reasons.h"

#define AGAIN_S 30.0 /* an order that had no effect is repeated */

static void add_order(struct hg_drive *d, const struct hg_executor_job *job,
                      const struct hg_submission *sub, uint32_t index, enum hg_order what,
                      const char *text)
{
    *HG_VEC_PUSH(&d->orders) = (struct hg_drive_order){
        .job_id = job->job_id, .submission = sub->number, .index = index, .what = what, .text = text
    };
}

/* Is any of the cells that share its task held? Their job is held then. */
static bool is_task_held(const struct hg_drive *d, const struct hg_submission *sub, uint32_t index)
{
    uint32_t line, end;

    hg_drive_mates(d, sub, index, &line, &end);
    for (; line < end; line++) {
        const struct hg_run_cell *mate = hg_run_cell_find(d->state, sub->batch, line);

        if (mate->submission == sub->number && mate->held && !hg_cell_is_over(mate))
            return true;
    }
    return false;
}

/* A user's request that it does not start, or the end of that. What the user holds in Slurm stays held. */
static void judge_hold(struct hg_drive *d, const struct hg_executor_job *job,
                       const struct hg_submission *sub, uint32_t index,
                       const struct hg_run_cell *cell, struct hg_drive_task *task)
{
    bool held = hg_reason_is_hold(job->reason);
    bool hold = cell->held && !held;
    bool release = cell->let_go && held && !hg_reason_is_admin_hold(job->reason) &&
                   !is_task_held(d, sub, index);
    double mono = hg_drive_mono(d);

    if (strcmp(job->state, "PENDING") != 0 || (!hold && !release) ||
        (task->told_hold == hold && task->held_s && mono - task->held_s < AGAIN_S))
        return;
    task->held_s = mono;
    task->told_hold = hold;
    add_order(d, job, sub, index, hold ? HG_ORDER_HOLD : HG_ORDER_RELEASE, NULL);
}

void hg_drive_judge(struct hg_drive *d, const struct hg_executor_job *job,
                    const struct hg_submission *sub, uint32_t index, const struct hg_run_cell *cell,
                    struct hg_drive_task *task)
{
    const struct hg_reason *reason = hg_reason_find(job->reason);
    bool never = reason->class == HG_REASON_NEVER, redo = reason->class == HG_REASON_REDO;
    bool pending = strcmp(job->state, "PENDING") == 0;
    double mono = hg_drive_mono(d);

    if (task->asked_s && mono - task->asked_s < AGAIN_S)
        return;
    if (cell->cancel || (pending && cell->removed)) {
        add_order(d, job, sub, index, HG_ORDER_CANCEL, NULL);
    } else if (pending && !d->o.send_nothing && hg_drive_is_outdated(d, sub)) {
        add_order(d, job, sub, index, HG_ORDER_RECALL, NULL);
    } else if (pending && (never || redo)) {
        add_order(d, job, sub, index, never ? HG_ORDER_NEVER : HG_ORDER_REDO, reason->text);
    } else {
        judge_hold(d, job, sub, index, cell, task);
        return;
    }
    task->asked_s = mono;
}

/* ---- Giving them ---- */

/* Orders of the same kind for tasks of one job become one request. */
static int request_of(const struct hg_drive_order *order)
{
    return order->what < HG_ORDER_CANCEL ? (int)order->what : HG_ORDER_CANCEL;
}

static int compare_requests(const struct hg_drive_order *a, const struct hg_drive_order *b)
{
    if (a->job_id != b->job_id)
        return a->job_id < b->job_id ? -1 : 1;
    return request_of(a) - request_of(b);
}

static int compare_orders(const void *pa, const void *pb)
{
    const struct hg_drive_order *a = pa, *b = pb;
    int by = compare_requests(a, b);

    return by ? by : (a->index > b->index) - (a->index < b->index);
}

static int make_request(const struct hg_drive *d, const struct hg_drive_order *order,
                        const char *tasks, struct hg_err *err)
{
    if (request_of(order) == HG_ORDER_CANCEL)
        return d->o.executor->cancel(d->o.session, order->job_id, tasks, err);
    return d->o.executor->hold(d->o.session, order->job_id, tasks, order->what == HG_ORDER_HOLD,
                               err);
}

/* What becomes of the cells once their job will not start any more. */
static void after_order(struct hg_drive *d, const struct hg_drive_order *order)
{
    const struct hg_submission *sub = hg_drive_submission(d, order->submission);
    const struct hg_run_cell *cell =
        hg_run_cell_find(d->state, sub->batch, sub->offset + order->index);

    if (order->what <= HG_ORDER_CANCEL || cell->submission != sub->number || hg_cell_is_over(cell))
        return;
    if (order->what == HG_ORDER_RECALL)
        hg_drive_tell(d, "recalled", sub, order->index, "", 0, NULL);
    else if (order->what == HG_ORDER_REDO && cell->losses < 3)
        hg_drive_tell(d, "lost", sub, order->index, "", 0, order->text);
    else
        hg_drive_tell(d, "verdict", sub, order->index, "failed", 0, order->text);
}

/* For tasks of one job. If the scheduler does not answer, a later pass tries again. */
static void give_to_job(struct hg_drive *d, const struct hg_drive_order *orders, size_t n)
{
    static const char *const words[] = { "hold", "release", "cancel" };
    struct hg_ranges set = HG_RANGES_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err why = HG_ERR_INIT;

    for (size_t i = 0; i < n; i++)
        hg_ranges_add(&set,
                      orders[i].index / hg_drive_submission(d, orders[i].submission)->together);
    hg_ranges_format(&set, &text);
    if (make_request(d, orders, hg_buf_str(&text), &why) == 0) {
        for (size_t i = 0; i < n; i++)
            after_order(d, &orders[i]);
    } else if (why.code == HG_E_ENV || why.code == HG_E_AGAIN) {
        hg_drive_away(d, &why);
    } else {
        hg_warn("cannot %s job %u: %s", words[request_of(orders)], orders->job_id, why.text);
    }
    hg_ranges_done(&set);
    hg_buf_done(&text);
}

int hg_drive_give_orders(struct hg_drive *d, struct hg_err *err)
{
    struct hg_drive_order *items = d->orders.items;

    if (d->orders.n)
        qsort(items, d->orders.n, sizeof *items, compare_orders);
    for (size_t i = 0, n; i < d->orders.n && !d->away_since_s; i += n) {
        for (n = 1; i + n < d->orders.n && compare_requests(&items[i], &items[i + n]) == 0;)
            n++;
        give_to_job(d, &items[i], n);
    }
    d->orders.n = 0;
    return hg_drive_flush(d, err);
}
