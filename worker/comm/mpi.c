/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of an MPI job. Errors come back as codes, so that a failed collective is reported with its
 * place. */
#include "comm/comm.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

static int mpi_failed(int code, const char *what, struct hg_err *err)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    MPI_Error_string(code, text, &n);
    return hg_err_set(err, HG_E_ENV, "%s: %.*s", what, n, text);
}

static struct wk_comm *mpi_open(struct hg_err *err)
{
    struct wk_comm *comm = calloc(1, sizeof *comm);
    int ready = 0, level, code;

    if (!comm) {
        hg_err_oom(err);
        return NULL;
    }
    MPI_Initialized(&ready);
    code = ready ? MPI_SUCCESS : MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (code != MPI_SUCCESS) {
        mpi_failed(code, "MPI_Init_thread", err);
        free(comm);
        return NULL;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &comm->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &comm->world);
    comm->kind = &wk_comm_mpi;
    return comm;
}

static void mpi_close(struct wk_comm *comm)
{
    int done = 0;

    MPI_Finalized(&done);
    if (!done)
        MPI_Finalize();
    free(comm);
}

/* MPI counts in int: long buffers go in pieces, which for a sum or a broadcast changes nothing. */
#define PIECE ((size_t)1 << 30)

static int run_pieces(enum wk_coll coll, char *data, size_t n, MPI_Datatype type, size_t size)
{
    for (size_t at = 0; at < n; at += PIECE) {
        int count = (int)(n - at < PIECE ? n - at : PIECE);
        int code = coll == WK_COLL_ALL_REDUCE
                       ? MPI_Allreduce(MPI_IN_PLACE, data + at * size, count, type, MPI_SUM,
                                       MPI_COMM_WORLD)
                       : MPI_Bcast(data + at * size, count, type, 0, MPI_COMM_WORLD);

        if (code != MPI_SUCCESS)
            return code;
    }
    return MPI_SUCCESS;
}

static int mpi_run(struct wk_comm *comm, enum wk_coll coll, void *data, size_t n, enum wk_wire wire,
                   struct hg_err *err)
{
    MPI_Datatype real = sizeof(wk_real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
    MPI_Datatype type = wire == WK_WIRE_REAL ? real : wire == WK_WIRE_F64 ? MPI_DOUBLE : MPI_BYTE;
    size_t size = wire == WK_WIRE_REAL ? sizeof(wk_real) : wire == WK_WIRE_F64 ? sizeof(double) : 1;
    size_t part = n / (size_t)comm->world;
    int code;

    if (coll != WK_COLL_ALL_GATHER)
        code = run_pieces(coll, data, n, type, size);
    else if (part <= INT_MAX)
        code = MPI_Allgather(MPI_IN_PLACE, 0, type, data, (int)part, type, MPI_COMM_WORLD);
    else
        return hg_err_set(err, HG_E_BUG, "a part of %zu elements is too long for MPI", part);
    return code == MPI_SUCCESS ? 0 : mpi_failed(code, "MPI", err);
}

static void mpi_barrier(struct wk_comm *comm)
{
    (void)comm;
    MPI_Barrier(MPI_COMM_WORLD);
}

static __attribute__((noreturn)) void mpi_abort(struct wk_comm *comm, int code)
{
    (void)comm;
    MPI_Abort(MPI_COMM_WORLD, code);
    _Exit(code);
}

static void mpi_describe(struct hg_buf *out)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n = 0, end = 0;

    MPI_Get_library_version(text, &n);
    while (end < n && text[end] != '\n' && text[end] != ',')
        end++;
    hg_buf_printf(out, "mpi %.*s\n", end, text);
}

const struct wk_comm_kind wk_comm_mpi = {
    .name = "mpi",
    .summary = "ranks of an MPI job",
    .open = mpi_open,
    .close = mpi_close,
    .run = mpi_run,
    .barrier = mpi_barrier,
    .abort = mpi_abort,
    .describe = mpi_describe,
};
