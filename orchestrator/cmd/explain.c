/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cells.h"
#include "cmd/forecast.h"
#include "cmd/options.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/names.h"
#include "matrix/select.h"

#define SHOWN_MAX 20

static const char *site;

static const struct hg_opt opts[] = {
    HG_OPTION_SITE(&site),
    { 0 },
};

struct explain {
    const struct hg_matrix *m;
    const char *id;                   /* beginning of an id, or NULL */
    const struct hg_selector *select; /* if it is not an id */
    struct hg_names
        *names;        /* of all cells, also of those that do not run; NULL: none was shown yet */
    struct hg_map ids; /* to their numbers */
    struct hg_errs *errs;
    size_t found, visited;
};

static int is_meant(struct explain *x, const struct hg_cell *cell)
{
    struct hg_err err = HG_ERR_INIT;
    int rc;

    if (x->id)
        return strncmp(cell->id, x->id, strlen(x->id)) == 0;
    rc = hg_selector_match(x->select, cell->id, cell->members, &err);
    hg_errs_add(x->errs, &err);
    return rc;
}

static void print_place(const struct explain *x, const char *pointer)
{
    struct hg_errs errs = HG_ERRS_INIT;
    const struct hg_err *at = hg_json_error(&x->m->doc, pointer, &errs, "x");

    printf("%s (%s:%d:%d)", *pointer ? pointer : "the workload alone", x->m->doc.file, at->line,
           at->column);
    hg_errs_done(&errs);
}

static void print_rule(const struct explain *x, int rule)
{
    const json_t *text = json_array_get(x->m->exclude, (size_t)rule);
    struct hg_buf b = HG_BUF_INIT;

    hg_json_dump(text, HG_JSON_COMPACT, &b);
    printf(": %s", hg_buf_str(&b));
    hg_buf_done(&b);
}

static void print_runs(const struct explain *x, const struct hg_cell *cell)
{
    const struct hg_repeats *r = &x->m->repeats;

    if (json_number_value(json_object_get(cell->members, "repeat")) <= (double)r->min)
        puts("runs");
    else
        printf("runs if the intervals of %lld runs or more are wider than ±%.3g %%\n", r->min,
               100 * r->until);
}

static void print_fate(const struct explain *x, const struct hg_cell *cell)
{
    printf("  %-14s ", "fate");
    switch (cell->fate) {
    case HG_CELL_RUNS:
        print_runs(x, cell);
        break;
    case HG_CELL_SKIPPED:
        printf("skipped: %s\n", cell->skip);
        break;
    case HG_CELL_EXCLUDED:
        printf("excluded by ");
        print_place(x, x->m->grid->rules.items[cell->rule].pointer);
        print_rule(x, cell->rule);
        putchar('\n');
        break;
    case HG_CELL_MERGED:
        puts("merged into the earlier cell with this id");
        break;
    }
}

static void print_members(const struct explain *x, const struct hg_cell *cell)
{
    struct hg_buf text = HG_BUF_INIT;
    const char *name;
    json_t *value;

    json_object_foreach(cell->members, name, value) {
        const char *origin = json_string_value(json_object_get(cell->origins, name));

        hg_buf_clear(&text);
        hg_cells_show_value(value, &text);
        printf("  %-14s %-20s %s\n", name, hg_buf_str(&text), origin ? origin : "");
    }
    hg_buf_clear(&text);
    if (hg_cell_time_is_auto(cell->members))
        hg_auto_limits_append_cell(x->m, cell->members, &text);
    if (text.len)
        printf("  %-14s %s\n", "time limit", hg_buf_str(&text));
    hg_buf_done(&text);
}

static int add_name(const struct hg_cell *cell, void *context)
{
    struct explain *x = context;

    hg_map_put(&x->ids, cell->id, strlen(cell->id), hg_names_add(x->names, cell->members));
    return 0;
}

static int load_names(struct explain *x)
{
    x->names = hg_names_create();
    return hg_cells_walk(x->m, HG_CELLS_MEMBERS | HG_CELLS_ALL, add_name, x, NULL, x->errs);
}

static void print_name(const struct explain *x, size_t number)
{
    struct hg_buf name = HG_BUF_INIT;

    hg_names_append(x->names, number, &name);
    puts(hg_buf_str(&name));
    hg_buf_done(&name);
}

static void print_baseline(const struct explain *x, const struct hg_cell *cell)
{
    printf("  %-14s ", "baseline");
    if (strcmp(cell->baseline, cell->id) == 0)
        puts("itself");
    else
        print_name(x, hg_map_find(&x->ids, cell->baseline, strlen(cell->baseline)));
}

static int explain_cell(const struct hg_cell *cell, void *context)
{
    struct explain *x = context;
    int rc = is_meant(x, cell);
    size_t number = x->visited++;

    if (rc <= 0)
        return rc;
    if (x->found++ >= SHOWN_MAX)
        return 0;
    if (!x->names && load_names(x) != 0)
        return -1;
    printf("%s", x->found > 1 ? "\n" : "");
    print_name(x, number);
    printf("  %-14s %s\n", "id", cell->id);
    printf("  %-14s ", "made by");
    print_place(x, cell->source);
    puts(cell->added ? ", then /baseline: the matrix lacks this baseline" : "");
    print_fate(x, cell);
    if (cell->baseline[0])
        print_baseline(x, cell);
    print_members(x, cell);
    return 0;
}

static int explain(struct explain *x)
{
    unsigned flags = HG_CELLS_MEMBERS | HG_CELLS_ALL | HG_CELLS_ORIGINS;

    x->visited = 0;
    return hg_cells_walk(x->m, flags, explain_cell, x, NULL, x->errs);
}

static int explain_selected(struct explain *x, const char *word)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *select = hg_selector_parse(word, &err);
    int rc = -1;

    x->id = NULL;
    x->select = select;
    if (select && hg_selector_check(select, x->m->grid, &err) == 0)
        rc = explain(x);
    if (rc == 0 && !x->found)
        rc = hg_selector_refuse(select, x->m, HG_CELLS_ALL, x->errs);
    hg_errs_add(x->errs, &err);
    hg_selector_free(select);
    return rc;
}

/* Not the beginning of an id. */
static bool is_selector(const struct hg_matrix *m, const char *word)
{
    struct hg_selector *select = hg_selector_parse(word, NULL);
    bool is = strpbrk(word, "=.!<>, ") || (select && hg_selector_check(select, m->grid, NULL) == 0);

    hg_selector_free(select);
    return is;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_matrix *m = hg_matrix_load(argv[0], site, errs);
    struct explain x = { .m = m, .id = argv[1], .errs = errs };
    int rc = -1;

    (void)argc;
    if (m) {
        hg_auto_limits_set(m, NULL);
        rc = explain(&x);
    }
    if (rc == 0 && !x.found && is_selector(m, argv[1]))
        rc = explain_selected(&x, argv[1]);
    if (rc == 0 && !x.found) {
        struct hg_err *err = hg_errs_next(errs);

        hg_err_set(err, HG_E_USAGE, "no cell matches \"%s\"", argv[1]);
        rc =
            hg_err_hint(err, "`hpcgrid expand MATRIX --ids` lists the ids; the beginning of one is "
                             "enough, and so is a selector such as nodes=2,strategy=ddp");
    }
    if (rc == 0 && x.found > SHOWN_MAX)
        fprintf(stderr, "and %zu more cell%s\n", x.found - SHOWN_MAX,
                hg_text_s(x.found - SHOWN_MAX));
    hg_names_free(x.names);
    hg_map_done(&x.ids);
    hg_matrix_free(m);
    return rc == 0 ? 0 : -1;
}

const struct hg_cmd hg_cmd_explain = {
    .name = "explain",
    .args = "MATRIX CELL",
    .summary = "Show which rule made, changed or excluded a cell.",
    .details = "CELL is an id, the beginning of one, or a selector; it also finds excluded and\n"
               "skipped cells. Each member is shown with its value and the rule that set it.",
    .opts = opts,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
