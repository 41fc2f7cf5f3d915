/* SPDX-License-Identifier: Apache-2.0 */
#include "box/tools.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/proc.h"

#define SPACE_MIB 64 /* logs, and what MPI shares between the ranks of a node */

static const struct {
    const char *program, *package;
    size_t slot;
    bool accounting; /* needed for that only */
} needed[] = {
    { "munged", "munge", offsetof(struct hg_box_tools, munged), false },
    { "slurmctld", "slurmctld", offsetof(struct hg_box_tools, slurmctld), false },
    { "slurmd", "slurmd", offsetof(struct hg_box_tools, slurmd), false },
    { "sinfo", "slurm-client", offsetof(struct hg_box_tools, sinfo), false },
    { "mariadbd", "mariadb-server-core", offsetof(struct hg_box_tools, mariadbd), true },
    { "mariadb-install-db", "mariadb-server-core", offsetof(struct hg_box_tools, mariadb_install),
      true },
    { "my_print_defaults", "mariadb-client-core", offsetof(struct hg_box_tools, my_print_defaults),
      true }, /* mariadb-install-db calls it */
    { "slurmdbd", "slurmdbd", offsetof(struct hg_box_tools, slurmdbd), true },
    { "sacctmgr", "slurm-client", offsetof(struct hg_box_tools, sacctmgr), true },
};
#define N_NEEDED (sizeof needed / sizeof *needed)

/* Ordinary users have no sbin in their PATH. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    char *all = hg_str_printf("%s:/usr/sbin:/sbin:/usr/local/sbin:/opt/slurm/sbin",
                              path ? path : "/usr/bin");
    char *found = hg_fs_find_program(name, all);

    free(all);
    return found;
}

/* "slurm-wlm 22.05.8" -> 2205 */
static int ask_version(const char *slurmctld, int *version, struct hg_err *err)
{
    const char *const argv[] = { slurmctld, "-V", NULL };
    struct hg_buf out = HG_BUF_INIT;
    int status = 0, major, minor, rc = -1;
    const char *number;

    if (hg_proc_capture(argv, 10, &out, NULL, &status, err) < 0)
        goto out;
    number = strpbrk(hg_buf_str(&out), "0123456789");
    if (!number || sscanf(number, "%d.%d", &major, &minor) != 2) {
        hg_err_set(err, HG_E_ENV, "%s -V prints \"%.80s\", which is not a version", slurmctld,
                   hg_buf_str(&out));
        goto out;
    }
    *version = major * 100 + minor;
    rc = 0;
out:
    hg_buf_done(&out);
    return rc;
}

static char **slot(struct hg_box_tools *tools, size_t i)
{
    return (char **)((char *)tools + needed[i].slot);
}

int hg_box_tools_find(struct hg_box_tools *tools, bool accounting, struct hg_err *err)
{
    struct hg_buf missing = HG_BUF_INIT, packages = HG_BUF_INIT;
    int rc = -1;

    *tools = (struct hg_box_tools){ 0 };
    for (size_t i = 0; i < N_NEEDED; i++) {
        if ((needed[i].accounting && !accounting) ||
            (*slot(tools, i) = find_program(needed[i].program)))
            continue;
        hg_buf_printf(&missing, "%s%s", missing.len ? ", " : "", needed[i].program);
        if (!strstr(hg_buf_str(&packages), needed[i].package))
            hg_buf_printf(&packages, " %s", needed[i].package);
    }
    if (missing.len) {
        hg_err_set(err, HG_E_ENV, "a box needs %s: not installed", hg_buf_str(&missing));
        hg_err_hint(err, "sudo apt-get install --no-install-recommends%s slurm-wlm-basic-plugins",
                    hg_buf_str(&packages));
    } else {
        rc = ask_version(tools->slurmctld, &tools->version, err);
    }
    if (rc < 0)
        hg_box_tools_done(tools);
    hg_buf_done(&missing);
    hg_buf_done(&packages);
    return rc;
}

int hg_box_tools_check_place(struct hg_err *err)
{
    struct statvfs fs;
    unsigned long long left_mib;

    if (statvfs("/tmp", &fs) < 0)
        return hg_err_sys(err, "cannot look at /tmp");
    if (fs.f_flag & ST_NOEXEC) {
        hg_err_set(err, HG_E_ENV, "/tmp is mounted noexec: Slurm starts a box's jobs from there");
        return hg_err_hint(err, "as root: mount -o remount,exec /tmp");
    }
    left_mib = (unsigned long long)fs.f_bavail * fs.f_frsize >> 20;
    if (left_mib < SPACE_MIB) {
        hg_err_set(err, HG_E_ENV, "/tmp has %llu MiB left: a box needs %d", left_mib, SPACE_MIB);
        return hg_err_hint(err, "remove what nobody needs there, or mount a larger one");
    }
    return 0;
}

int hg_box_tools_check(int *version, struct hg_err *err)
{
    struct hg_box_tools tools;

    if (hg_box_tools_check_place(err) < 0 || hg_box_tools_find(&tools, false, err) < 0)
        return -1;
    *version = tools.version;
    hg_box_tools_done(&tools);
    return 0;
}

void hg_box_tools_done(struct hg_box_tools *tools)
{
    for (size_t i = 0; i < N_NEEDED; i++)
        free(*slot(tools, i));
    *tools = (struct hg_box_tools){ 0 };
}
