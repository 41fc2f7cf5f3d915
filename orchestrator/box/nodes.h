/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_NODES_H
#define HG_BOX_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HG_BOX_NODES_MAX 256

/* Nodes of one kind. */
struct hg_box_group {
    char hardware
        [64]; /* node names are HARDWARE-1, HARDWARE-2, ...; the nodes carry it as a feature, and their partition has
                             this name, too */
    long nodes, gpus;             /* gpus: per node */
    long cpus;                    /* per node, claimed; 0: 64, or 32 per GPU if that is more */
    long mem_mib;                 /* per node, claimed; 0: 1 TB */
    long max_time_min, max_nodes; /* of a job in their partition; 0: any */
    char partition[128];          /* one, or several with commas; "": named like the hardware */
    char gres[64]; /* its name and type, "gpu:a100"; "" or without a type: like the hardware */
    char constraint[256]; /* further features: a list, or what jobs request, "ib&(a|b)"; "": none */
};

struct hg_box_spec {
    const char *name; /* [A-Za-z0-9._-]{1,32} */
    const struct hg_box_group *groups;
    size_t n_groups;
    const char *const *settings; /* "KEY=VALUE" lines for slurm.conf, NULL-terminated; NULL: none */
    bool accounting;             /* also MariaDB and slurmdbd; takes some seconds more */
    bool any; /* groups are only a default: a box of this name is fine as it is */
};

/* Read "a100:4x2,t4:1x1,cpu:2x0": hardware:nodes x GPUs per node, optionally "/CPUs". Yours to
 * free(). NULL with err set: USAGE. */
struct hg_box_group *hg_box_nodes_parse(const char *text, size_t *n, struct hg_err *err);

/* Number of nodes of all groups. */
size_t hg_box_nodes_count(const struct hg_box_spec *spec);

/* Name of the i-th node (from 0) over all groups. */
void hg_box_nodes_name(const struct hg_box_spec *spec, size_t i, char out[static 96]);

struct hg_box_ports {
    int ctld;       /* slurmctld's */
    int first_node; /* of the first slurmd; the others follow */
    int dbd, database;
};

/* Find 3 + n free ports in a row. */
int hg_box_ports_choose(size_t n, struct hg_box_ports *ports, struct hg_err *err);

#endif
