/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_BOX_H
#define HG_BOX_BOX_H

#include "box/boxes.h"

/* A private Slurm on this machine: munged, slurmctld and one slurmd per virtual node, started as the calling user (root or not), all
 * of it in /tmp/hpcgrid-<uid>/NAME. box/README.md says what a box can and cannot do.
 *
 * Every process of a box, jobs included, descends from its keeper, which adopts orphans; taking a box down ends that tree and
 * nothing else. Processes are known by pid and start time, so another process with a reused pid is never hit. */

/* Make sure that this box runs and all its nodes are idle; takes 2 to 3 s. A box of that name that is already up with the same nodes
 * and settings is fine (*started false); one that lost a daemon gets it back; one left by a killed hpcgrid or an earlier boot is
 * replaced. INPUT: it is up with other nodes; ENV: a package is missing, /tmp is full or noexec, or a daemon failed, with the end of
 * its log. started may be NULL. */
int hg_box_up(const struct hg_box_spec *spec, struct hg_box *box, bool *started,
              struct hg_err *err);

/* End all its processes, running jobs too, and remove its folder. NOTFOUND if there is no such box. */
int hg_box_down(const char *name, struct hg_err *err);

#endif
