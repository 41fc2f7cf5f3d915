/* SPDX-License-Identifier: Apache-2.0 */
/* Communication between ranks. Every collective passes wk_comm_start, which counts it and its payload: so what a
 * strategy asked for is measured, and can be compared with what its definition says.
 *
 * In host memory sums are taken in the order of the ranks, whichever collective and transport: the same
 * numbers give the same bits. Transports of devices sum in any order, unless in_order is set. */
#ifndef WK_COMM_COMM_H
#define WK_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "base/err.h"
#include "comm/heartbeat.h"
#include "comm/wire.h"

/* What ranks exchange data for: the training itself, or its bookkeeping (losses, timings, device names).
 * They are counted apart. */
enum wk_plane { WK_PLANE_TRAIN, WK_PLANE_CONTROL, WK_PLANES };

struct wk_comm_count {
    uint64_t calls, payload_bytes; /* of the wholes */
    double ring_bytes;             /* by the formula of comm/wire.h */
    uint64_t sent_bytes;           /* that this rank wrote; 0: the transport does not count them */
    double seconds;                /* that collectives ran */
    double exposed_s;              /* of these, those in which the rank only waited */
};

/* One collective, as a transport sees it. */
struct wk_comm_op {
    enum wk_coll coll;
    enum wk_plane plane;
    enum wk_wire type;
    bool device; /* whole and part lie in the device's memory, else the host's */
    bool mean;   /* of sums: divided by the number of ranks; only where wk_comm.averages */
    void *whole; /* NULL where a rank needs only its part (scatter, gather) */
    void *part;
    size_t n; /* elements of the whole */
};

/* What happened, one entry a collective; kept if recording. */
struct wk_comm_record {
    long step; /* wk_comm.step when it was started */
    enum wk_coll coll;
    enum wk_plane plane;
    enum wk_wire type;
    size_t n;   /* elements of the whole */
    int stream; /* 0: the rank waited for it at once; 1: it could overlap the rank's work */
    double start_s, end_s; /* clock of hg_clock_mono_s */
    double exposed_s;
    long asked, claimed; /* wk_comm.work when the rank started it, and when it waited for it */
};

struct wk_comm_queue;

struct wk_comm {
    const struct wk_comm_kind *kind;
    int rank, world;
    struct wk_dev *dev; /* whose memory device spans lie in; set by whoever opens both */
    long step;          /* of the training, for records */
    long work;          /* passes of layers that the rank has done: what can overlap a collective */
    struct wk_heartbeat *heartbeat; /* NULL: none */
    struct wk_comm_count counts[WK_PLANES][WK_COLLS];
    bool recording;
    struct {
        struct wk_comm_record *items;
        size_t n, cap;
    } records;
    /* For tests: every collective of the training takes so much longer, as over a slow link. */
    double link_latency_s, link_bytes_per_s; /* 0: no limit */
    bool grouped;                /* what is started shares a ticket; see wk_comm_group */
    bool in_order;               /* sums over device memory also: set before wk_comm_join */
    bool averages;               /* the transport divides a sum itself; set by it */
    bool failed;                 /* this rank's training: wk_comm_leave then waits for no other */
    uint64_t sent_bytes;         /* that the transport wrote, if it counts them */
    bool apart;                  /* set by open: run may be called on another thread than open */
    struct wk_comm_queue *queue; /* of comm.c, as the tickets that it gave out and took back */
    long started, settled;
};

/* A way to communicate: one entry in transports.c. Called by comm.c only. */
struct wk_comm_kind {
    const char *name, *summary;
    struct wk_comm *(*open)(struct hg_err *err);
    void (*close)(struct wk_comm *comm);
    /* Do it before returning; the memory is ready. May be called on a thread of its own, one
     * collective at a time, in the order in which they were started. `waited` says whether the
     * rank is blocked by it: then it may spin. */
    int (*run)(struct wk_comm *comm, const struct wk_comm_op *op, const _Atomic bool *waited,
               struct hg_err *err);
    /* For transports with streams of their own, else NULL; device memory only. Queue it after the
     * work queued on the device, and return; tickets count up. After wait, what is queued on the
     * device runs after all collectives up to that ticket. The transport counts seconds and
     * exposed_s. */
    int (*start)(struct wk_comm *comm, const struct wk_comm_op *op, long ticket,
                 struct hg_err *err);
    int (*wait)(struct wk_comm *comm, long ticket, struct hg_err *err);
    /* What is started with this ticket from now on leaves together, at `end`. NULL if that makes no difference. */
    int (*group)(struct wk_comm *comm, long ticket, bool end, struct hg_err *err);
    /* Of a kind that extends another: release what it holds of the device, and restore the other. Else NULL. */
    void (*detach)(struct wk_comm *comm);
    void (*barrier)(struct wk_comm *comm);
    /* End all ranks of the job with this exit code. Does not return. */
    void (*abort)(struct wk_comm *comm, int code) __attribute__((noreturn));
    /* Append "version" of the library, for doctor. May be NULL. */
    void (*describe)(struct hg_buf *out);
};

void wk_comm_close(struct wk_comm *comm);

/* Where the training is; step counts from 1. */
void wk_comm_phase(struct wk_comm *comm, enum wk_phase phase, long step);

/* Undo wk_comm_join (comm/transports.h), before the device is closed. */
void wk_comm_leave(struct wk_comm *comm);

/* Begin a collective over device memory, after the work queued there. part absent: it is in the
 * whole; whole absent (scatter, gather): this is not rank 0. Neither may be touched until
 * wk_comm_wait came back for the ticket or a later one. Collectives run one after the other in the
 * order of their tickets. A failure may show here or in wait. */
int wk_comm_start(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll,
                  struct wk_span whole, struct wk_span part, long *ticket, struct hg_err *err);
int wk_comm_wait(struct wk_comm *comm, long ticket, struct hg_err *err);
/* The mean of gradients over the ranks, by a collective that sums, in two calls: wk_comm_divide divides a rank's own in full precision
 * (it does nothing if the transport divides), then wk_comm_start_mean starts the collective. */
void wk_comm_divide(const struct wk_comm *comm, struct wk_dev *dev, struct wk_span gradients);
int wk_comm_start_mean(struct wk_comm *comm, enum wk_coll coll, struct wk_span whole, long *ticket,
                       struct hg_err *err);
/* Collectives of one kind that are started between these two need one launch on a device, and share a ticket. Without a failure of
 * wk_comm_group wk_comm_ungroup must follow; rc is that of the starts, and what it returns if that is a failure. */
int wk_comm_group(struct wk_comm *comm, struct hg_err *err);
int wk_comm_ungroup(struct wk_comm *comm, int rc, struct hg_err *err);
/* Both at once, in place. */
int wk_comm_run(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, struct wk_span whole,
                struct hg_err *err);

/* The same over host memory, counted as control. */
int wk_comm_sum(struct wk_comm *comm, double *values, size_t n, struct hg_err *err);
/* each rank's `bytes` bytes of all (world, bytes) */
int wk_comm_gather(struct wk_comm *comm, void *all, size_t bytes, struct hg_err *err);
void wk_comm_barrier(struct wk_comm *comm);
/* All ranks succeed, or all fail with the error of the first that failed: rc and err are this rank's. */
int wk_comm_agree(struct wk_comm *comm, int rc, struct hg_err *err);

/* For transports of devices that sum in the order of the ranks: bring this rank's whole to the host, let `base` do the collective
 * there, and take back what it gives this rank. Waits for the device's memory; all that was started before must be over. */
int wk_comm_sum_on_host(struct wk_comm *comm, const struct wk_comm_kind *base,
                        const struct wk_comm_op *op, struct hg_err *err);

/* Start the heartbeats (comm/heartbeat.h); every rank calls it. If the ranks cannot reach each other over TCP, they continue
 * without, with a warning. */
int wk_comm_heartbeat(struct wk_comm *comm, double limit_s, const struct wk_heartbeat_ends *ends,
                      struct hg_err *err);

#endif
