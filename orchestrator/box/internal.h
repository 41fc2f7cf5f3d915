/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BOX_INTERNAL_H
#define HG_BOX_INTERNAL_H

#include "base/buf.h"
#include "box/box.h"

/* Shared by the files of box/; nobody else includes this. */

#define HG_BOX_RECORD "box.json"
#define HG_BOX_SCHEMA "hpcgrid-box/1"
#define HG_BOX_NODES_MAX 256

/* ---- process.c: processes by pid and start time ---- */

/* Clock ticks since boot at which a process started; 0 if there is no such process (zombies count
 * as none). */
unsigned long long hg_box_process_start(pid_t pid);

/* True if this very process still runs. */
bool hg_box_process_alive(pid_t pid, unsigned long long start);

/* Send a signal to this very process; nothing happens if it is gone or its pid is another's now. */
void hg_box_process_signal(pid_t pid, unsigned long long start, int sig);

/* Signal every descendant of root, not root itself. Returns how many there are. */
size_t hg_box_tree_signal(pid_t root, int sig);

/* Signal the caller's munged, slurmctld, slurmd, slurmdbd and mariadbd that were told to work in the folder dir of a box, as
 * their arguments or their environment say. Returns how many there are. */
size_t hg_box_daemons_signal(const char *dir, int sig);

/* Who listens on a Unix socket: the pid, or 0. Step daemons are found by it. */
pid_t hg_box_socket_owner(const char *path);

/* The kernel's boot id, "" if it cannot be read. */
void hg_box_boot_id(char out[static 40]);

/* ---- tools.c: Slurm's programs, and whether this machine lets them run ---- */

/* ENV if jobs would fail for /tmp, without a word of why: full, or no place for programs. */
int hg_box_place_check(struct hg_err *err);

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

/* ---- config.c: the files of a box ---- */

struct hg_box_ports {
    int ctld;       /* slurmctld's */
    int first_node; /* of the first slurmd; the others follow */
    int dbd, database;
};

/* Number of nodes of all groups. */
size_t hg_box_count_nodes(const struct hg_box_spec *spec);

/* Name of the i-th node (from 0) over all groups. */
void hg_box_node_name(const struct hg_box_spec *spec, size_t i, char out[static 96]);

/* Find 3 + n free ports in a row. */
int hg_box_ports_choose(size_t n, struct hg_box_ports *ports, struct hg_err *err);

/* Make the folders, munge's key, slurm.conf, gres.conf and the devices below dir. */
int hg_box_config_write(const struct hg_box_spec *spec, const char *dir,
                        const struct hg_box_ports *ports, int version, struct hg_err *err);

/* ---- keeper.c: the process that owns a box ---- */

struct hg_box_keeper {
    const struct hg_box_spec *spec;
    const struct hg_box_tools *tools;
    const char *dir;
    json_t *record; /* is completed with the daemons and saved */
};

/* Fork the keeper, which starts the daemons and stays behind. Returns when all run (not yet: nodes
 * idle). ENV with the end of the log of the daemon that failed; nothing of it is left then. */
int hg_box_keeper_start(const struct hg_box_keeper *k, const struct hg_box_ports *ports,
                        struct hg_err *err);

/* Ask a living keeper to start dead daemons again. */
void hg_box_keeper_heal(pid_t keeper, unsigned long long start);

/* Ask a keeper to end everything, wait until it has; force it after a while. */
void hg_box_keeper_stop(pid_t keeper, unsigned long long start);

/* End what a dead keeper left: daemons of the record (NULL: there is none, or it is of an earlier boot), those that it was killed
 * before it could record, step daemons and their descendants. */
void hg_box_orphans_stop(const char *dir, const json_t *record);

/* Append the last lines of a log to out, indented. */
void hg_box_log_tail(const char *path, struct hg_buf *out);

#endif
