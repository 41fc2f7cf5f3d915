/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_BOX_H
#define HG_BOX_BOX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* A private Slurm on this machine: munged, slurmctld and one slurmd per virtual node, started as
 * the calling user (root or not), all of it in /tmp/hpcgrid-<uid>/NAME. box/README.md says what a
 * box can and cannot do.
 *
 * Every process of a box, jobs included, descends from its keeper, which adopts orphans; taking a
 * box down ends that tree and nothing else. Processes are known by pid and start time, so a reused
 * pid is never hit. */

#define HG_BOX_DEFAULT "default"

/* Nodes of one kind. */
struct hg_box_group {
    char hardware[64];    /* node names are HARDWARE-1, HARDWARE-2, ... and nodes carry it as a
                          feature; its partition has this name, too */
    long nodes, gpus;     /* gpus: per node */
    long cpus;            /* per node, claimed; 0: 64, or 32 per GPU if that is more */
    char partition[64];   /* "": named like the hardware */
    char gres_type[64];   /* "": like the hardware */
    char constraint[128]; /* a further feature; "": none */
};

struct hg_box_spec {
    const char *name; /* [A-Za-z0-9._-]{1,32} */
    const struct hg_box_group *groups;
    size_t n_groups;
    const char *const *settings; /* "KEY=VALUE" lines for slurm.conf, NULL-terminated; NULL: none */
    bool accounting;             /* MariaDB and slurmdbd, too; takes some seconds more */
    bool any; /* groups are a default only: a box of this name is fine as it is */
};

enum hg_box_state {
    HG_BOX_UP,
    HG_BOX_DEGRADED, /* the keeper lives, some daemon does not */
    HG_BOX_LOST,     /* the keeper is gone: killed, or the machine was started anew */
};

struct hg_box {
    char *name;
    char *dir;
    char *conf; /* value for SLURM_CONF */
    enum hg_box_state state;
    pid_t keeper;
    json_t *record; /* box.json: "nodes", "settings", "daemons": [{"name", "pid", "start"}], ... */
};

struct hg_boxes {
    struct hg_box *items;
    size_t n, cap;
};

/* Read "a100:4x2,t4:1x1,cpu:2x0": hardware:nodes x GPUs per node, optionally "/CPUs". Yours to
 * free(). NULL with err set: USAGE. */
struct hg_box_group *hg_box_nodes_parse(const char *text, size_t *n, struct hg_err *err);

/* Make sure that this box runs and all its nodes are idle; takes 2 to 3 s. A box of that name that
 * is already up with the same nodes and settings is fine (*started false); one that lost a daemon
 * gets it back; one left by a killed hpcgrid or an earlier boot is replaced. INPUT: it is up with
 * other nodes; ENV: a package is missing, /tmp is full or noexec, or a daemon failed, with the end of its log. started may be
 * NULL. */
int hg_box_up(const struct hg_box_spec *spec, struct hg_box *box, bool *started,
              struct hg_err *err);

/* Could a box be started here? 0 with the version of Slurm (2205 for 22.05), or -1 with ENV: what
 * must be installed, or what is wrong with /tmp. */
int hg_box_check(int *version, struct hg_err *err);

/* End all its processes, running jobs too, and remove its folder. NOTFOUND if there is no such box.
 */
int hg_box_down(const char *name, struct hg_err *err);

/* NOTFOUND if there is no such box. Free the result with hg_box_done. */
int hg_box_find(const char *name, struct hg_box *box, struct hg_err *err);

/* All boxes of this user, by name. Free with hg_boxes_done. */
int hg_box_list(struct hg_boxes *boxes, struct hg_err *err);

/* "up", "degraded", "lost" */
const char *hg_box_state_name(enum hg_box_state state);

void hg_box_done(struct hg_box *box);
void hg_boxes_done(struct hg_boxes *boxes);

#endif
