/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_PICKS_H
#define HG_CMD_PICKS_H

#include "base/ranges.h"
#include "matrix/names.h"
#include "rundir/events.h"
#include "slurm/client/executor.h"

/* The planned cells of a run that a selector picks. */
struct hg_picks {
    bool all;
    struct {
        bool *picked;    /* by line */
        char **ids;      /* by line; NULL unless hg_picks_name read them */
        size_t *numbers; /* by line: in names */
        size_t n;
    } * batches; /* by number - 1 */
    size_t n;
    struct hg_names *names; /* of all cells; NULL unless hg_picks_name read them */
};

/* Read the cells files of the run. text NULL: all cells, and nothing is read. */
int hg_picks_make(struct hg_picks *picks, const char *run_dir, const struct hg_run_state *state,
                  const char *text, struct hg_err *err);
bool hg_picks_has(const struct hg_picks *picks, int batch, uint32_t line);
bool hg_picks_any(const struct hg_picks *picks);           /* are any picked? */
bool hg_picks_fits(void *picks, int batch, uint32_t line); /* the same, as a callback */

/* Also keep ids and names, of all cells. */
int hg_picks_name(struct hg_picks *picks, const char *run_dir, const struct hg_run_state *state,
                  const char *text, struct hg_err *err);
/* Tasks of a job whose cells are picked. Add each to hit. INPUT: the scheduler's list of tasks cannot be read. */
int hg_picks_tasks(const struct hg_picks *picks, const struct hg_run_state *state,
                   const struct hg_submission *sub, const struct hg_executor_job *job,
                   struct hg_ranges *hit, struct hg_err *err);
const char *hg_picks_id(const struct hg_picks *picks, int batch, uint32_t line); /* "" if unknown */
void hg_picks_append_name(const struct hg_picks *picks, int batch, uint32_t line,
                          struct hg_buf *out);

void hg_picks_done(struct hg_picks *picks);

#endif
