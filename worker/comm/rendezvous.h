/* SPDX-License-Identifier: Apache-2.0 */
/* Where the ranks of a job find each other without MPI: over TCP, every rank connected to rank 0. It carries small things:
 * addresses (comm/tcp.h), heartbeats (comm/heartbeat.h). A connection alone is not trusted: each
 * rank sends the job's token, its rank, and the world size that it expects. */
#ifndef WK_COMM_RENDEZVOUS_H
#define WK_COMM_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct wk_rendezvous_place {
    int rank, world;
    char addresses[512]; /* of rank 0, names or numbers with commas between them; tried in turn */
    int port;
    uint64_t token; /* equal in all ranks of a job */
};

/* A socket that listens on this port of all addresses, 0: any free one; place gets port, addresses of this machine and a fresh
 * token, for rank 0 to tell the others by other means. Returns the descriptor, -1 with err set. */
int wk_rendezvous_listen(int port, struct wk_rendezvous_place *place, struct hg_err *err);

struct wk_rendezvous;

/* Connect the ranks; every rank of the job calls it and it returns when all are there. `listener` is rank 0's from wk_rendezvous_listen,
 * taken over, or -1: it listens on place->port. Fails with ENV, in every rank that is there: some did not arrive within limit_s
 * seconds (they are named), two claim the same rank, one expects another number of ranks. */
struct wk_rendezvous *wk_rendezvous_open(const struct wk_rendezvous_place *place, int listener,
                                         double limit_s, struct hg_err *err);
void wk_rendezvous_close(struct wk_rendezvous *rv);

/* Rank 0's bytes to all. Every rank calls it. */
int wk_rendezvous_broadcast(struct wk_rendezvous *rv, void *data, size_t bytes, struct hg_err *err);
/* all (world, bytes): each rank's part, which it has put at its place, to all. Every rank calls it. */
int wk_rendezvous_gather(struct wk_rendezvous *rv, void *all, size_t bytes, struct hg_err *err);

/* Descriptor of the connection to another rank: rank 0 has one to each, the others to 0 only. Lent; -1 if there is none. */
int wk_rendezvous_fd(const struct wk_rendezvous *rv, int rank);
/* How a rank named itself: "rank 3 on gpu07 (pid 4711)". Rank 0 knows it of all, the others of themselves and rank 0. */
void wk_rendezvous_who(const struct wk_rendezvous *rv, int rank, char *out, size_t size);
/* The same in parts; the host is "" where it is not known. Lent. */
const char *wk_rendezvous_host(const struct wk_rendezvous *rv, int rank, int *pid);

#endif
