/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/text.h"
#include "data/dataset.h"
#include "models/model.h"
#include "strategies/strategy.h"

/* `built` is 1 or 0 in the table: a parameter that is not built has no field to go to. */
#define OFFSET_1(name) offsetof(struct wk_config, name)
#define OFFSET_0(name) 0
#define FLAGS_1 0
#define FLAGS_0 HG_J_NOT_YET
#define FIELD(kind_, name_, min_, max_, built_, doc_) \
    { .name = #name_,                                 \
      .kind = HG_J_##kind_,                           \
      .offset = OFFSET_##built_(name_),               \
      .flags = FLAGS_##built_,                        \
      .min = (min_),                                  \
      .max = (max_),                                  \
      .doc = (doc_) },

/* Keys that say where a cell runs and how its job is asked for; hpcgrid has acted on them. */
#define ELSEWHERE(name_) { .name = name_, .kind = HG_J_JSON, .flags = HG_J_IGNORED, .doc = "" },

static const struct hg_field fields[] = {
#define HG_WORKER_PARAM(kind_, name_, min_, max_, built_, doc_) \
    FIELD(kind_, name_, min_, max_, built_, doc_)
#include "base/worker_params.def"
#undef HG_WORKER_PARAM
    FIELD(INT, nodes, 1, 1000000, 1, "nodes of the job") FIELD(INT, tasks_per_node, 1, 1000000, 1,
                                                               "ranks on each node")
        FIELD(INT, cpus_per_task, 1, 1000000, 1, "threads of a rank, unless OMP_NUM_THREADS is set")
            ELSEWHERE("site") ELSEWHERE("hardware") ELSEWHERE("gpus_per_node")
                ELSEWHERE("cpus_per_gpu") ELSEWHERE("container") ELSEWHERE("modules")
                    ELSEWHERE("time") ELSEWHERE("mem") ELSEWHERE("sbatch") ELSEWHERE("repeat"){ 0 },
};

static int set_defaults(struct wk_config *c)
{
    *c = (struct wk_config){ .batch_size = 64,
                             .epochs = 1,
                             .seed = 1,
                             .test_batch = 1000,
                             .lr = 0.1,
                             .gamma = 0.7,
                             .rho = 0.9,
                             .eps = 1e-6,
                             .dropout = true,
                             .eval = true,
                             .bucket_cap_mb = 25,
                             .first_bucket_mb = 1,
                             .model = strdup("rnn"),
                             .dataset = strdup("mnist"),
                             .strategy = strdup("single"),
                             .backend = strdup("cpu"),
                             .precision = strdup(WK_PRECISION),
                             .optimizer = strdup("adadelta") };
    return c->model && c->dataset && c->strategy && c->backend && c->precision && c->optimizer ? 0
                                                                                               : -1;
}

/* `null` is absence everywhere. */
static void drop_nulls(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value)
    {
        if (json_is_null(value))
            json_object_del(object, key);
    }
}

/* Words that other versions of hpcgrid-worker know. */
static bool is_planned(const char *key, const char *word)
{
    static const struct {
        const char *key, *word;
        bool built;
    } words[] = {
#define HG_WORKER_WORD(parameter, word_, built_) { #parameter, word_, built_ },
#include "base/worker_words.def"
#undef HG_WORKER_WORD
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!words[i].built && strcmp(words[i].key, key) == 0 && strcmp(words[i].word, word) == 0)
            return true;
    return false;
}

/* A finder of names says whether there is such a thing, and sets err if not. */
typedef bool finder(const char *name, struct hg_err *err);

static void check_name(const struct hg_json_doc *doc, const char *key, const char *name,
                       finder *has, struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT, *placed;
    char pointer[64];

    if (has(name, err))
        return;
    snprintf(pointer, sizeof pointer, "/%s", key);
    if (err->code == HG_E_INPUT && is_planned(key, name)) {
        hg_json_error(doc, pointer, errs, "%s \"%s\": not available yet", key, name);
        return;
    }
    placed = hg_json_error(doc, pointer, errs, "%s", err->text);
    placed->code = err->code;
    hg_err_hint(placed, "%s", err->hint);
}

static bool has_model(const char *name, struct hg_err *err)
{
    return wk_model_get(name, err);
}

static bool has_strategy(const char *name, struct hg_err *err)
{
    return wk_strategy_get(name, 1, err);
}

static bool has_backend(const char *name, struct hg_err *err)
{
    return wk_backend_get(name, err);
}

static bool has_optimizer(const char *name, struct hg_err *err)
{
    return wk_optim_get(name, err);
}

static bool has_precision(const char *name, struct hg_err *err)
{
    static const char *const known[] = { WK_PRECISION };

    if (strcmp(name, WK_PRECISION) == 0)
        return true;
    hg_err_set(err, HG_E_INPUT, "unknown precision \"%s\"", name);
    hg_text_suggest(err, name, known, 1);
    return false;
}

static void check_names(const struct wk_config *c, const struct hg_json_doc *doc,
                        struct hg_errs *errs)
{
    check_name(doc, "model", c->model, has_model, errs);
    check_name(doc, "dataset", c->dataset, wk_dataset_known, errs);
    check_name(doc, "strategy", c->strategy, has_strategy, errs);
    check_name(doc, "backend", c->backend, has_backend, errs);
    check_name(doc, "precision", c->precision, has_precision, errs);
    check_name(doc, "optimizer", c->optimizer, has_optimizer, errs);
}

int wk_config_load(const char *path, struct wk_config *c, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;

    if (set_defaults(c) < 0) {
        hg_err_oom(hg_errs_next(errs));
        return -1;
    }
    if (hg_json_load(path, &doc, err) < 0)
        return hg_errs_add(errs, err);
    if (json_is_object(doc.root))
        drop_nulls(doc.root);
    c->given = json_incref(doc.root);
    hg_json_decode(&doc, doc.root, "", fields, true, c, errs);
    check_names(c, &doc, errs);
    hg_json_doc_done(&doc);
    return errs->n ? -1 : 0;
}

void wk_config_done(struct wk_config *c)
{
    hg_json_release(fields, c);
    json_decref(c->given);
    c->given = NULL;
}

void wk_config_help(struct hg_buf *out)
{
    for (const struct hg_field *f = fields; f->kind != HG_J_END; f++)
        if (!(f->flags & (HG_J_NOT_YET | HG_J_IGNORED)))
            hg_buf_printf(out, "  %-15s %s\n", f->name, f->doc);
}
