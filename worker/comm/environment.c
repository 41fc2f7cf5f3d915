/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/text.h"

#define PORT_FIRST 15000 /* as launchers for PyTorch under Slurm do */

/* A variable's value, from 0 to max; -1 if it is absent or anything else. */
static long env_number(const char *name, long max)
{
    const char *text = getenv(name);
    char *end;
    long v = text ? strtol(text, &end, 10) : -1;

    return text && *text && *end == '\0' && v >= 0 && v <= max ? v : -1;
}

static int env_int(const char *name)
{
    return (int)env_number(name, INT_MAX);
}

void wk_comm_environment(int *rank, int *world)
{
    /* mpirun inside a Slurm step decides. Else the largest number counts: an exported WORLD_SIZE
     * must not hide that srun started several processes. */
    bool mpirun = env_int("OMPI_COMM_WORLD_SIZE") > 0;
    int set = env_int("WORLD_SIZE"), step = env_int("SLURM_STEP_NUM_TASKS");

    *world = mpirun ? env_int("OMPI_COMM_WORLD_SIZE") : set > step ? set : step;
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

/* ---- The rendezvous ---- */

/* Equal in all ranks of a job, another one in the next attempt. */
static uint64_t make_token(void)
{
    static const char *const names[] = { "SLURM_JOB_ID",    "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
                                         "HPCGRID_ATTEMPT", "MASTER_ADDR",   "MASTER_PORT" };
    struct hg_buf text = HG_BUF_INIT;
    uint64_t token;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);

        hg_buf_printf(&text, "%s=%s\n", names[i], value ? value : "");
    }
    token = hg_hash64(hg_buf_str(&text), text.len);
    hg_buf_done(&text);
    return token;
}

static int no_place(const struct wk_rendezvous_place *p, const char *what, struct hg_err *err)
{
    hg_err_set(err, HG_E_ENV, "rank %d of %d has no rendezvous address: %s", p->rank, p->world,
               what);
    return hg_err_hint(err, "set MASTER_ADDR and MASTER_PORT, or start the ranks with srun");
}

static int find_address(struct wk_rendezvous_place *p, struct hg_err *err)
{
    static const char *const lists[] = { "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST" };
    const char *addr = getenv("MASTER_ADDR");

    if (addr && *addr) {
        if (strlen(addr) >= sizeof p->addresses)
            return hg_err_set(err, HG_E_ENV, "MASTER_ADDR is too long");
        snprintf(p->addresses, sizeof p->addresses, "%s", addr);
        return 0;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (hg_text_first_host(getenv(lists[i]), p->addresses, sizeof p->addresses))
            return 0;
    return no_place(p, "neither MASTER_ADDR nor SLURM_STEP_NODELIST is set", err);
}

static int find_port(struct wk_rendezvous_place *p, struct hg_err *err)
{
    const char *text = getenv("MASTER_PORT");
    long port = env_number("MASTER_PORT", 65535), job = env_number("SLURM_JOB_ID", LONG_MAX);

    if (text && *text && port < 1)
        return hg_err_set(err, HG_E_ENV, "MASTER_PORT is \"%s\", not a port from 1 to 65535", text);
    if (port < 1 && job < 0)
        return no_place(p, "neither MASTER_PORT nor SLURM_JOB_ID is set", err);
    p->port = port >= 1 ? (int)port : PORT_FIRST + (int)(job % 10000);
    return 0;
}

int wk_rendezvous_find(struct wk_rendezvous_place *p, struct hg_err *err)
{
    *p = (struct wk_rendezvous_place){ 0 };
    wk_comm_environment(&p->rank, &p->world);
    p->token = make_token();
    if (p->world == 1)
        return 0;
    if (p->rank >= p->world)
        return hg_err_set(err, HG_E_ENV, "the environment says rank %d, but the world has %d ranks",
                          p->rank, p->world);
    return find_address(p, err) < 0 || find_port(p, err) < 0 ? -1 : 0;
}
