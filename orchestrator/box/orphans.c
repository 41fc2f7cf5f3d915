/* SPDX-License-Identifier: Apache-2.0 */
#include "box/orphans.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "box/process.h"
#include "box/record.h"

#define STOP_S 20.0
#define GONE_S 5.0 /* for one process after SIGKILL */

static void end_tree(pid_t pid)
{
    struct hg_box_process p = hg_box_process_find(pid);

    hg_box_process_signal_tree(pid, SIGKILL);
    hg_box_process_signal(p, SIGKILL);
    hg_box_process_wait(p, GONE_S);
}

/* Each step daemon listens on a socket NODE_JOB.STEP in its node's spool folder. */
static void end_steps_of(const char *spool)
{
    DIR *folder = opendir(spool);
    const struct dirent *e;

    while (folder && (e = readdir(folder))) {
        char *path = hg_fs_join(spool, e->d_name);
        struct stat st;
        pid_t pid =
            lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) ? hg_box_process_listener(path) : 0;

        if (pid > 1)
            end_tree(pid);
        free(path);
    }
    if (folder)
        closedir(folder);
}

static void end_steps(const char *dir)
{
    char *spool = hg_fs_join(dir, "spool");
    DIR *nodes = opendir(spool);
    const struct dirent *e;

    while (nodes && (e = readdir(nodes)))
        if (e->d_name[0] != '.') {
            char *path = hg_fs_join(spool, e->d_name);

            if (hg_fs_is_dir(path))
                end_steps_of(path);
            free(path);
        }
    if (nodes)
        closedir(nodes);
    free(spool);
}

void hg_box_orphans_stop(const char *dir, const json_t *record)
{
    json_t *list = json_object_get(record, "daemons"), *d;
    double end = hg_clock_mono_s() + STOP_S;
    size_t i;

    json_array_foreach(list, i, d) {
        struct hg_box_process p = hg_box_record_process(d);

        hg_box_process_signal(p, SIGKILL);
        hg_box_process_wait(p, GONE_S);
    }
    while (hg_box_process_signal_daemons(dir, SIGKILL) && hg_clock_mono_s() < end)
        hg_clock_sleep_s(0.01);
    end_steps(dir);
}
