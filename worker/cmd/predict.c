/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker predict: what a training would hold on a device, before anything is opened. */
#include "train/predict.h"

#include <jansson.h>
#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "strategies/strategies.h"

static const char *cell, *config, *cells;
static bool as_json, data = true;

static json_t *encode_memory(const struct wk_prediction *p)
{
    json_t *o = json_object();

    for (int i = 0; i < WK_MEM_CLASSES; i++)
        json_object_set_new(o, wk_mem_names[i], hg_json_number(p->mem_bytes[i]));
    return o;
}

/* Totals under every strategy that could train this cell. */
static json_t *encode_strategies(const struct wk_config *c)
{
    json_t *o = json_object();

    for (const struct wk_strategy_limits *s = wk_strategy_limits; s->name; s++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_prediction p;

        if ((!s->max_nodes || c->nodes <= s->max_nodes) &&
            wk_predict(c, s->name, data, &p, &err) == 0)
            json_object_set_new(o, s->name, hg_json_number(p.total_bytes));
    }
    return o;
}

static json_t *encode(const struct wk_config *c, const struct wk_prediction *p)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:f, s:b, s:o}", "schema", "hpcgrid-predict/1",
                     "model", c->model, "strategy", c->strategy, "world", p->world, "rank", p->rank,
                     "memory", encode_memory(p), "total_bytes", p->total_bytes, "exact",
                     (int)p->exact, "strategies", encode_strategies(c));
}

static void print_table(const struct wk_config *c, const struct wk_prediction *p)
{
    char size[32];

    printf("%s %s, rank %d of %d\n", c->model, c->strategy, p->rank, p->world);
    for (int i = 0; i < WK_MEM_CLASSES; i++) {
        hg_text_size_format((uint64_t)p->mem_bytes[i], size);
        printf("  %-12s %12s\n", wk_mem_names[i], size);
    }
    hg_text_size_format((uint64_t)p->total_bytes, size);
    printf("  %-12s %12s%s\n", "in all", size, p->exact ? "" : "  (at most)");
}

static int predict_one(const char *path, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_prediction p;
    struct wk_config c;
    int rc = -1;

    if (wk_config_load(path, &c, errs) == 0 && wk_predict(&c, NULL, data, &p, &err) == 0) {
        rc = 0;
        if (as_json)
            rc = wk_cmd_print_json(encode(&c, &p), HG_JSON_INDENT, &err);
        else
            print_table(&c, &p);
    }
    wk_config_done(&c);
    hg_errs_add(errs, &err);
    return rc;
}

/* A line for each cell: its prediction, or why there is none. */
static int predict_line(const json_t *o, struct hg_err *unwritten)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_prediction p;
    struct wk_config c;
    json_t *line;

    if (wk_config_decode(o, &c, &errs) == 0 && wk_predict(&c, NULL, data, &p, &err) == 0)
        line = encode(&c, &p);
    else
        line = json_pack("{s:s, s:s}", "schema", "hpcgrid-predict/1", "error",
                         errs.n ? errs.items[0].text : err.text);
    wk_config_done(&c);
    hg_errs_done(&errs);
    return wk_cmd_print_json(line, HG_JSON_COMPACT, unwritten);
}

static int predict_many(const char *path, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = hg_json_load(path, &doc, &err);
    size_t i;
    json_t *o;

    if (rc == 0 && !json_is_array(doc.root))
        rc = hg_err_set(&err, HG_E_INPUT, "%s is not an array of cells", path);
    for (i = 0; rc == 0 && (o = json_array_get(doc.root, i)); i++)
        rc = predict_line(o, &err);
    hg_json_doc_done(&doc);
    hg_errs_add(errs, &err);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const char *path = wk_cmd_cell(cell, config);

    (void)argc;
    (void)argv;
    if (cells)
        return predict_many(cells, errs);
    return path ? predict_one(path, errs) : wk_cmd_misused(&wk_cmd_predict, "no cell given", errs);
}

const struct wk_cmd wk_cmd_predict = {
    .name = "predict",
    .summary = "print how much memory a training would need",
    .usage = "--config FILE [--json]",
    .about = "Print how much memory the rank with the largest need would use, by purpose,\n"
             "and what the cell would need with other strategies. No device is opened,\n"
             "nothing is computed.\n",
    .opts =
        (const struct hg_opt[]){
            WK_OPT_CELL(&cell, &config),
            { HG_OPT_STRING, 0, "cells", &cells, "FILE",
              "many: an array of cells; prints a line of JSON each", 0, 0 },
            { HG_OPT_FLAG, 0, "data", &data, NULL,
              "read the data set (--no-data: sequences of the largest length)", 0, 0 },
            { HG_OPT_FLAG, 0, "json", &as_json, NULL, "print JSON", 0, 0 },
            { 0 },
        },
    .run = run,
};
