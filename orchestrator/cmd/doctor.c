/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <sys/utsname.h>

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct utsname u;

    (void)argc;
    (void)argv;
    (void)errs;
    uname(&u);
    printf("machine   %s %s %s\n", u.sysname, u.release, u.machine);
    printf("hpcgrid   %s\n", HPCGRID_VERSION);
    return 0;
}

const struct hg_cmd hg_cmd_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "Say what hpcgrid finds here, and what will not work without the rest.",
    .run = run,
};
