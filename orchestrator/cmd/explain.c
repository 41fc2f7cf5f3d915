/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "base/bar.h"
#include "base/text.h"
#include "cmd/auto_limits.h"
#include "cmd/cells.h"
#include "cmd/options.h"
#include "cmd/print.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/names.h"
#include "matrix/select.h"
#include "matrix/together.h"
#include "plan/plan.h"

#define SHOWN_MAX 20

static const char *site;
static bool as_json;

static const struct hg_opt opts[] = {
    HG_OPTION_SITE(&site),
    HG_OPTION_JSON(&as_json),
    { 0 },
};

struct explain {
    const struct hg_matrix *m;
    const char *id;                   /* beginning of an id, or NULL */
    const struct hg_selector *select; /* if it is not an id */
    /* Of all cells, also of those that do not run; NULL: none was shown yet. */
    struct hg_names *names;
    struct hg_map ids;    /* to their numbers */
    struct hg_plan *plan; /* which cells share a job; NULL: not made yet */
    struct hg_errs *errs;
    size_t found, visited;
    json_t *cells; /* as_json: those found */
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

/* ---- As JSON ---- */

static json_t *place_json(const struct explain *x, const char *pointer)
{
    struct hg_errs errs = HG_ERRS_INIT;
    const struct hg_err *at = hg_json_error(&x->m->doc, pointer, &errs, "x");
    json_t *place = json_pack("{s:o, s:s, s:i, s:i}", "file", hg_json_text(x->m->doc.file),
                              "pointer", pointer, "line", at->line, "column", at->column);

    hg_errs_done(&errs);
    return place;
}

static json_t *name_json(const struct explain *x, size_t number)
{
    struct hg_buf name = HG_BUF_INIT;
    json_t *text;

    hg_names_append(x->names, number, &name);
    text = hg_json_text(hg_buf_str(&name));
    hg_buf_done(&name);
    return text;
}

static json_t *members_json(const struct hg_cell *cell)
{
    json_t *members = json_object(), *value;
    const char *name;

    json_object_foreach(cell->members, name, value)
        json_object_set_new(members, name,
                            json_pack("{s:O, s:O*}", "value", value, "origin",
                                      json_object_get(cell->origins, name)));
    return members;
}

static json_t *cell_json(const struct explain *x, const struct hg_cell *cell, size_t number)
{
    json_t *o =
        json_pack("{s:s, s:o, s:o, s:b, s:s, s:o}", "id", cell->id, "name", name_json(x, number),
                  "made_by", place_json(x, cell->source), "added", cell->added, "fate",
                  hg_cells_fate_name(cell->fate), "members", members_json(cell));

    if (cell->fate == HG_CELL_SKIPPED)
        json_object_set_new(o, "reason", hg_json_text(cell->skip));
    if (cell->fate == HG_CELL_EXCLUDED)
        json_object_set_new(o, "excluded_by",
                            place_json(x, x->m->grid->rules.items[cell->rule].pointer));
    if (cell->fate == HG_CELL_RUNS)
        json_object_set_new(
            o, "first_round",
            json_boolean(json_number_value(json_object_get(cell->members, "repeat")) <=
                         (double)x->m->repeats.min));
    if (cell->baseline[0])
        json_object_set_new(o, "baseline", json_string(cell->baseline));
    return o;
}

/* ---- The cells ---- */

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

/* The cells that share its job, in the order in which they run. */
static void print_job(const struct explain *x, const struct hg_batch *b, size_t line)
{
    size_t begin = line - line % b->together, end = begin + b->together, shown = begin;

    if (end - begin > SHOWN_MAX)
        shown = line - begin > SHOWN_MAX / 2 ? line - SHOWN_MAX / 2 : begin;
    printf("  %-14s number %zu of %u, one after another:\n", "job", line - begin + 1, b->together);
    for (size_t i = shown; i < end && i < shown + SHOWN_MAX; i++) {
        printf("  %-14s %zu. ", "", i - begin + 1);
        print_name(x, hg_map_find(&x->ids, b->ids[i], strlen(b->ids[i])));
    }
}

static int print_mates(struct explain *x, const struct hg_cell *cell)
{
    if (!hg_matrix_has_together(x->m) || cell->fate != HG_CELL_RUNS ||
        hg_matrix_check_chosen(x->m, NULL) < 0)
        return 0;
    if (!x->plan)
        x->plan = hg_plan_make(x->m, NULL, NULL, x->errs);
    for (size_t b = 0; x->plan && b < x->plan->n; b++)
        for (size_t i = 0; x->plan->items[b].together > 1 && i < x->plan->items[b].n; i++)
            if (strcmp(x->plan->items[b].ids[i], cell->id) == 0)
                print_job(x, &x->plan->items[b], i);
    return x->plan ? 0 : -1;
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
    hg_bar_hide();
    if (!x->names && load_names(x) != 0)
        return -1;
    if (as_json)
        return json_array_append_new(x->cells, cell_json(x, cell, number));
    printf("%s", x->found > 1 ? "\n" : "");
    print_name(x, number);
    printf("  %-14s %s\n", "id", cell->id);
    printf("  %-14s ", "made by");
    print_place(x, cell->source);
    puts(cell->added ? ", then /baseline: the matrix lacks this baseline" : "");
    print_fate(x, cell);
    if (cell->baseline[0])
        print_baseline(x, cell);
    if (print_mates(x, cell) < 0)
        return -1;
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
    struct explain x = { .m = m, .id = argv[1], .errs = errs, .cells = json_array() };
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
    if (rc == 0 && as_json)
        hg_print_json(json_pack("{s:O, s:I}", "cells", x.cells, "more",
                                (json_int_t)(x.found > SHOWN_MAX ? x.found - SHOWN_MAX : 0)));
    else if (rc == 0 && x.found > SHOWN_MAX)
        fprintf(stderr, "and %zu more cell%s\n", x.found - SHOWN_MAX,
                hg_text_s(x.found - SHOWN_MAX));
    json_decref(x.cells);
    hg_plan_free(x.plan);
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
