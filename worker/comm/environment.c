/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

long wk_env_number(const char *name, long max)
{
    const char *text = getenv(name);
    char *end;
    long v = text ? strtol(text, &end, 10) : -1;

    return text && *text && *end == '\0' && v >= 0 && v <= max ? v : -1;
}

static int env_int(const char *name)
{
    return (int)wk_env_number(name, INT_MAX);
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

int wk_comm_local_rank(void)
{
    static const char *const names[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                         "SLURM_LOCALID" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (env_int(names[i]) >= 0)
            return env_int(names[i]);
    return 0;
}
