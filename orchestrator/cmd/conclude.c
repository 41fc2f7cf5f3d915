/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/conclude.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/text.h"
#include "cmd/many.h"
#include "cmd/print.h"
#include "cmd/progress.h"
#include "cmd/results.h"
#include "cmd/signals.h"
#include "render/save.h"

/* Of very many results only the lines are saved, and a summary is printed. 0: every cell has a good result, 1: not, 2: it cannot be
 * done that way, or -1. */
static int report_many(const struct hg_session *s, struct hg_buf *text, struct hg_err *err)
{
    char *tables = hg_rundir_path(&s->rd, "tables"),
         *path = hg_rundir_path(&s->rd, "tables/results.csv");
    struct hg_many *m = hg_cmd_many_run(&s->rd, hg_drive_state(s->drive), NULL, err);
    int rc = m ? 0 : err->code ? -1 : 2;

    if (rc == 0 && (hg_report_forget(s->rd.path, err) < 0 || hg_fs_mkdirs(tables, 0755, err) < 0 ||
                    hg_cmd_many_write(m, path, err) < 0))
        rc = -1;
    if (rc == 0) {
        hg_many_summarize(m, s->rd.path, text);
        rc = !hg_many_is_complete(m);
    }
    hg_many_free(m);
    free(tables);
    free(path);
    return rc;
}

static int report_all(const struct hg_session *s, struct hg_buf *text, struct hg_errs *errs)
{
    struct hg_results set = HG_RESULTS_INIT;
    bool complete = false;
    int rc = -1;

    if (hg_cmd_run_results(&s->rd, hg_drive_state(s->drive), &set, errs) == 0)
        rc = hg_report_run(&set, s->rd.path, hg_print_width(STDOUT_FILENO), text, &complete, errs);
    hg_results_done(&set);
    return rc < 0 ? -1 : !complete;
}

/* The tables of what there is, on stdout and in the run's folder. 0: every cell has a good result, 1: not,
 * or -1. */
static int print_report(struct hg_session *s, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = s->plan->cells > HG_MANY_MIN ? report_many(s, &text, &err) : 2;

    if (rc == 2)
        rc = report_all(s, &text, errs);
    if (rc >= 0)
        fwrite(hg_buf_str(&text), 1, text.len, stdout);
    hg_errs_add(errs, &err);
    hg_buf_done(&text);
    return rc;
}

int hg_conclude_add_refusals(const struct hg_session *s, struct hg_errs *errs)
{
    size_t before = errs->n;

    for (size_t b = 0; b < s->plan->n; b++) {
        struct hg_err err = HG_ERR_INIT;

        if (!*hg_drive_refusal(s->drive, (int)b + 1))
            continue;
        hg_err_set(&err, HG_E_REFUSED, "batch %zu (%zu cell%s) was refused: %s", b + 1,
                   s->plan->items[b].n, hg_text_s(s->plan->items[b].n),
                   hg_drive_refusal(s->drive, (int)b + 1));
        hg_errs_add(errs, &err);
    }
    return errs->n > before ? -1 : 0;
}

static void tell_retry(const struct hg_session *s)
{
    const struct hg_run_state *state = hg_drive_state(s->drive);
    size_t bad = 0;

    for (int c = 0; c < HG_CELL_STATES; c++)
        bad += HG_SESSION_BAD & 1u << c ? state->counts[c] : 0;
    if (bad && !*s->scheduler.box)
        hg_info("run %s again with: hpcgrid retry %s", bad == 1 ? "it" : "them", s->rd.path);
}

int hg_conclude_run(struct hg_session *s, struct hg_errs *errs)
{
    int rc = hg_progress_drive(s, errs);

    if (rc < 0)
        return -1;
    if (rc == 1)
        return hg_signals_code();
    rc = print_report(s, errs);
    if (rc == 1)
        tell_retry(s);
    if (rc >= 0 && hg_conclude_add_refusals(s, errs) < 0)
        return -1;
    return rc;
}
