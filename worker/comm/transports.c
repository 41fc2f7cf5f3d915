/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/transports.h"

#include <stdlib.h>
#include <string.h>

#include "comm/environment.h"
#include "comm/nccl.h"
#include "comm/tcp.h"
#include "comm/threads.h"

/* What to do about ranks that do not find each other. */
static int wrong_launcher(struct hg_err *err)
{
    if (getenv("SLURM_STEP_NUM_TASKS"))
        return hg_err_hint(
            err, "srun must start MPI ranks: `srun --mpi=pmix` (srun --mpi=list shows what "
                 "the site has), or set the site's \"launcher\"; without PMIx, HPCGRID_COMM=tcp "
                 "(in the site's \"env\") needs no MPI");
    return hg_err_hint(err, "start the ranks with mpirun or with `srun --mpi=pmix`");
}

static int wrong_world(const struct wk_comm *comm, int started, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV,
               "%d processes were started, but MPI sees a world of %d: each would train alone",
               started, comm->world);
    return wrong_launcher(err);
}

/* How several ranks talk. */
static const struct wk_comm_kind *kind_of(struct hg_err *err)
{
    static const struct wk_comm_kind *const kinds[] = { &wk_comm_mpi, &wk_comm_tcp };
    const char *name = getenv("HPCGRID_COMM");

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!name || !*name || strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    hg_err_set(err, HG_E_ENV, "HPCGRID_COMM: unknown transport \"%s\"", name);
    hg_err_hint(err, "mpi (the default) or tcp");
    return NULL;
}

struct wk_comm *wk_comm_open(struct hg_err *err)
{
    int rank, started;
    const struct wk_comm_kind *kind;
    struct wk_comm *comm;

    wk_comm_environment(&rank, &started);
    kind = started > 1 ? kind_of(err) : &wk_comm_self;
    comm = kind ? kind->open(err) : NULL;
    if (!comm && kind == &wk_comm_mpi)
        wrong_launcher(err);
    if (comm && started > 1 && comm->world != started) {
        wrong_world(comm, started, err);
        wk_comm_close(comm);
        return NULL;
    }
    return comm;
}

static const struct {
    const char *backend;
    int (*attach)(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err);
    void (*give_up)(void);
    void (*describe)(struct hg_buf *out);
} ways[] = {
#ifdef WK_CUDA
    { "cuda", wk_nccl_attach, wk_nccl_give_up, wk_nccl_describe },
#endif
    { NULL, NULL, NULL, NULL },
};

void wk_comm_give_up(void)
{
    for (int i = 0; ways[i].backend; i++)
        ways[i].give_up();
}

void wk_comm_describe(struct hg_buf *out)
{
    wk_comm_mpi.describe(out);
    for (int i = 0; ways[i].backend; i++)
        ways[i].describe(out);
}

int wk_comm_join(struct wk_comm *comm, struct wk_dev *dev, struct hg_err *err)
{
    bool share = comm->kind == &wk_comm_threads && getenv("HPCGRID_SHARE_GPU");

    comm->dev = dev;
    if (dev->uuid[0] && comm->kind == &wk_comm_threads)
        comm->apart = false; /* a GPU's work comes from the thread that opened it */
    for (int i = 0; ways[i].backend && !share; i++)
        if (strcmp(ways[i].backend, dev->backend->name) == 0 &&
            (comm->world > 1 || getenv("HPCGRID_JOIN_ALONE")))
            return ways[i].attach(comm, dev, err);
    return 0;
}
