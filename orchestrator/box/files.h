/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_FILES_H
#define HG_BOX_FILES_H

#include "box/nodes.h"

/* Make the files of a box below dir: folders, munge's key, slurm.conf, gres.conf, and the devices that stand for GPUs. version:
 * of Slurm, 2205 for 22.05. */
int hg_box_files_write(const struct hg_box_spec *spec, const char *dir,
                       const struct hg_box_ports *ports, int version, struct hg_err *err);

#endif
