/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_TOOLS_H
#define HG_BOX_TOOLS_H

#include <stdbool.h>

#include "base/err.h"

/* Slurm's programs, and whether this machine lets them run. */
struct hg_box_tools {
    char *munged, *slurmctld, *slurmd, *sinfo;
    char *mariadbd, *mariadb_install, *my_print_defaults, *slurmdbd,
        *sacctmgr; /* NULL without accounting */
    int version;   /* of slurmctld: 2205 for 22.05 */
};

/* Find the programs a box needs in PATH and the sbin folders. ENV with the apt line that installs
 * what is missing. */
int hg_box_tools_find(struct hg_box_tools *tools, bool accounting, struct hg_err *err);
void hg_box_tools_done(struct hg_box_tools *tools);

/* ENV if jobs would fail because of /tmp, and print no reason: it is full, or no programs may run from it. */
int hg_box_tools_check_place(struct hg_err *err);

/* Could a box be started here? 0 with the version of Slurm (2205 for 22.05), or -1 with ENV: what must be installed, or what is
 * wrong with /tmp. */
int hg_box_tools_check(int *version, struct hg_err *err);

#endif
