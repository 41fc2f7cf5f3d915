/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "base/text.h"
#include "contract/keys.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "cmd/cells.h"
#include "cmd/forecast.h"
#include "cmd/options.h"
#include "plan/batch.h"
#include "plan/fit.h"
#include "plan/hazards.h"
#include "plan/plan.h"
#include "plan/preflight.h"

static const char *site;
static bool data_check = true;

static const struct hg_opt opts[] = {
    HG_OPTION_SITE(&site),
    HG_OPTION_DATA_CHECK(&data_check),
    { 0 },
};

static void print_verdict(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    uint64_t own = count->cells - count->added;

    printf("%s: %llu cell%s", m->name, (unsigned long long)own, hg_text_s(own));
    if (count->added)
        printf(" and %llu added baseline%s", (unsigned long long)count->added,
               hg_text_s(count->added));
    if (count->excluded)
        printf("; %llu excluded", (unsigned long long)count->excluded);
    if (count->skipped)
        printf("; %llu cannot run", (unsigned long long)count->skipped);
    putchar('\n');
}

/* ---- Cell by cell ---- */

struct fits {
    const struct hg_matrix *m;
    struct hg_fit *fit;
    struct hg_hazards *hazards;
    size_t fitting, visited;
    struct hg_skips skips;
};

static int look_at_cell(const struct hg_cell *cell, void *context)
{
    struct fits *f = context;
    struct hg_shape shape;
    const char *why;

    f->visited++;
    if (cell->fate != HG_CELL_RUNS)
        return 0;
    hg_shape_make(f->m->site, cell->members, &shape);
    hg_hazards_see(f->hazards, cell, &shape);
    hg_shape_done(&shape);
    why = hg_fit_why(f->fit, cell->members);
    if (!why[0])
        f->fitting++;
    else
        hg_skips_add(&f->skips, cell->id, why, f->visited - 1);
    return 0;
}

static int print_skips(const struct hg_matrix *m, struct hg_skips *skips, struct hg_errs *errs)
{
    struct hg_names *names = skips->n ? hg_names_of_matrix(m, HG_CELLS_SKIPPED, errs) : NULL;

    if (skips->n && !names)
        return -1;
    hg_skips_name(skips, names);
    hg_cells_print_skips(skips, false);
    hg_names_free(names);
    return 0;
}

/* Only trainings, and sbatch options of a cell, have what a look at each cell finds. */
static bool needs_look(const struct hg_matrix *m)
{
    return m->grid->worker || m->grid->columns.items[HG_COLUMN_SBATCH].given;
}

static int look_at_cells(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct fits f = { .m = m, .fit = hg_fit_make(m, NULL, errs), .hazards = hg_hazards_create(m) };
    struct hg_cells_count hazards = { 0 };
    int rc =
        f.fit ? hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, look_at_cell, &f, NULL, errs)
              : -1;

    if (rc == 0)
        rc = print_skips(m, &f.skips, errs);
    if (rc == 0 && f.skips.n && !f.fitting)
        rc = hg_err_set(hg_errs_next(errs), HG_E_INPUT,
                        "nothing is left to run: every cell is skipped");
    hg_hazards_list(f.hazards, &hazards);
    hg_cells_print_warnings(&hazards);
    hg_cells_count_done(&hazards);
    hg_hazards_free(f.hazards);
    hg_skips_done(&f.skips);
    hg_fit_free(f.fit);
    return rc;
}

/* What limits.gpu_hours bounds, and what "auto" means, is known when there are batches. */
static int look_at_cost(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct hg_plan *plan = hg_plan_make(m, NULL, NULL, errs);
    struct hg_buf text = HG_BUF_INIT;

    hg_auto_limits_append(m, &text);
    if (plan && text.len)
        puts(hg_buf_str(&text));
    hg_buf_done(&text);
    hg_plan_free(plan);
    return plan ? 0 : -1;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_matrix *m = hg_matrix_load(argv[0], site, errs);
    struct hg_cells_count count;
    int rc = -1;

    (void)argc;
    if (!m)
        return -1;
    if (hg_cells_walk(m, HG_CELLS_SKIPPED, NULL, NULL, &count, errs) == 0) {
        hg_cells_print_warnings(&count);
        print_verdict(m, &count);
        rc = needs_look(m) ? look_at_cells(m, errs) : 0;
        hg_auto_limits_set(m, NULL);
        if (rc == 0 && (m->gpu_hours || m->auto_times.limit_s))
            rc = look_at_cost(m, errs);
        if (data_check && hg_preflight_data(m, NULL, errs) < 0)
            rc = -1;
    }
    hg_cells_count_done(&count);
    hg_matrix_free(m);
    return rc;
}

const struct hg_cmd hg_cmd_check = {
    .name = "check",
    .args = "MATRIX",
    .summary = "Check a matrix for mistakes and count its cells.",
    .details = "Nothing is submitted and Slurm is not contacted. MATRIX is a file, or - for\n"
               "standard input. Format: matrices/README.md; schema for editors: hpcgrid schema.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
