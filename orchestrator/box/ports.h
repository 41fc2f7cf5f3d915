/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_PORTS_H
#define HG_BOX_PORTS_H

#include <stddef.h>

#include "base/err.h"

struct hg_box_ports {
    int ctld;       /* slurmctld's */
    int first_node; /* of the first slurmd; the others follow */
    int dbd, database;
};

/* Find 3 + n free ports in a row. */
int hg_box_ports_choose(size_t n, struct hg_box_ports *ports, struct hg_err *err);

#endif
