/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

const char *const wk_coll_names[WK_COLLS] = { "all_reduce", "broadcast", "all_gather" };

/* A variable's value as a count from 0; -1 if it is absent or no number. */
static int env_int(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long v = text ? strtol(text, &end, 10) : -1;

    return text && *text && *end == '\0' && v >= 0 && v <= INT_MAX ? (int)v : -1;
}

void wk_comm_environment(int *rank, int *world)
{
    /* mpirun inside a Slurm step has the last word. Else the largest claim counts: a WORLD_SIZE
     * that somebody exported must not hide that srun started several processes. */
    bool mpirun = env_int("OMPI_COMM_WORLD_SIZE") > 0;
    int told = env_int("WORLD_SIZE"), step = env_int("SLURM_STEP_NUM_TASKS");

    *world = mpirun ? env_int("OMPI_COMM_WORLD_SIZE") : told > step ? told : step;
    *rank = mpirun ? env_int("OMPI_COMM_WORLD_RANK") : env_int("RANK");
    if (*rank < 0)
        *rank = env_int("SLURM_PROCID");
    if (*rank < 0)
        *rank = 0;
    if (*world < 1)
        *world = 1;
}

static int wrong_world(const struct wk_comm *comm, int told, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV,
               "%d processes were started, but MPI sees a world of %d: each would train alone",
               told, comm->world);
    if (getenv("SLURM_STEP_NUM_TASKS"))
        return hg_err_hint(
            err, "srun must start MPI ranks: `srun --mpi=pmix` (srun --mpi=list shows what "
                 "the site has), or set the site's \"launcher\"");
    return hg_err_hint(err, "start the ranks with mpirun or with `srun --mpi=pmix`");
}

struct wk_comm *wk_comm_open(struct hg_err *err)
{
    int rank, told;
    struct wk_comm *comm;

    wk_comm_environment(&rank, &told);
    comm = told > 1 ? wk_comm_mpi.open(err) : wk_comm_self.open(err);
    if (comm && told > 1 && comm->world != told) {
        wrong_world(comm, told, err);
        wk_comm_close(comm);
        return NULL;
    }
    return comm;
}

void wk_comm_close(struct wk_comm *comm)
{
    if (comm)
        comm->kind->close(comm);
}

double wk_ring_bytes(enum wk_coll coll, double payload_bytes, int world)
{
    double others = (world - 1.0) / world;

    switch (coll) {
    case WK_COLL_ALL_REDUCE:
        return 2 * others * payload_bytes;
    case WK_COLL_ALL_GATHER:
        return others * payload_bytes;
    case WK_COLL_BROADCAST:
    case WK_COLLS:
        break;
    }
    return world > 1 ? payload_bytes : 0;
}

/* The one place that every collective passes. */
static int run_counted(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, void *data,
                       size_t n, enum wk_wire type, size_t bytes, struct hg_err *err)
{
    struct wk_comm_count *count = &comm->counts[plane][coll];
    double start = hg_clock_mono_s();

    if (n && comm->kind->run(comm, coll, data, n, type, err) < 0)
        return hg_err_wrap(err, "%s of %zu bytes, rank %d of %d", wk_coll_names[coll], bytes,
                           comm->rank, comm->world);
    count->calls++;
    count->payload_bytes += bytes;
    count->ring_bytes += wk_ring_bytes(coll, (double)bytes, comm->world);
    count->seconds += hg_clock_mono_s() - start;
    return 0;
}

int wk_comm_run(struct wk_comm *comm, enum wk_plane plane, enum wk_coll coll, struct wk_span buffer,
                struct hg_err *err)
{
    size_t bytes = buffer.n * wk_type_size(buffer.type);

    if (buffer.type == WK_REAL)
        return run_counted(comm, plane, coll, buffer.data, buffer.n, WK_WIRE_REAL, bytes, err);
    if (coll == WK_COLL_ALL_REDUCE)
        return hg_err_set(err, HG_E_BUG, "all_reduce of %s", wk_type_name(buffer.type));
    return run_counted(comm, plane, coll, buffer.data, bytes, WK_WIRE_BYTE, bytes, err);
}

int wk_comm_sum(struct wk_comm *comm, double *values, size_t n, struct hg_err *err)
{
    return run_counted(comm, WK_PLANE_CONTROL, WK_COLL_ALL_REDUCE, values, n, WK_WIRE_F64,
                       n * sizeof *values, err);
}

int wk_comm_gather(struct wk_comm *comm, void *all, size_t bytes, struct hg_err *err)
{
    size_t total = bytes * (size_t)comm->world;

    return run_counted(comm, WK_PLANE_CONTROL, WK_COLL_ALL_GATHER, all, total, WK_WIRE_BYTE, total,
                       err);
}

void wk_comm_barrier(struct wk_comm *comm)
{
    comm->kind->barrier(comm);
}
