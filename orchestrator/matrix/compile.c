/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/compile.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "matrix/axes.h"
#include "matrix/draft.h"
#include "matrix/matrix.h"
#include "matrix/pointer.h"
#include "matrix/rules.h"

static void parse_start(struct hg_draft *p)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *name;
    json_t *json;

    json_object_foreach(p->m->workload.start, name, json) {
        const char *at = hg_member_pointer(&path, "/workload", name);
        int column = hg_draft_column(p, name, at);

        if (column < 0)
            continue;
        p->g->columns.items[column].given = true;
        hg_draft_value(p, name, json, at, &p->g->columns.items[column].start);
    }
    hg_buf_done(&path);
}

static const struct hg_grid *sorting; /* qsort has no context */

static int compare_columns(const void *a, const void *b)
{
    return hg_json_compare_keys(sorting->columns.items[*(const int *)a].name,
                                sorting->columns.items[*(const int *)b].name);
}

static void sort_columns(struct hg_grid *g)
{
    g->sorted = hg_alloc_zeroed(g->columns.n, sizeof *g->sorted);
    for (size_t i = 0; i < g->columns.n; i++)
        if (g->columns.items[i].identity)
            g->sorted[g->n_sorted++] = (int)i;
    sorting = g;
    qsort(g->sorted, g->n_sorted, sizeof *g->sorted, compare_columns);
}

static void make_identity(struct hg_grid *g, const struct hg_workload *w)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *o = json_object();

    if (w->program)
        json_object_set_new(o, "program", json_string(w->program));
    json_object_set(o, "command", w->words);
    json_object_set(o, "launch", w->launch);
    json_object_set(o, "env", w->env);
    json_object_set(o, "files", w->files);
    hg_json_dump(o, HG_JSON_SORT, &text);
    json_decref(o);
    g->identity_len = text.len;
    g->identity = hg_buf_detach(&text);
}

static void add_known_columns(struct hg_draft *p)
{
    struct hg_column *c;

    for (int i = 0; i < HG_KEY_COUNT; i++)
        hg_draft_column(p, hg_keys[i].name, "");
    c = p->g->columns.items;
    c[HG_COLUMN_STRATEGY].given = p->judge.worker;
    c[HG_COLUMN_SITE].given = c[HG_COLUMN_HARDWARE].given = c[HG_COLUMN_NODES].given = true;
    c[HG_COLUMN_GPUS_PER_NODE].given = c[HG_COLUMN_TASKS_PER_NODE].given =
        c[HG_COLUMN_REPEAT].given = true;
}

struct hg_grid *hg_grid_compile(const struct hg_matrix *m, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct hg_grid *g = hg_alloc_zeroed(1, sizeof *g);
    struct hg_draft p = { .g = g, .m = m, .errs = errs };

    g->worker = json_object_get(m->workload_json, "program") != NULL;
    p.judge = (struct hg_judge){ m->site, g->worker, m->several.n ? &m->several : NULL };
    g->pool = hg_pool_create();
    g->exprs = hg_exprs_create();
    add_known_columns(&p);
    parse_start(&p);
    hg_axes_parse(&p);
    hg_rules_parse_derive(&p);
    hg_rules_parse(&p);
    hg_rules_parse_baseline(&p);
    hg_rules_compile(&p);
    if (errs->n + errs->dropped == before)
        hg_axes_check_size(&p);
    if (errs->n + errs->dropped == before) {
        sort_columns(g);
        make_identity(g, &m->workload);
    }
    return g;
}
