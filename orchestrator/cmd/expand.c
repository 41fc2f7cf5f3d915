/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bar.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/cells.h"
#include "cmd/options.h"
#include "matrix/matrix.h"
#include "matrix/select.h"

static bool count_only, as_json, show_ids;
static const char *select_text, *site;

static const struct hg_opt opts[] = {
    HG_OPTION_SELECT(&select_text),
    { HG_OPT_FLAG, 'c', "count", &count_only, NULL, "only the counts", 0, 0 },
    HG_OPTION_IDS(&show_ids),
    HG_OPTION_JSON(&as_json),
    HG_OPTION_SITE(&site),
    { 0 },
};

/* A member that is not the same in all cells shown, and the width of its column. */
struct key {
    char *name;
    json_t *first; /* in the first cell; NULL: absent there */
    bool varies;
    size_t width;
};

struct expand {
    const struct hg_selector *select;
    struct hg_errs *errs;
    struct {
        struct key *items;
        size_t n, cap;
    } keys;
    size_t id_width;
    size_t shown;
};

static int picked(struct expand *x, const struct hg_cell *cell)
{
    struct hg_err err = HG_ERR_INIT;
    int rc = hg_selector_match(x->select, cell->id, cell->members, &err);

    hg_errs_add(x->errs, &err);
    return rc;
}

/* ---- First walk: which members vary, how wide they are ---- */

static struct key *find_key(struct expand *x, const char *name)
{
    for (size_t i = 0; i < x->keys.n; i++)
        if (strcmp(x->keys.items[i].name, name) == 0)
            return &x->keys.items[i];
    return NULL;
}

static struct key *add_key(struct expand *x, const char *name)
{
    struct key *key = HG_VEC_PUSH(&x->keys);

    *key = (struct key){ .name = hg_strdup(name),
                         .width = hg_text_width(name),
                         .varies = x->shown > 0 };
    return key;
}

static void measure(struct key *key, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t width;

    hg_cells_show_value(value, &text);
    width = hg_text_width(hg_buf_str(&text));
    if (width > key->width)
        key->width = width;
    hg_buf_done(&text);
}

static int study(const struct hg_cell *cell, void *context)
{
    struct expand *x = context;
    const char *name;
    json_t *value;
    int rc = picked(x, cell);

    if (rc <= 0)
        return rc;
    if (strlen(cell->id) > x->id_width)
        x->id_width = strlen(cell->id);
    json_object_foreach(cell->members, name, value) {
        struct key *key = find_key(x, name);

        if (!key) {
            key = add_key(x, name);
            if (!key->varies)
                key->first = json_incref(value);
        }
        measure(key, value);
    }
    for (size_t i = 0; i < x->keys.n; i++) {
        struct key *key = &x->keys.items[i];

        if (!key->varies)
            key->varies = !hg_json_equal(key->first, json_object_get(cell->members, key->name));
    }
    x->shown++;
    return 0;
}

/* If nothing varies: what most matrices vary. */
static void show_something(struct expand *x)
{
    static const char *const names[] = { "strategy", "nodes", "gpus_per_node", "tasks_per_node" };
    bool any = show_ids;

    for (size_t i = 0; i < x->keys.n; i++)
        any = any || x->keys.items[i].varies;
    for (size_t i = 0; i < sizeof names / sizeof *names && !any; i++)
        if (find_key(x, names[i]))
            find_key(x, names[i])->varies = true;
}

/* ---- Second walk: print ---- */

/* Append a field of a table; the spaces that fill it come with the next one. */
static void add_field(struct hg_buf *line, size_t *end, const char *text, size_t width)
{
    size_t now = hg_text_width(hg_buf_str(line));

    hg_buf_printf(line, "%*s%s", (int)(*end > now ? *end - now : 0), "", text);
    *end += width + 2;
}

static void print_line(struct hg_buf *line)
{
    puts(hg_buf_str(line));
    hg_buf_done(line);
}

static void print_head(const struct expand *x)
{
    struct hg_buf line = HG_BUF_INIT;
    size_t end = 0;

    if (show_ids)
        add_field(&line, &end, "id", x->id_width);
    for (size_t i = 0; i < x->keys.n; i++)
        if (x->keys.items[i].varies)
            add_field(&line, &end, x->keys.items[i].name, x->keys.items[i].width);
    print_line(&line);
}

static int print_row(const struct hg_cell *cell, void *context)
{
    struct expand *x = context;
    struct hg_buf line = HG_BUF_INIT, value = HG_BUF_INIT;
    size_t end = 0;
    int rc = picked(x, cell);

    if (rc <= 0)
        return rc;
    if (show_ids)
        add_field(&line, &end, cell->id, x->id_width);
    for (size_t i = 0; i < x->keys.n; i++) {
        const struct key *key = &x->keys.items[i];

        if (!key->varies)
            continue;
        hg_buf_clear(&value);
        hg_cells_show_value(json_object_get(cell->members, key->name), &value);
        add_field(&line, &end, hg_buf_str(&value), key->width);
    }
    if (cell->added)
        add_field(&line, &end, "(added baseline)", 16);
    hg_buf_clear(&value);
    if (cell->skip) {
        hg_buf_printf(&value, "(%s%s)", cell->fate == HG_CELL_SKIPPED ? "cannot run: " : "",
                      cell->skip);
        add_field(&line, &end, hg_buf_str(&value), 0);
    }
    hg_buf_done(&value);
    print_line(&line);
    return 0;
}

static int print_json_cell(const struct hg_cell *cell, void *context)
{
    struct expand *x = context;
    struct hg_buf text = HG_BUF_INIT;
    json_t *o;
    int rc = picked(x, cell);

    if (rc <= 0)
        return rc;
    o = json_pack("{s:s, s:O, s:s, s:b}", "id", cell->id, "cell", cell->members, "fate",
                  hg_cells_fate_name(cell->fate), "added", cell->added);
    if (cell->baseline[0])
        json_object_set_new(o, "baseline", json_string(cell->baseline));
    if (cell->skip)
        json_object_set_new(o, "reason", hg_json_text(cell->skip));
    hg_json_dump(o, HG_JSON_COMPACT, &text);
    printf("%s\n%s", x->shown++ ? "," : "", hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(o);
    return 0;
}

/* ---- The command ---- */

static void print_json_count(const struct hg_matrix *m, const struct hg_cells_count *count)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *o = hg_cells_count_json(m, count);

    hg_json_dump(o, HG_JSON_COMPACT, &text);
    fputs(hg_buf_str(&text), stdout);
    json_decref(o);
    hg_buf_done(&text);
}

static int list_json(const struct hg_matrix *m, struct expand *x, struct hg_cells_count *count)
{
    int rc;

    hg_bar_allow(!isatty(STDOUT_FILENO)); /* the cells are on the terminal */
    printf("{\"name\":\"%s\",", m->name);
    if (hg_matrix_check_chosen(m, NULL) == 0)
        printf("\"site\":\"%s\",", m->site->name);
    printf("\"cells\":[");
    rc = hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, print_json_cell, x, count, x->errs);
    printf("],\n\"count\":");
    print_json_count(m, count);
    puts("}");
    return rc;
}

static int list_table(const struct hg_matrix *m, struct expand *x, struct hg_cells_count *count)
{
    unsigned flags = HG_CELLS_MEMBERS | HG_CELLS_SKIPPED;
    int rc;

    if (hg_cells_walk(m, flags, study, x, count, x->errs) != 0)
        return -1;
    show_something(x);
    hg_cells_count_done(count);
    hg_bar_allow(!isatty(STDOUT_FILENO));
    if (x->shown)
        print_head(x);
    rc = hg_cells_walk(m, flags, print_row, x, count, x->errs);
    if (x->shown)
        putchar('\n');
    hg_cells_print_count(m, count);
    if (x->select)
        printf("selected    %8zu   by -s, shown above\n", x->shown);
    return rc;
}

static int count_cells(const struct hg_matrix *m, struct expand *x, struct hg_cells_count *count)
{
    int rc = hg_cells_walk(m, HG_CELLS_SKIPPED, NULL, NULL, count, x->errs);

    if (rc == 0 && as_json) {
        print_json_count(m, count);
        putchar('\n');
    } else if (rc == 0) {
        hg_cells_print_count(m, count);
    }
    return rc;
}

static int count_picked(const struct hg_cell *cell, void *context)
{
    struct expand *x = context;
    int rc = picked(x, cell);

    x->shown += rc > 0 && cell->fate == HG_CELL_RUNS;
    return rc < 0 ? rc : 0;
}

static int count_selection(const struct hg_matrix *m, struct expand *x,
                           struct hg_cells_count *count)
{
    int rc = hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, count_picked, x, count, x->errs);

    if (rc == 0)
        printf(as_json ? "{\"cells\":%zu}\n" : "cells       %8zu\n", x->shown);
    return rc;
}

static int expand(const struct hg_matrix *m, struct expand *x)
{
    struct hg_cells_count count = { 0 };
    int rc;

    if (count_only)
        rc = x->select ? count_selection(m, x, &count) : count_cells(m, x, &count);
    else
        rc = as_json ? list_json(m, x, &count) : list_table(m, x, &count);
    if (rc == 0)
        hg_cells_print_warnings(&count);
    hg_cells_count_done(&count);
    if (rc == 0 && x->select && !x->shown && !as_json && !count_only)
        rc = hg_selector_refuse(x->select, m, HG_CELLS_SKIPPED, x->errs);
    return rc == 0 ? 0 : -1;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct expand x = { .errs = errs, .id_width = 2 };
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *select = NULL;
    struct hg_matrix *m = hg_matrix_load(argv[0], site, errs);
    int rc = -1;

    (void)argc;
    if (m && select_text)
        select = hg_selector_parse(select_text, &err);
    x.select = select;
    if (m && !err.code && hg_selector_check(select, m->grid, &err) == 0)
        rc = expand(m, &x);
    hg_errs_add(errs, &err);
    for (size_t i = 0; i < x.keys.n; i++) {
        free(x.keys.items[i].name);
        json_decref(x.keys.items[i].first);
    }
    HG_VEC_DONE(&x.keys);
    hg_selector_free(select);
    hg_matrix_free(m);
    return rc;
}

const struct hg_cmd hg_cmd_expand = {
    .name = "expand",
    .args = "MATRIX",
    .summary = "List the cells of a matrix and what its rules add and exclude.",
    .details = "A cell is shown with the members that differ between cells. Cells that cannot\n"
               "run are listed with the reason; they are never submitted.",
    .opts = opts,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
