/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "base/text.h"
#include "contract/keys.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "cmd/auto_limits.h"
#include "cmd/cells.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "plan/batch.h"
#include "plan/fit.h"
#include "plan/hazards.h"
#include "plan/plan.h"
#include "plan/preflight.h"

static const char *site;
static bool data_check = true, as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_SITE(&site),
    HG_OPTION_DATA_CHECK(&data_check),
    HG_OPTION_JSON(&as_json),
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

static void say_warnings(const struct hg_cells_count *count, json_t *answer)
{
    for (size_t i = 0; as_json && i < count->n_warnings; i++)
        json_array_append_new(json_object_get(answer, "warnings"),
                              hg_json_text(count->warnings[i]));
    if (!as_json)
        hg_cells_print_warnings(count);
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

static json_t *skips_json(const struct hg_skips *skips)
{
    json_t *list = json_array();

    for (size_t i = 0; i < skips->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "id", skips->items[i].id, "name",
                                              hg_json_text(skips->items[i].name), "reason",
                                              hg_json_text(skips->items[i].why)));
    return list;
}

static int print_skips(const struct hg_matrix *m, struct hg_skips *skips, json_t *answer,
                       struct hg_errs *errs)
{
    struct hg_names *names = skips->n ? hg_names_of_matrix(m, HG_CELLS_SKIPPED, errs) : NULL;

    if (skips->n && !names)
        return -1;
    hg_skips_name(skips, names);
    if (as_json)
        json_object_set_new(answer, "skips", skips_json(skips));
    else
        hg_cells_print_skips(skips, false);
    hg_names_free(names);
    return 0;
}

/* Only trainings, and sbatch options of a cell, have what a look at each cell finds. */
static bool needs_look(const struct hg_matrix *m)
{
    return m->grid->worker || m->grid->columns.items[HG_COLUMN_SBATCH].given;
}

static int look_at_cells(const struct hg_matrix *m, json_t *answer, struct hg_errs *errs)
{
    struct fits f = { .m = m, .fit = hg_fit_make(m, NULL, errs), .hazards = hg_hazards_create(m) };
    struct hg_cells_count hazards = { 0 };
    int rc =
        f.fit ? hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, look_at_cell, &f, NULL, errs)
              : -1;

    if (rc == 0)
        rc = print_skips(m, &f.skips, answer, errs);
    if (rc == 0 && f.skips.n && !f.fitting)
        rc = hg_err_set(hg_errs_next(errs), HG_E_INPUT,
                        "nothing is left to run: every cell is skipped");
    hg_hazards_list(f.hazards, &hazards);
    say_warnings(&hazards, answer);
    hg_cells_count_done(&hazards);
    hg_hazards_free(f.hazards);
    hg_skips_done(&f.skips);
    hg_fit_free(f.fit);
    return rc;
}

/* What limits.gpu_hours bounds, what "auto" means, and what cells that share a job request, is known when there are batches. */
static int look_at_plan(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct hg_plan *plan = hg_plan_make(m, NULL, NULL, errs);
    struct hg_buf text = HG_BUF_INIT;

    hg_auto_limits_append(m, &text);
    if (plan && text.len && !as_json)
        puts(hg_buf_str(&text));
    hg_buf_done(&text);
    hg_plan_free(plan);
    return plan ? 0 : -1;
}

/* *answer: for --json; NULL if the cells cannot be counted. */
static int check_cells(struct hg_matrix *m, json_t **answer, struct hg_errs *errs)
{
    struct hg_cells_count count;
    int rc = -1;

    *answer = NULL;
    if (hg_cells_walk(m, HG_CELLS_SKIPPED, NULL, NULL, &count, errs) == 0) {
        *answer = hg_cells_count_json(m, &count);
        json_object_set_new(*answer, "skips", json_array());
        json_object_set_new(*answer, "name", json_string(m->name));
        json_object_set_new(*answer, "site", json_string(m->site->name));
        if (!as_json) {
            hg_cells_print_warnings(&count);
            print_verdict(m, &count);
        }
        rc = needs_look(m) ? look_at_cells(m, *answer, errs) : 0;
        hg_auto_limits_set(m, NULL);
        if (rc == 0 && (m->gpu_hours || m->together || m->auto_times.bound_s))
            rc = look_at_plan(m, errs);
        if (data_check && hg_preflight_data(m, NULL, errs) < 0)
            rc = -1;
    }
    hg_cells_count_done(&count);
    return rc;
}

/* Of several sites without a choice: one after another. */
static int check_sites(struct hg_matrix *m, json_t **answer, struct hg_errs *errs)
{
    int rc = 0;

    *answer = json_pack("{s:s, s:[]}", "name", m->name, "sites");
    for (size_t i = 0; i < m->several.n && rc == 0; i++) {
        json_t *part = NULL;

        if (hg_matrix_choose(m, &m->several.items[i], errs) < 0 || check_cells(m, &part, errs) < 0)
            rc = -1;
        if (part)
            json_array_append_new(json_object_get(*answer, "sites"), part);
    }
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_matrix *m = hg_matrix_load(argv[0], site, errs);
    json_t *answer = NULL;
    int rc;

    (void)argc;
    if (!m)
        return -1;
    rc = hg_matrix_check_chosen(m, NULL) == 0 ? check_cells(m, &answer, errs)
                                              : check_sites(m, &answer, errs);
    if (as_json)
        hg_print_json(json_incref(answer));
    json_decref(answer);
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
