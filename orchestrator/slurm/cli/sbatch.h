/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLI_SBATCH_H
#define HG_SLURM_CLI_SBATCH_H

#include "slurm/common/records.h"

/* Inside hpcgrid-sbatch: Slurm through its own commands. */

#define HG_AGENT_PROGRAM "hpcgrid-sbatch"

/* ---- sbatch_run.c ---- */

/* What a command printed, and how it ended. */
struct hg_agent_said {
    struct hg_buf out, err;
    int status; /* wait status */
    bool late;  /* it had to be killed: no answer in time */
};

void hg_agent_said_done(struct hg_agent_said *said);

/* Run one of Slurm's commands that only asks, or may be asked twice, and count it. Its environment is ours
 * without what would change what it prints; times come as seconds since 1970. Returns 0 whatever its exit
 * code, -1 with ENV: it could not be started. Release said either way. */
int hg_agent_run(struct hg_agent_call *call, const char *const *argv, struct hg_agent_said *said);

/* The error of a command that failed: its number by what it printed, which goes to call->site. Returns -1. */
int hg_agent_say(struct hg_agent_call *call, const struct hg_agent_said *said, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Run, and fail unless the exit code is 0. */
int hg_agent_run_well(struct hg_agent_call *call, const char *const *argv,
                      struct hg_agent_said *said, const char *what);

/* Lines of a command's talk without "PROGRAM: error: ", behind what site has. Lines that begin with skip
 * (NULL: none) are left out. */
void hg_agent_say_lines(const char *text, const char *skip, struct hg_buf *site);

/* A delimiter that no output can contain but by its command's own doing; fresh for each call. */
void hg_agent_delimiter(char out[static 20]);

/* The value of KEY=VALUE in one line of `scontrol -o`, up to the next blank; "" if absent or "(null)". */
void hg_agent_member(const char *line, const char *key, struct hg_buf *out);

/* Nodes that have not registered, of total. 0, or -1 (err is not set). */
int hg_agent_count_unregistered(struct hg_agent_call *call, size_t *unregistered, size_t *total);

/* ---- sbatch_submit.c ---- */

int hg_agent_submit(struct hg_agent_call *call);
int hg_agent_probe(struct hg_agent_call *call);

/* ---- sbatch_jobs.c ---- */

int hg_agent_poll(struct hg_agent_call *call);
int hg_agent_history(struct hg_agent_call *call);

#endif
