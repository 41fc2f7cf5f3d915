/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator whose ranks watch each other: the transport carries to all where rank 0 listens, then they meet there. */
#include "comm/comm_heartbeat.h"

#include <unistd.h>

#include "base/log.h"

#define MEET_LIMIT_S 60.0

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
        hg_warn("%s", why.text); /* the others learn it from port 0 */
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
        rv = wk_rendezvous_open(&place, fd, MEET_LIMIT_S, &why);
    here = rv ? 1 : 0;
    if (wk_comm_sum(comm, &here, 1, err) < 0) {
        wk_rendezvous_close(rv);
        return -1;
    }
    if ((int)here < comm->world) { /* all of them agree */
        if (comm->rank == 0)
            hg_warn("the ranks cannot watch each other (%s): a dead one is noticed by the launcher "
                    "only",
                    why.text);
        wk_rendezvous_close(rv);
        return 0;
    }
    comm->heartbeat = wk_heartbeat_start(rv, comm->rank, comm->world, limit_s, ends, err);
    return comm->heartbeat ? 0 : -1;
}
