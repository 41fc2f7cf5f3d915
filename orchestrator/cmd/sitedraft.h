/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_SITEDRAFT_H
#define HG_CMD_SITEDRAFT_H

#include <jansson.h>

#include "base/err.h"

/* What the agent answered (slurm/protocol.md): the objects in "ok", NULL for what it could not say. References are owned. */
struct hg_cluster_facts {
    json_t *limits, *partitions, *nodes, *account;
    const char *launcher; /* NULL: unknown */
};

void hg_cluster_facts_done(struct hg_cluster_facts *facts);

/* A site file for this cluster, a new reference: an entry of hardware for every partition and kind of node in it. NULL with err
 * set (ENV): no partition can be used. */
json_t *hg_site_draft(const char *name, const struct hg_cluster_facts *facts, struct hg_err *err);

#endif
