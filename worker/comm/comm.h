/* SPDX-License-Identifier: Apache-2.0 */
/* Communication between ranks. Every collective passes wk_comm_run, which counts it: so what a
 * strategy sent is measured, and can be held against what its definition says.
 *
 * Ring bytes are what one rank sends in a ring algorithm over N ranks, for a full buffer of X
 * bytes: all-reduce 2 (N-1)/N X, all-gather (N-1)/N X, broadcast X (0 when N is 1). */
#ifndef WK_COMM_COMM_H
#define WK_COMM_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "base/err.h"

enum wk_coll {
    WK_COLL_ALL_REDUCE, /* sum, in place */
    WK_COLL_BROADCAST,  /* from rank 0 */
    WK_COLL_ALL_GATHER, /* each rank's part of the buffer to all, in place: rank r's is the r-th of
                           N equal parts */
    WK_COLLS
};
extern const char *const wk_coll_names[WK_COLLS];

/* What ranks talk about: the training itself, or its bookkeeping (losses, timings, device names).
 * They are counted apart. */
enum wk_plane { WK_PLANE_TRAIN, WK_PLANE_CONTROL, WK_PLANES };

struct wk_comm_count {
    uint64_t calls, payload_bytes;
    double ring_bytes;
    double seconds; /* in the collective; this backend computes nothing meanwhile, so all of it is
                       exposed */
};

struct wk_comm {
    const struct wk_comm_kind *kind;
    int rank, world;
    struct wk_comm_count counts[WK_PLANES][WK_COLLS];
};

/* Element types that travel. */
enum wk_wire { WK_WIRE_REAL, WK_WIRE_F64, WK_WIRE_BYTE };

/* A way to communicate: one entry in comm.c. Called by wk_comm_run only. */
struct wk_comm_kind {
    const char *name, *summary;
    struct wk_comm *(*open)(struct hg_err *err);
    void (*close)(struct wk_comm *comm);
    /* n elements in the whole buffer */
    int (*run)(struct wk_comm *comm, enum wk_coll coll, void *data, size_t n, enum wk_wire type,
               struct hg_err *err);
    void (*barrier)(struct wk_comm *comm);
    /* End all ranks of the job with this exit code. Does not return. */
    void (*abort)(struct wk_comm *comm, int code) __attribute__((noreturn));
    /* Append "version" of the library, for doctor. May be NULL. */
    void (*describe)(struct hg_buf *out);
};

extern const struct wk_comm_kind wk_comm_self, wk_comm_mpi;

/* Join the ranks that this process was started with: alone (self), or through MPI when the
 * environment says that there are several or `several` does. Fails with ENV when the environment
 * and MPI disagree, as after an srun that started N processes which know nothing of each other:
 * every number would be wrong. NULL on failure; end it with wk_comm_close. */
struct wk_comm *wk_comm_open(struct hg_err *err);
void wk_comm_close(struct wk_comm *comm);

/* Rank and number of ranks as the environment tells them (RANK, WORLD_SIZE, SLURM_*, OMPI_*),
 * before wk_comm_open. */
void wk_comm_environment(int *rank, int *world);

/* One collective over a whole device buffer. It is ordered behind the work queued on the device;
 * this build's transports finish it before they return. */
int wk_comm_run(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, struct wk_span buffer,
                struct hg_err *err);

/* The same over host memory, always counted as control. */
int wk_comm_sum(struct wk_comm *comm, double *values, size_t n, struct hg_err *err);
/* each rank's `bytes` bytes of all (world, bytes) */
int wk_comm_gather(struct wk_comm *comm, void *all, size_t bytes, struct hg_err *err);
void wk_comm_barrier(struct wk_comm *comm);

/* Ring bytes of one collective over so many bytes. */
double wk_ring_bytes(enum wk_coll coll, double payload_bytes, int world);

#endif
