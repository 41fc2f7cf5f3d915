/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank computes where: gathered once, compared with what the cell requests, and reported when a training fails. */
#ifndef WK_TRAIN_PLACES_H
#define WK_TRAIN_PLACES_H

#include <jansson.h>

#include "comm/comm.h"
#include "train/config.h"

/* One rank; no pointers, as it travels. */
struct wk_place {
    int rank, pid, threads;
    char host[64];
    char node[64]; /* Slurm's name; the host's elsewhere */
    char device[128];
    char pci[32], uuid[64]; /* of a GPU, else "" */
};

/* All ranks' places, (world) of them, yours. Every rank calls it. Fails with ENV, in every rank, when they are not what the cell
 * requests: other nodes, other numbers of ranks on a node, two ranks on one GPU. NULL with err set. */
struct wk_place *wk_places_gather(struct wk_comm *comm, const struct wk_dev *dev,
                                  const struct wk_config *config, struct hg_err *err);

/* How many nodes they are on. */
int wk_places_nodes(const struct wk_place *places, int world);

/* A list of objects {rank, host, node, pid, threads, device, pci, uuid}; a new reference. */
json_t *wk_places_encode(const struct wk_place *places, int world);

/* Append a table for people, a line a rank, 64 at most. */
void wk_places_format(const struct wk_place *places, int world, struct hg_buf *out);

#endif
