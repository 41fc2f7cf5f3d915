/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "train/config.h"

const char *wk_cmd_cell(const char *cell, const char *config)
{
    return config ? config : cell ? cell : getenv("HPCGRID_CELL");
}

int wk_cmd_misused(const struct wk_cmd *cmd, const char *what, struct hg_errs *errs)
{
    struct hg_err *err = hg_errs_next(errs);

    hg_err_set(err, HG_E_USAGE, "%s: %s", cmd->name, what);
    return hg_err_hint(err, "usage: hpcgrid-worker %s%s%s", cmd->name, cmd->usage ? " " : "",
                       cmd->usage ? cmd->usage : "");
}

int wk_cmd_print(struct hg_buf *text, struct hg_err *err)
{
    int rc = 0;

    if (fwrite(hg_buf_str(text), 1, text->len, stdout) != text->len || fflush(stdout) != 0)
        rc = hg_err_sys(err, "cannot write the output");
    hg_buf_done(text);
    return rc;
}

int wk_cmd_print_json(json_t *value, unsigned flags, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(value, flags, &text);
    hg_buf_puts(&text, "\n");
    json_decref(value);
    return wk_cmd_print(&text, err);
}

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
