/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_DAEMONS_H
#define HG_BOX_DAEMONS_H

#include <sys/types.h>

#include "base/buf.h"
#include "box/nodes.h"
#include "box/tools.h"

/* What a box is made of. */
struct hg_box_setup {
    const struct hg_box_spec *spec;
    const struct hg_box_tools *tools;
    const char *dir;
    struct hg_box_ports ports;
};

enum hg_box_daemon_kind {
    HG_BOX_MUNGED,
    HG_BOX_DATABASE,
    HG_BOX_SLURMDBD,
    HG_BOX_SLURMCTLD,
    HG_BOX_SLURMD
};

struct hg_box_daemon {
    enum hg_box_daemon_kind kind;
    char name[112]; /* "munged", "slurmctld", "slurmd-a100-1" */
    pid_t pid;      /* 0: not running */
};

/* In the order in which they are started. */
struct hg_box_daemons {
    struct hg_box_daemon *items;
    size_t n, cap;
};

/* List the daemons that a box needs; none runs yet. */
void hg_box_daemons_list(const struct hg_box_spec *spec, struct hg_box_daemons *list);

/* Start one and wait until it answers (a slurmd: only start it). ENV with the end of its log. */
int hg_box_daemons_start(const struct hg_box_setup *setup, struct hg_box_daemon *d,
                         struct hg_err *err);

/* Append the last lines of DIR/log/NAME.log, as long as there are any. */
void hg_box_daemons_log(const char *dir, const char *name, struct hg_buf *out);

#endif
