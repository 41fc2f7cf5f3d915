/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/proc.h"
#include "train/config.h"

void wk_cmd_print_errors(struct hg_errs *errs, int rank, int world)
{
    struct hg_buf text = HG_BUF_INIT, out = HG_BUF_INIT;

    hg_errs_sort(errs);
    hg_errs_format(errs, &text);
    for (const char *line = hg_buf_str(&text); *line;) {
        int n = (int)strcspn(line, "\n") + 1;

        if (world > 1 && line[0] != ' ')
            hg_buf_printf(&out, "hpcgrid-worker: rank %d: %.*s", rank, n, line);
        else
            hg_buf_printf(&out, "%s%.*s", line[0] == ' ' ? "" : "hpcgrid-worker: ", n, line);
        line += n;
    }
    fflush(stdout);
    hg_fs_write_all(STDERR_FILENO, hg_buf_str(&out), out.len);
    hg_buf_done(&text);
    hg_buf_done(&out);
}

int wk_cmd_threads(const struct wk_config *c, int world)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;

    if (n >= 1 && n <= 4096)
        return (int)n;
    if (c && c->cpus_per_task)
        return (int)c->cpus_per_task;
    return world == 1 ? (int)hg_proc_cpus() : 1;
}
