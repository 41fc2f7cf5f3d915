/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "comm/queue.h"

#define RENDEZVOUS_LIMIT_S 60.0 /* for the heartbeat's connections */

void wk_comm_close(struct wk_comm *comm)
{
    if (!comm)
        return;
    wk_heartbeat_stop(comm->heartbeat);
    wk_queue_close(comm->queue);
    comm->queue = NULL;
    HG_VEC_DONE(&comm->records);
    comm->kind->close(comm);
}

void wk_comm_leave(struct wk_comm *comm)
{
    if (comm->kind && comm->kind->detach)
        comm->kind->detach(comm);
    comm->dev = NULL;
}

void wk_comm_phase(struct wk_comm *comm, enum wk_phase phase, long step)
{
    comm->step = step;
    wk_heartbeat_phase(comm->heartbeat, phase, step);
}

/* ---- The one place that every collective passes ---- */

/* The time that a slow link would take, for tests. */
static void be_slow(const struct wk_comm *comm, const struct wk_comm_op *op)
{
    double bytes = wk_ring_bytes(op->coll, (double)(op->n * wk_wire_size(op->type)), comm->world);

    if (op->plane != WK_PLANE_TRAIN || comm->world == 1)
        return;
    hg_clock_sleep_s(comm->link_latency_s);
    if (comm->link_bytes_per_s > 0)
        hg_clock_sleep_s(bytes / comm->link_bytes_per_s);
}

static void run_request(struct wk_comm *comm, struct wk_request *r, const _Atomic bool *waited)
{
    uint64_t before = comm->sent_bytes;

    r->start_s = hg_clock_mono_s();
    wk_heartbeat_enter(comm->heartbeat, wk_coll_names[r->op.coll]);
    if (r->op.n && comm->kind->run(comm, &r->op, waited, &r->error) < 0)
        hg_err_wrap(&r->error, "%s of %zu bytes, rank %d of %d", wk_coll_names[r->op.coll],
                    r->op.n * wk_wire_size(r->op.type), comm->rank, comm->world);
    r->sent_bytes = comm->sent_bytes - before;
    be_slow(comm, &r->op);
    wk_heartbeat_leave(comm->heartbeat);
    r->end_s = hg_clock_mono_s();
}

/* Take a collective that is over into the books. */
static int settle(struct wk_comm *comm, const struct wk_request *r, struct hg_err *err)
{
    struct wk_comm_count *count = &comm->counts[r->op.plane][r->op.coll];

    count->seconds += r->end_s - r->start_s;
    count->exposed_s += r->exposed_s;
    count->sent_bytes += r->sent_bytes;
    if (comm->recording)
        *HG_VEC_PUSH(&comm->records) = (struct wk_comm_record){ .step = r->step,
                                                                .coll = r->op.coll,
                                                                .plane = r->op.plane,
                                                                .type = r->op.type,
                                                                .n = r->op.n,
                                                                .stream = r->apart,
                                                                .start_s = r->start_s,
                                                                .end_s = r->end_s,
                                                                .exposed_s = r->exposed_s,
                                                                .asked = r->asked,
                                                                .claimed = comm->work };
    if (!r->error.code)
        return 0;
    if (err && !err->code)
        *err = r->error;
    return -1;
}

static int settle_until(struct wk_comm *comm, long ticket, struct hg_err *err)
{
    int rc = 0;

    while (comm->settled < ticket) {
        struct wk_request r;

        wk_queue_pop(comm->queue, &r);
        comm->settled++;
        if (settle(comm, &r, err) < 0)
            rc = -1;
    }
    return rc;
}

/* The device waits for it, not the rank. */
static int start_on_stream(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    int rc;

    wk_heartbeat_enter(comm->heartbeat, wk_coll_names[op->coll]);
    rc = comm->kind->start(comm, op, comm->grouped ? comm->started : ++comm->started, err);
    wk_heartbeat_leave(comm->heartbeat);
    return rc;
}

/* `now`: the caller waits for it at once. */
static int start(struct wk_comm *comm, const struct wk_comm_op *op, bool now, struct hg_err *err)
{
    static const _Atomic bool waited = true;
    struct wk_request r = {
        .op = *op, .step = comm->step, .asked = comm->work, .error = HG_ERR_INIT
    };
    struct wk_comm_count *count = &comm->counts[op->plane][op->coll];
    size_t bytes = op->n * wk_wire_size(op->type);

    count->calls++;
    count->payload_bytes += bytes;
    count->ring_bytes += wk_ring_bytes(op->coll, (double)bytes, comm->world);
    if (op->device && comm->kind->start)
        return start_on_stream(comm, op, err);
    if (!comm->apart || (now && (!comm->queue || wk_queue_idle(comm->queue)))) {
        run_request(comm, &r, &waited);
        r.exposed_s = r.end_s - r.start_s;
        return settle(comm, &r, err);
    }
    if (!comm->queue && !(comm->queue = wk_queue_open(comm, run_request, err)))
        return -1;
    if (wk_queue_full(comm->queue) && settle_until(comm, comm->settled + 1, err) < 0)
        return -1;
    r.apart = true;
    comm->started++;
    wk_queue_push(comm->queue, &r);
    return 0;
}

static enum wk_wire wire_of(enum wk_type type)
{
    return type == WK_REAL ? WK_WIRE_REAL : type == WK_BF16 ? WK_WIRE_BF16 : WK_WIRE_BYTE;
}

static int op_of(const struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll,
                 struct wk_span whole, struct wk_span part, struct wk_comm_op *op,
                 struct hg_err *err)
{
    bool parts = coll != WK_COLL_ALL_REDUCE && coll != WK_COLL_REDUCE && coll != WK_COLL_BROADCAST;
    struct wk_span all = whole.data ? whole : part;
    size_t n = whole.data ? whole.n : part.n * (size_t)comm->world;

    if ((wk_coll_sums(coll) && all.type != WK_REAL && all.type != WK_BF16) ||
        (parts && n % (size_t)comm->world != 0) || (part.data && part.n * (size_t)comm->world != n))
        return hg_err_set(err, HG_E_BUG, "%s of %zu %s", wk_coll_names[coll], n,
                          wk_type_name(all.type));
    *op = (struct wk_comm_op){ .coll = coll,
                               .plane = plane,
                               .type = wire_of(all.type),
                               .device = true,
                               .whole = whole.data,
                               .part = part.data,
                               .n = n * wk_type_size(all.type) / wk_wire_size(wire_of(all.type)) };
    if (parts && !op->part)
        op->part = (char *)whole.data +
                   (size_t)comm->rank * (n / (size_t)comm->world) * wk_type_size(all.type);
    return 0;
}

int wk_comm_start(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll,
                  struct wk_span whole, struct wk_span part, long *ticket, struct hg_err *err)
{
    struct wk_comm_op op;

    if (op_of(comm, plane, coll, whole, part, &op, err) < 0 || start(comm, &op, false, err) < 0)
        return -1;
    *ticket = comm->started;
    return 0;
}

void wk_comm_divide(const struct wk_comm *comm, struct wk_dev *dev, struct wk_span gradients)
{
    if (comm->world > 1 && !comm->averages)
        dev->backend->scale(dev, gradients, 1.0 / comm->world);
}

int wk_comm_start_mean(struct wk_comm *comm, enum wk_coll coll, struct wk_span whole, long *ticket,
                       struct hg_err *err)
{
    struct wk_comm_op op;

    if (op_of(comm, WK_PLANE_TRAIN, coll, whole, WK_NONE, &op, err) < 0)
        return -1;
    op.mean = comm->averages;
    if (start(comm, &op, false, err) < 0)
        return -1;
    *ticket = comm->started;
    return 0;
}

int wk_comm_group(struct wk_comm *comm, struct hg_err *err)
{
    if (!comm->kind->group)
        return 0;
    comm->grouped = comm->kind->group(comm, ++comm->started, false, err) == 0;
    return comm->grouped ? 0 : -1;
}

int wk_comm_ungroup(struct wk_comm *comm, int rc, struct hg_err *err)
{
    struct hg_err later = HG_ERR_INIT;
    int end;

    if (!comm->grouped)
        return rc;
    wk_heartbeat_inside(comm->heartbeat, true); /* it may wait for the others to connect */
    end = comm->kind->group(comm, comm->started, true, rc < 0 ? &later : err);
    wk_heartbeat_inside(comm->heartbeat, false);
    comm->grouped = false;
    return rc < 0 ? rc : end;
}

int wk_comm_wait(struct wk_comm *comm, long ticket, struct hg_err *err)
{
    if (comm->settled >= ticket)
        return 0;
    if (!comm->kind->wait)
        return settle_until(comm, ticket, err);
    comm->settled = ticket;
    return comm->kind->wait(comm, ticket, err);
}

static int run_now(struct wk_comm *comm, const struct wk_comm_op *op, struct hg_err *err)
{
    return start(comm, op, true, err) < 0 ? -1 : wk_comm_wait(comm, comm->started, err);
}

int wk_comm_run(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, struct wk_span whole,
                struct hg_err *err)
{
    struct wk_comm_op op;

    return op_of(comm, plane, coll, whole, WK_NONE, &op, err) < 0 ? -1 : run_now(comm, &op, err);
}

int wk_comm_sum(struct wk_comm *comm, double *values, size_t n, struct hg_err *err)
{
    const struct wk_comm_op op = { .coll = WK_COLL_ALL_REDUCE,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_F64,
                                   .whole = values,
                                   .n = n };

    return run_now(comm, &op, err);
}

int wk_comm_gather(struct wk_comm *comm, void *all, size_t bytes, struct hg_err *err)
{
    const struct wk_comm_op op = { .coll = WK_COLL_ALL_GATHER,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_BYTE,
                                   .whole = all,
                                   .part = (char *)all + (size_t)comm->rank * bytes,
                                   .n = bytes * (size_t)comm->world };

    return run_now(comm, &op, err);
}

void wk_comm_barrier(struct wk_comm *comm)
{
    wk_comm_wait(comm, comm->started, NULL);
    wk_heartbeat_enter(comm->heartbeat, "barrier");
    comm->kind->barrier(comm);
    wk_heartbeat_leave(comm->heartbeat);
}

int wk_comm_agree(struct wk_comm *comm, int rc, struct hg_err *err)
{
    struct hg_err *all = hg_alloc_zeroed((size_t)comm->world, sizeof *all);

    if (rc < 0)
        all[comm->rank] = *err;
    if (wk_comm_gather(comm, all, sizeof *all, err) < 0)
        rc = -1;
    for (int i = comm->world - 1; i >= 0; i--)
        if (all[i].code) {
            *err = all[i];
            rc = -1;
        }
    free(all);
    return rc;
}

/* ---- Sums in the order of the ranks, for transports of devices ---- */

static struct wk_span span_of(void *data, size_t n, enum wk_wire type)
{
    return (
        struct wk_span){ .data = data, .n = n, .type = type == WK_WIRE_BF16 ? WK_BF16 : WK_REAL };
}

/* What the collective left on the host for this rank. */
static void take_back(const struct wk_comm *comm, const struct wk_comm_op *op,
                      const struct wk_comm_op *done)
{
    size_t part = op->n / (size_t)comm->world;

    if (op->coll == WK_COLL_REDUCE_SCATTER)
        comm->dev->backend->upload(comm->dev, span_of(op->part, part, op->type), done->part);
    else if (op->coll == WK_COLL_ALL_REDUCE || comm->rank == 0)
        comm->dev->backend->upload(comm->dev, span_of(op->whole, op->n, op->type), done->whole);
}

int wk_comm_sum_on_host(struct wk_comm *comm, const struct wk_comm_kind *base,
                        const struct wk_comm_op *op, struct hg_err *err)
{
    static const _Atomic bool waited = true;
    const struct wk_backend *ops = comm->dev->backend;
    size_t size = wk_wire_size(op->type), part = op->n / (size_t)comm->world;
    char *host = hg_alloc(op->n * size + 1);
    struct wk_comm_op there = *op;
    int rc = -1;

    there.device = false;
    there.whole = host;
    there.part = host + (size_t)comm->rank * part * size;
    ops->download(comm->dev, host, span_of(op->whole, op->n, op->type));
    if (ops->sync(comm->dev, err) < 0 || base->run(comm, &there, &waited, err) < 0)
        goto out;
    take_back(comm, op, &there);
    rc = ops->sync(comm->dev, err);
out:
    free(host);
    return rc;
}

/* ---- The heartbeat ---- */

/* Where rank 0 listens, to all. Returns its listener, -1 elsewhere, -2 with err set. */
static int announce(struct wk_comm *comm, struct wk_rendezvous_place *place, struct hg_err *err)
{
    static const _Atomic bool waited = true;
    const struct wk_comm_op op = { .coll = WK_COLL_BROADCAST,
                                   .plane = WK_PLANE_CONTROL,
                                   .type = WK_WIRE_BYTE,
                                   .whole = place,
                                   .n = sizeof *place };
    struct hg_err why = HG_ERR_INIT;
    int fd = comm->rank == 0 ? wk_rendezvous_listen(0, place, &why) : -1;

    if (comm->rank == 0 && fd < 0)
        hg_warn("%s", why.text); /* port 0 tells the others */
    if (comm->kind->run(comm, &op, &waited, err) < 0) {
        if (fd >= 0)
            close(fd);
        return -2;
    }
    return fd;
}

int wk_comm_heartbeat(struct wk_comm *comm, double limit_s, const struct wk_heartbeat_ends *ends,
                      struct hg_err *err)
{
    struct wk_rendezvous_place place = { 0 };
    struct hg_err why = HG_ERR_INIT;
    struct wk_rendezvous *rv = NULL;
    double here;
    int fd;

    if (comm->world == 1)
        return 0;
    fd = announce(comm, &place, err);
    if (fd == -2)
        return -1;
    place.rank = comm->rank;
    place.world = comm->world;
    if (place.port)
        rv = wk_rendezvous_open(&place, fd, RENDEZVOUS_LIMIT_S, &why);
    here = rv ? 1 : 0;
    if (wk_comm_sum(comm, &here, 1, err) < 0) {
        wk_rendezvous_close(rv);
        return -1;
    }
    if ((int)here < comm->world) { /* the same on every rank */
        if (comm->rank == 0)
            hg_warn("no heartbeat between the ranks (%s): only the launcher will notice a "
                    "dead rank",
                    why.text);
        wk_rendezvous_close(rv);
        return 0;
    }
    comm->heartbeat = wk_heartbeat_start(rv, comm->rank, comm->world, limit_s, ends, err);
    return comm->heartbeat ? 0 : -1;
}
