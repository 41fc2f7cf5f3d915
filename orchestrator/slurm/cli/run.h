/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLI_RUN_H
#define HG_SLURM_CLI_RUN_H

#include "slurm/common/call.h"

/* What a command printed, and how it ended. */
struct hg_agent_said {
    struct hg_buf out, err;
    int status; /* wait status */
    bool late;  /* it had to be killed: no answer in time */
};

void hg_agent_said_done(struct hg_agent_said *said);

/* Run one of Slurm's commands that is safe to repeat, and count it. It gets our environment without the
 * variables that change its output; times come as seconds since 1970. Returns 0 whatever its exit
 * code, -1 with ENV: it could not be started. Release said either way. */
int hg_agent_run(struct hg_agent_call *call, const char *const *argv, struct hg_agent_said *said);

/* The error of a command that failed: its number comes from what it printed, which goes to call->site. Returns -1. */
int hg_agent_say(struct hg_agent_call *call, const struct hg_agent_said *said, const char *what);

/* Run, and fail unless the exit code is 0. */
int hg_agent_run_well(struct hg_agent_call *call, const char *const *argv,
                      struct hg_agent_said *said, const char *what);

#endif
