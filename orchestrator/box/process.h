/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_PROCESS_H
#define HG_BOX_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A process by pid and start time, so that another process with a reused pid is never taken for it. */
struct hg_box_process {
    pid_t pid;
    unsigned long long start; /* clock ticks since boot; 0: there is no such process */
};

/* The process that has this pid now. Zombies do not count. */
struct hg_box_process hg_box_process_find(pid_t pid);

/* Does this very process still run? */
bool hg_box_process_alive(struct hg_box_process p);

/* Send a signal to this very process; nothing happens if it is gone. */
void hg_box_process_signal(struct hg_box_process p, int sig);

/* Wait until it is gone. False: it was not within the limit. */
bool hg_box_process_wait(struct hg_box_process p, double limit_s);

/* Signal every descendant of root, not root itself. Returns how many there are. */
size_t hg_box_process_signal_tree(pid_t root, int sig);

/* Signal the caller's munged, slurmctld, slurmd, slurmdbd and mariadbd that work in the folder of a box, as their arguments or
 * their environment say. Returns how many there are. */
size_t hg_box_process_signal_daemons(const char *dir, int sig);

/* The process that listens on a Unix socket: its pid, or 0. Step daemons are found by it. */
pid_t hg_box_process_listener(const char *path);

/* The kernel's boot id, "" if it cannot be read. */
void hg_box_process_boot_id(char out[static 40]);

#endif
