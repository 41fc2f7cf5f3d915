/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_COMMON_CODES_H
#define HG_SLURM_COMMON_CODES_H

#include "slurm/common/call.h"

#define HG_AGENT_SLURM_ERROR -1
#define HG_AGENT_PROTOCOL_VERSION 1005
#define HG_AGENT_NO_NODES 2014 /* "Requested node configuration is not available" */

/* The meaning of an error number for a submission (AGAIN, AMBIGUOUS, REFUSED, ENV, NOTFOUND): Slurm's
 * codes by table, the system's by rule, -1 (refused by a site plugin) is REFUSED. `site` is what
 * Slurm printed: a credential that could not even be made was never sent. A number of Slurm's
 * that the table does not know is REFUSED where controllers answer with it (2000-2999), else
 * AMBIGUOUS. */
enum hg_err_code hg_agent_classify(int number, const char *site);

/* True if the table lists this number of Slurm's. */
bool hg_agent_knows(int number);

/* The members of a job that an error number of Slurm's is about, with commas; NULL: they are not known. */
const char *hg_agent_about(int number);

/* Record a failure with this number; text is Slurm's own for it. call->site has what Slurm printed.
 * AMBIGUOUS becomes AGAIN unless this is a submission: asking again is harmless. Returns -1. */
int hg_agent_fail_number(struct hg_agent_call *call, int number, const char *text, const char *fmt,
                         ...) __attribute__((format(printf, 4, 5)));

/* Slurm has answered, and the answer could be read: should that fail later, the versions are not the reason. */
void hg_agent_understood(void);

/* The number of the error that Slurm's own words for it end a line with, in the C locale; 0: not known. */
int hg_agent_number_of(const char *text);

#endif
