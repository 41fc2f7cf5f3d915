/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/rules.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"
#include "matrix/grid.h"
#include "matrix/pointer.h"

#define MATCH_VALUES_MAX 100000
/* No person writes more; without bounds a file of 16 MB could keep us busy for hours. */
#define RULES_MAX 5000
#define EXPRS_MAX 300
#define EXPR_TEXT_MAX 4096

static int add_expr(struct hg_draft *p, const json_t *json, const char *pointer)
{
    struct hg_err err = HG_ERR_INIT;
    char *place;
    int i;

    if (json_string_length(json) > EXPR_TEXT_MAX || hg_exprs_count(p->g->exprs) == EXPRS_MAX) {
        hg_json_error(&p->m->doc, pointer, p->errs,
                      "a matrix holds at most %d expressions of at most %d characters each",
                      EXPRS_MAX, EXPR_TEXT_MAX);
        return -1;
    }
    place = hg_pointer_place(&p->m->doc, pointer, "error");
    i = hg_exprs_add(p->g->exprs, json_string_value(json), place, &err);
    free(place);
    return i < 0 ? hg_draft_report(p, pointer, false, &err) : i;
}

static void match_generator(struct hg_draft *p, const json_t *list, enum hg_alt_kind kind,
                            const char *pointer, struct hg_match *match)
{
    struct hg_alt alt = { .kind = kind };
    struct hg_err err = HG_ERR_INIT;

    if (hg_generator_fill(list, &alt, &err) < 0) {
        hg_draft_report(p, pointer, false, &err);
        return;
    }
    if (alt.size > MATCH_VALUES_MAX) {
        hg_json_error(&p->m->doc, pointer, p->errs, "more than %d values; write a jq expression",
                      MATCH_VALUES_MAX);
        return;
    }
    match->values = hg_alloc_zeroed((size_t)alt.size, sizeof *match->values);
    for (; (double)match->n < alt.size; match->n++)
        match->values[match->n] = hg_value_of_number(hg_generated(&alt, (double)match->n));
}

/* A value that no cell can have is a typing mistake; only hardware may be another site's. */
static hg_value match_value(struct hg_draft *p, const char *name, const json_t *json,
                            const char *pointer)
{
    const struct hg_judge anywhere = { .worker = p->judge.worker };
    struct hg_err err = HG_ERR_INIT;

    if (hg_member_judge(&anywhere, name, json, &err) < 0)
        hg_draft_report(p, pointer, false, &err);
    return hg_pool_add(p->g->pool, json);
}

static void parse_match(struct hg_draft *p, const char *name, const json_t *json,
                        const char *pointer, struct hg_match *match)
{
    enum hg_alt_kind kind = HG_ALT_VALUE;
    const json_t *list = hg_generator_of(json, &kind);
    bool many = json_is_array(json);
    size_t n = many ? json_array_size(json) : 1;
    struct hg_buf item = HG_BUF_INIT;

    match->column = hg_grid_column(p->g, name);
    if (!hg_grid_has_key(p->g, name)) {
        hg_draft_unknown_key(p, pointer, true, name);
    } else if (list) {
        match_generator(p, list, kind, pointer, match);
    } else {
        match->values = hg_alloc_zeroed(n, sizeof *match->values);
        for (; match->n < n; match->n++)
            match->values[match->n] =
                match_value(p, name, many ? json_array_get(json, match->n) : json,
                            many ? hg_item_pointer(&item, pointer, match->n) : pointer);
    }
    hg_buf_done(&item);
}

static void parse_object_rule(struct hg_draft *p, const json_t *object, struct hg_rule *rule)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    rule->matches = hg_alloc_zeroed(json_object_size(object), sizeof *rule->matches);
    json_object_foreach((json_t *)object, name, json) {
        parse_match(p, name, json, hg_member_pointer(&path, rule->pointer, name),
                    &rule->matches[rule->n++]);
    }
    if (!rule->n)
        hg_json_error(&p->m->doc, rule->pointer, p->errs, "an empty rule would exclude every cell");
    hg_buf_done(&path);
}

void hg_rules_parse(struct hg_draft *p)
{
    const json_t *list = p->m->exclude;

    if (json_array_size(list) > RULES_MAX) {
        hg_json_error(&p->m->doc, "/exclude", p->errs, "%zu rules; the limit is %d",
                      json_array_size(list), RULES_MAX);
        return;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        struct hg_rule *rule = HG_VEC_PUSH(&p->g->rules);

        *rule = (struct hg_rule){ .expr = -1 };
        snprintf(rule->pointer, sizeof rule->pointer, "/exclude/%zu", i);
        if (json_is_object(json))
            parse_object_rule(p, json, rule);
        else if (json_is_string(json))
            rule->expr = add_expr(p, json, rule->pointer);
        else
            hg_json_error(&p->m->doc, rule->pointer, p->errs,
                          "expected an object or a jq expression in quotes, found %s",
                          hg_json_type_name(json));
    }
}

static void parse_derive(struct hg_draft *p, const char *name, const json_t *json,
                         const char *pointer)
{
    struct hg_derive *d;
    int column = hg_draft_column(p, name, pointer);

    d = HG_VEC_PUSH(&p->g->derives);
    *d = (struct hg_derive){ .column = column, .expr = -1, .pointer = hg_strdup(pointer) };
    if (column >= 0) {
        p->g->columns.items[column].given = true;
        p->g->columns.items[column].derive = (int)p->g->derives.n - 1;
    }
    if (json_is_string(json))
        d->expr = add_expr(p, json, pointer);
    else
        hg_err_hint(hg_json_error(&p->m->doc, pointer, p->errs,
                                  "expected a jq expression in quotes, found %s",
                                  hg_json_type_name(json)),
                    "a constant belongs into \"workload\"");
}

void hg_rules_parse_derive(struct hg_draft *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    json_object_foreach(p->m->derive, name, json) {
        parse_derive(p, name, json, hg_member_pointer(&path, "/derive", name));
    }
    hg_buf_done(&path);
}

static void parse_overlay(struct hg_draft *p, const char *name, const json_t *json,
                          const char *pointer)
{
    hg_value value = HG_VALUE_ABSENT;
    enum hg_alt_kind kind;

    if (!hg_grid_has_key(p->g, name)) {
        hg_draft_unknown_key(p, pointer, true, name);
        return;
    }
    if ((json_is_array(json) && json_array_size(json) != 1) || hg_generator_of(json, &kind)) {
        hg_err_hint(hg_json_error(&p->m->doc, pointer, p->errs, "a baseline has one value here"),
                    "a list that is one value is written [[...]]");
        return;
    }
    if (json_is_array(json))
        json = json_array_get(json, 0);
    if (hg_draft_value(p, name, json, pointer, &value) == 0)
        *HG_VEC_PUSH(&p->g->baseline) = (struct hg_overlay){ hg_grid_column(p->g, name), value };
}

void hg_rules_parse_baseline(struct hg_draft *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    p->g->has_baseline = p->m->baseline != NULL;
    json_object_foreach(p->m->baseline, name, json) {
        parse_overlay(p, name, json, hg_member_pointer(&path, "/baseline", name));
    }
    hg_buf_done(&path);
}

/* Members that an expression surely reads must exist somewhere; with a typing mistake it would compare
 * null, and null is less than any number. */
static void check_names(struct hg_draft *p, int expr, const char *pointer)
{
    const struct hg_expr_uses *u = hg_exprs_uses(p->g->exprs, expr);

    for (size_t i = 0; i < u->n; i++)
        if (u->certain[i] && !hg_grid_has_key(p->g, u->names[i]))
            hg_draft_unknown_key(p, pointer, false, u->names[i]);
}

static const char *pointer_of_expr(const struct hg_grid *g, int expr)
{
    for (size_t i = 0; i < g->derives.n; i++)
        if (g->derives.items[i].expr == expr)
            return g->derives.items[i].pointer;
    for (size_t i = 0; i < g->rules.n; i++)
        if (g->rules.items[i].expr == expr)
            return g->rules.items[i].pointer;
    return "";
}

void hg_rules_compile(struct hg_draft *p)
{
    for (;;) {
        struct hg_err err = HG_ERR_INIT;
        int bad = -1;

        if (hg_exprs_compile(p->g->exprs, &bad, &err) == 0)
            break;
        hg_draft_report(p, pointer_of_expr(p->g, bad), false, &err);
        if (bad < 0)
            return;
        hg_exprs_drop(p->g->exprs, bad);
    }
    for (size_t i = 0; i < p->g->rules.n; i++)
        if (p->g->rules.items[i].expr >= 0)
            check_names(p, p->g->rules.items[i].expr, p->g->rules.items[i].pointer);
}
