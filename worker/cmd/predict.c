/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker predict: what a training would hold on a device, before anything is opened. */
#include "train/predict.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/opt.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "strategies/strategies.h"

static const char *cell, *config, *cells;
static bool as_json, data = true;

static const struct hg_opt opts[] = {
    { HG_OPT_STRING, 0, "cell", &cell, "FILE", "a cell's JSON ($HPCGRID_CELL)", 0, 0 },
    { HG_OPT_STRING, 0, "config", &config, "FILE", "the same, written by hand; - is standard input",
      0, 0 },
    { HG_OPT_STRING, 0, "cells", &cells, "FILE",
      "many: an array of cells; prints a line of JSON each", 0, 0 },
    { HG_OPT_FLAG, 0, "data", &data, NULL,
      "read the data set (--no-data: sequences of the largest length)", 0, 0 },
    { HG_OPT_FLAG, 0, "json", &as_json, NULL, "print JSON", 0, 0 },
    { 0 },
};

static void help(struct hg_buf *out)
{
    hg_buf_puts(
        out,
        "usage: hpcgrid-worker predict --config FILE [--json]\n\n"
        "Print how much memory the rank with the largest need would use, by purpose, and what\n"
        "the cell would need with other strategies. No device is opened, nothing is computed.\n\n");
    hg_opt_help(opts, out);
}

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

static void print_json(json_t *o, unsigned flags)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(o, flags, &text);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    json_decref(o);
}

static int predict_one(const char *path, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_prediction p;
    struct wk_config c;
    int rc = -1;

    if (wk_config_load(path, &c, errs) == 0 && wk_predict(&c, NULL, data, &p, &err) == 0) {
        if (as_json)
            print_json(encode(&c, &p), HG_JSON_INDENT);
        else
            print_table(&c, &p);
        rc = 0;
    }
    wk_config_done(&c);
    hg_errs_add(errs, &err);
    return rc;
}

/* A line for each cell: its prediction, or why there is none. */
static void predict_line(const json_t *o)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_prediction p;
    struct wk_config c;

    if (wk_config_decode(o, &c, &errs) == 0 && wk_predict(&c, NULL, data, &p, &err) == 0)
        print_json(encode(&c, &p), HG_JSON_COMPACT);
    else
        print_json(json_pack("{s:s, s:s}", "schema", "hpcgrid-predict/1", "error",
                             errs.n ? errs.items[0].text : err.text),
                   HG_JSON_COMPACT);
    wk_config_done(&c);
    hg_errs_done(&errs);
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
    if (rc == 0)
        json_array_foreach(doc.root, i, o)
            predict_line(o);
    hg_json_doc_done(&doc);
    hg_errs_add(errs, &err);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    cell = getenv("HPCGRID_CELL");
    if (hg_opt_parse(opts, &argc, argv, err) < 0)
        return hg_errs_add(errs, err);
    if (config)
        cell = config;
    if (argc > 0 || (!cell && !cells)) {
        hg_err_set(err, HG_E_USAGE,
                   argc > 0 ? "predict: too many arguments" : "predict: no cell given");
        hg_err_hint(err, "usage: hpcgrid-worker predict --config FILE");
        return hg_errs_add(errs, err);
    }
    return cells ? predict_many(cells, errs) : predict_one(cell, errs);
}

const struct wk_cmd wk_cmd_predict = {
    .name = "predict",
    .summary = "print how much memory a training would need",
    .run = run,
    .help = help,
};
