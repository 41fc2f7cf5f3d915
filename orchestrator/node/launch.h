/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_LAUNCH_H
#define HG_NODE_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "node/job.h"
#include "plan/template.h"

/* What starts the ranks of a cell. */
struct hg_launch {
    struct hg_words
        words;   /* the launcher's argv, with `hpcgrid exec --rank` and the workload's command */
    bool direct; /* without a launcher: one process, on this node */
};

/* Make it for an attempt's folder. Returns "ranks" of the claim (node/rank.h): environment and working directory, a new reference; or
 * NULL with err set. hg_launch_done either way. */
json_t *hg_launch_make(const struct hg_job *job, const char *dir, struct hg_launch *l,
                       struct hg_err *err);
void hg_launch_done(struct hg_launch *l);

/* Write the files that the workload reads into the attempt's folder: cell.json, and the workload's own. */
int hg_launch_write_files(const struct hg_job *job, const char *dir, struct hg_err *err);

#endif
