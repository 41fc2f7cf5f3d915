/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/plots.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "plot/axes.h"
#include "plot/bars.h"
#include "plot/curves.h"
#include "plot/strips.h"

const char *hg_plot_needs(enum hg_plot_kind kind)
{
    static const char *const needs[HG_PLOT_KINDS] = {
        "a baseline and results that are compared with it",
        "results on more devices than their baseline",
        "results with train_s and init_s or comm",
        "results with memory",
        "results with a loss curve (loss.step and loss.loss, or loss.epoch)",
        "results whose device count is known",
        "a place with several runs",
    };

    return needs[kind];
}

int hg_plot_kinds_parse(const char *words, unsigned *kinds, struct hg_err *err)
{
    char *copy = hg_strdup(words), *rest = NULL;
    int rc = 0;

    *kinds = 0;
    for (char *word = strtok_r(copy, ",", &rest); word && rc == 0;
         word = strtok_r(NULL, ",", &rest)) {
        size_t k = 0;

        while (k < HG_PLOT_KINDS && strcmp(hg_plot_names[k], word) != 0)
            k++;
        if (k < HG_PLOT_KINDS) {
            *kinds |= 1u << k;
        } else if (strcmp(word, "all") == 0) {
            *kinds = (1u << HG_PLOT_KINDS) - 1;
        } else {
            rc = hg_err_set(err, HG_E_USAGE, "--plot: unknown kind \"%s\"", word);
            hg_text_suggest(err, word, hg_plot_names, HG_PLOT_KINDS);
        }
    }
    if (rc == 0 && *kinds == 0) {
        rc = hg_err_set(err, HG_E_USAGE, "--plot: no kind given");
        hg_text_suggest(err, "", hg_plot_names, HG_PLOT_KINDS);
    }
    free(copy);
    return rc;
}

/* A picture without a point is dropped. */
static void finish(const struct hg_report *r, struct hg_plots *plots)
{
    struct hg_plot *p = &plots->items[plots->n - 1];
    size_t points = 0;

    for (size_t i = 0; i < p->series.n; i++)
        points += p->series.items[i].points.n;
    if (points == 0) {
        hg_plots_drop_last(plots);
        return;
    }
    if (!p->bars)
        hg_plot_limit(p, HG_PLOT_SERIES_MAX);
    hg_plot_settle(&r->style, p);
}

void hg_plots_build(const struct hg_report *r, size_t table, unsigned kinds, struct hg_plots *plots)
{
    struct hg_plot_runs runs = { 0 };

    hg_plot_runs_find(r, &runs);
    for (unsigned k = 0; k < HG_PLOT_KINDS; k++) {
        if (!(kinds >> k & 1))
            continue;
        if (k == HG_PLOT_SPEEDUP || k == HG_PLOT_EFFICIENCY)
            hg_plot_add_scaling(r, table, (enum hg_plot_kind)k, &runs, plots);
        else if (k == HG_PLOT_LOSS)
            hg_plot_add_loss(r, table, &runs, plots);
        else if (k == HG_PLOT_COST)
            hg_plot_add_cost(r, table, plots);
        else if (k == HG_PLOT_RUNS)
            hg_plot_add_strips(r, table, &runs, plots);
        else
            hg_plot_add_bars(r, table, (enum hg_plot_kind)k, &runs, plots);
        finish(r, plots);
    }
    hg_plot_runs_done(&runs);
}
