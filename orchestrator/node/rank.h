/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_RANK_H
#define HG_NODE_RANK_H

#include "base/err.h"

/* One rank of a cell: what `hpcgrid exec --rank --attempt DIR -- ARGV` does under the launcher.
 *
 * Reads "ranks" of DIR/claim.json, sets the environment (its members, and RANK, LOCAL_RANK and WORLD_SIZE as the
 * launcher numbers the ranks), starts ARGV without a shell in the working directory, and writes
 * DIR/rank.<r>.json when it has ended:
 *
 *   rank, local_rank, host, cpu, cores, device, device_kind ("cpu" or "gpu"), exit_code or signal,
 *   oom, real_s, user_s, sys_s, max_rss_bytes, start_s and end_s (since 1970), error
 *
 * ARGV dies with this process, and this process with its parent. Returns the exit code to pass on:
 * the program's, 128 + n for a signal, 127 if it is not there, 126 if it cannot be executed, 4 when
 * its environment cannot be set, and with err set when the attempt's files cannot be read or written. */
int hg_rank_run(const char *dir, char *const *argv, struct hg_err *err);

#endif
