/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RUNDIR_IDENTITY_H
#define HG_RUNDIR_IDENTITY_H

#include "base/err.h"
#include "rundir/runstate.h"

/* A run is bound to the folder that it was planned in. Its batch scripts name it, and so does plan.json ("folder"; a plan of
 * an older version does not): jobs of a copy, or of a run that was moved, work there and not here. Links and bind
 * mounts lead to the same folder. */
enum hg_home {
    HG_HOME_HERE,
    HG_HOME_COPY, /* the run is also in that other folder */
    HG_HOME_GONE, /* that other folder is not there, or is another one now */
};

struct hg_identity {
    enum hg_home home;
    char file
        [40]; /* of the run, that names the other folder: "plan.json" or "batches/1.sh"; "" where all is well */
    struct hg_err why; /* text and next step; unset where all is well */
};

/* Where is the run at home? Files that cannot be read are ignored: others report them. */
void hg_identity_find(const char *run_dir, struct hg_identity *id);

/* For commands that write to a run or send requests for its jobs to Slurm. 0, or -1 with ENV: it is at home in another folder. */
int hg_identity_check(const char *run_dir, struct hg_err *err);

/* For commands that only read: one line on stderr. Returns whether it is at home here. */
bool hg_identity_warn(const char *run_dir);

/* Is this the cluster that the run's jobs were submitted to? 0: yes, or one of the two is not known, or nothing was
 * submitted. -1 with ENV: no. */
int hg_identity_check_cluster(const char *run_dir, const struct hg_run_state *state,
                              const char *cluster, struct hg_err *err);

/* The folder that the cells of a batch's script belong to, as written after --run; NULL if there is none, or no script. Yours. */
char *hg_identity_script_folder(const char *run_dir, int batch);

#endif
