/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/alloc.h"
#include "base/fields.h"
#include "base/text.h"
#include "contract/keys.h"
#include "data/dataset.h"
#include "data/features.h"
#include "data/synthetic.h"
#include "models/models.h"
#include "strategies/strategies.h"
#include "train/qa.h"

#define FIELD(kind_, name_, min_, max_, doc_)      \
    { .name = #name_,                              \
      .kind = HG_J_##kind_,                        \
      .offset = offsetof(struct wk_config, name_), \
      .min = (min_),                               \
      .max = (max_),                               \
      .doc = (doc_) },

static const struct hg_field fields[] = {
#define HG_WORKER_PARAM FIELD
#include "contract/worker_params.def"
#undef HG_WORKER_PARAM
    FIELD(INT, nodes, 1, 1000000, "nodes of the job")
        FIELD(INT, tasks_per_node, 1, 1000000, "ranks on each node")
            FIELD(INT, cpus_per_task, 1, 1000000,
                  "threads of a rank, unless OMP_NUM_THREADS is set"){ 0 },
};

/* What a model is usually trained with: the RNN as PyTorch's example, BERT as the labs. */
static void set_defaults(struct wk_config *c, bool bert)
{
    *c = (struct wk_config){ .batch_size = bert ? 8 : 64,
                             .seed = 1,
                             .test_batch = bert ? 0 : 1000,
                             .lr = bert ? 5e-5 : 0.1,
                             .gamma = 0.7,
                             .rho = 0.9,
                             .eps = bert ? 1e-8 : 1e-6,
                             .dropout = true,
                             .balance = true,
                             .eval = true,
                             .accumulate = 1,
                             .comm_timeout = 600,
                             .seq_len = 384,
                             .doc_stride = 128,
                             .length_min = 16,
                             .length_mean = 176,
                             .length_sd = 60,
                             .trace_wait = 1,
                             .trace_warmup = 1,
                             .trace_active = 3,
                             .trace_repeat = 1,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .weight_decay = 0.01,
                             .model = hg_strdup("rnn"),
                             .dataset = hg_strdup(bert ? "squad-v1.1" : "mnist"),
                             .strategy = hg_strdup("single"),
                             .backend = hg_strdup("cpu"),
                             .precision = hg_strdup(WK_PRECISION),
                             .optimizer = hg_strdup(bert ? "adamw" : "adadelta"),
                             .schedule = hg_strdup(bert ? "linear" : "step"),
                             .decay = hg_strdup("all"),
                             .padding = hg_strdup("packed"),
                             .windows = hg_strdup("overlap"),
                             .labels = hg_strdup("true"),
                             .lengths = hg_strdup("squad"),
                             .gelu = hg_strdup("erf"),
                             .variant = hg_strdup("textbook") };
}

/* What depends on other parameters. */
static void finish_defaults(struct wk_config *c)
{
    if (!c->test_batch)
        c->test_batch = c->batch_size;
    if (!c->epochs && !c->steps)
        c->epochs = 1;
}

/* A strategy's options that are words: from the cell, else from its variant. */
static void choose_words(struct wk_config *c)
{
    struct wk_strategy_options *o = &c->options;

    if (c->fsdp_wrap)
        o->wrap_model = strcmp(c->fsdp_wrap, "model") == 0;
    else
        c->fsdp_wrap = hg_strdup(o->wrap_model ? "model" : "layer");
    if (c->zero_reduce)
        o->all_reduce = strcmp(c->zero_reduce, "allreduce") == 0;
    else
        c->zero_reduce = hg_strdup(o->all_reduce ? "allreduce" : "reduce_scatter");
}

/* A strategy's own options, in the form that it takes and among the cell's parameters. */
static void choose_options(struct wk_config *c, const json_t *given)
{
    struct wk_strategy_options *o = &c->options;

    *o = wk_strategy_defaults(c->strategy, strcmp(c->variant, "framework") == 0);
    o->batch_rows = (int)c->batch_size;
    o->sync_batchnorm = c->sync_batchnorm;
#define OPTION(name, to, from)         \
    if (json_object_get(given, #name)) \
        o->to;                         \
    else                               \
        c->name = from
    OPTION(bucket_cap_mb, bucket_mib = c->bucket_cap_mb, o->bucket_mib);
    OPTION(first_bucket_mb, first_bucket_mib = c->first_bucket_mb, o->first_bucket_mib);
    OPTION(bucket_view, bucket_copies = !c->bucket_view, !o->bucket_copies);
    OPTION(bf16_gradients, bf16_gradients = c->bf16_gradients, o->bf16_gradients);
    OPTION(reshard_after_forward, keep_after_forward = !c->reshard_after_forward,
           !o->keep_after_forward);
    OPTION(backward_prefetch, no_backward_prefetch = !c->backward_prefetch,
           !o->no_backward_prefetch);
    OPTION(reduce_bucket, reduce_elems = (double)c->reduce_bucket, (long long)o->reduce_elems);
    OPTION(persistence_threshold, persistence_threshold = (double)c->persistence_threshold,
           (long long)o->persistence_threshold);
    OPTION(max_live, max_live = (double)c->max_live, (long long)o->max_live);
    OPTION(max_reuse_distance, max_reuse_distance = (double)c->max_reuse_distance,
           (long long)o->max_reuse_distance);
    OPTION(prefetch_elems, prefetch_elems = (double)c->prefetch_elems,
           (long long)o->prefetch_elems);
#undef OPTION
    choose_words(c);
}

/* `null` is absence everywhere. */
static void drop_nulls(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(object, next, key, value) {
        if (json_is_null(value))
            json_object_del(object, key);
    }
}

/* A name was looked up: err says why it was not found. */
static void check_name(const struct hg_json_doc *doc, const char *key, bool found,
                       struct hg_err *err, struct hg_errs *errs)
{
    struct hg_err *placed;
    char pointer[64];

    if (!found) {
        snprintf(pointer, sizeof pointer, "/%s", key);
        placed = hg_json_error(doc, pointer, errs, "%s", err->text);
        placed->code = err->code;
        hg_err_hint(placed, "%s", err->hint);
    }
    *err = (struct hg_err)HG_ERR_INIT;
}

/* A parameter that is one of a few words. */
static void check_word(const struct hg_json_doc *doc, const char *key, const char *word,
                       struct hg_errs *errs)
{
    static const struct {
        const char *key, *word;
    } words[] = {
#define HG_WORKER_WORD(parameter, word_) { #parameter, word_ },
#include "contract/worker_words.def"
#undef HG_WORKER_WORD
    };
    const char *known[sizeof words / sizeof *words];
    struct hg_err *err;
    char pointer[64];
    size_t n = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].key, key) == 0)
            known[n++] = words[i].word;
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i], word) == 0)
            return;
    snprintf(pointer, sizeof pointer, "/%s", key);
    err = hg_json_error(doc, pointer, errs, "unknown %s \"%s\"", key, word);
    hg_text_suggest(err, word, known, n);
}

static void check_words(const struct wk_config *c, const struct hg_json_doc *doc,
                        struct hg_errs *errs)
{
    check_word(doc, "schedule", c->schedule, errs);
    check_word(doc, "decay", c->decay, errs);
    check_word(doc, "padding", c->padding, errs);
    check_word(doc, "windows", c->windows, errs);
    check_word(doc, "labels", c->labels, errs);
    check_word(doc, "lengths", c->lengths, errs);
    check_word(doc, "gelu", c->gelu, errs);
    check_word(doc, "variant", c->variant, errs);
    check_word(doc, "fsdp_wrap", c->fsdp_wrap, errs);
    check_word(doc, "zero_reduce", c->zero_reduce, errs);
}

static void __attribute__((format(printf, 4, 5)))
check_absent(const struct hg_json_doc *doc, const char *key, struct hg_errs *errs,
             const char *format, ...)
{
    char pointer[64], text[160];
    va_list args;

    if (!json_object_get(doc->root, key))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(pointer, sizeof pointer, "/%s", key);
    hg_json_error_key(doc, pointer, errs, "%s", text);
}

/* Parameters that the model does not use are rejected, not ignored. */
static void check_foreign(bool bert, const struct hg_json_doc *doc, struct hg_errs *errs)
{
    static const char *const of_bert[] = {
        "hidden",      "balance",       "layers",      "heads",     "intermediate",
        "vocab_size",  "padding",       "seq_len",     "positions", "doc_stride",
        "windows",     "labels",        "lengths",     "gelu",      "vocab",
        "cache",       "length_min",    "length_mean", "length_sd", "skip_bad_answers",
        "predictions", "null_threshold"
    };

    for (size_t i = 0; !bert && i < sizeof of_bert / sizeof *of_bert; i++)
        check_absent(doc, of_bert[i], errs, "model rnn has no %s", of_bert[i]);
}

/* The same for those of synthetic data. */
static void check_lengths(const struct wk_config *c, const struct hg_json_doc *doc,
                          struct hg_errs *errs)
{
    static const char *const keys[] = { "lengths", "length_min", "length_mean", "length_sd" };
    bool normal = strcmp(c->lengths, "normal") == 0 || strcmp(c->lengths, "lognormal") == 0;

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(c->dataset, "synthetic") != 0)
            check_absent(doc, keys[i], errs, "dataset %s has its own lengths: no %s", c->dataset,
                         keys[i]);
        else if (i > 1 ? !normal : i == 1 && strcmp(c->lengths, "fixed") == 0)
            check_absent(doc, keys[i], errs, "lengths %s has no %s", c->lengths, keys[i]);
    }
}

/* Options of other strategies are rejected. */
static void check_options(const struct wk_config *c, const struct hg_json_doc *doc,
                          struct hg_errs *errs)
{
    char pointer[64];
    const char *key;
    json_t *value;

    json_object_foreach(doc->root, key, value) {
        if (wk_strategy_has_option(c->strategy, key))
            continue;
        snprintf(pointer, sizeof pointer, "/%.60s", key);
        hg_json_error_key(doc, pointer, errs, "strategy %s has no %s", c->strategy, key);
    }
}

/* More of something than the strategy can use. */
static void check_limit(const struct hg_json_doc *doc, const char *key, const char *strategy,
                        long long n, int limit, const char *what, struct hg_errs *errs)
{
    char pointer[64];

    if (!limit || n <= limit)
        return;
    snprintf(pointer, sizeof pointer, "/%s", key);
    hg_json_error(doc, pointer, errs, "strategy %s runs on at most %d %s%s, %lld requested",
                  strategy, limit, what, limit == 1 ? "" : "s", n);
}

/* Where the cell runs, before resources are requested. */
static void check_limits(const struct wk_config *c, const struct hg_json_doc *doc,
                         struct hg_errs *errs)
{
    const struct wk_strategy_limits *limits = wk_strategy_find(c->strategy);
    long long nodes = c->nodes ? c->nodes : 1, tasks = nodes * c->tasks_per_node;
    long long gpus = json_integer_value(json_object_get(doc->root, "gpus_per_node"));

    if (!limits)
        return;
    check_limit(doc, "nodes", limits->name, nodes, limits->max_nodes, "node", errs);
    check_limit(doc, "tasks_per_node", limits->name, tasks, limits->max_tasks, "task", errs);
    check_limit(doc, "gpus_per_node", limits->name, nodes * gpus, limits->max_devices, "device",
                errs);
    if (gpus > 0 && c->dp_devices > gpus)
        hg_json_error(doc, "/dp_devices", errs,
                      "%lld devices requested, the cell has %lld GPU%s a node", c->dp_devices, gpus,
                      gpus == 1 ? "" : "s");
}

/* Only memory limits how much synthetic data is made. */
static void check_synthetic(const struct wk_config *c, const struct hg_json_doc *doc,
                            struct hg_errs *errs)
{
    static const char wrong[] = "%lld synthetic samples requested; allowed: 1 to %d";

    if (strcmp(c->dataset, "synthetic") != 0)
        return;
    if (c->samples > WK_SYNTHETIC_MAX)
        hg_json_error(doc, "/samples", errs, wrong, c->samples, WK_SYNTHETIC_MAX);
    if (c->test_samples > WK_SYNTHETIC_MAX)
        hg_json_error(doc, "/test_samples", errs, wrong, c->test_samples, WK_SYNTHETIC_MAX);
}

/* "" would be the root folder, or a file in it. */
static void check_paths(const struct hg_json_doc *doc, struct hg_errs *errs)
{
    static const char *const keys[] = { "checkpoint", "cache",       "data",
                                        "vocab",      "predictions", "init" };
    char pointer[64];

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *path = json_string_value(json_object_get(doc->root, keys[i]));

        snprintf(pointer, sizeof pointer, "/%s", keys[i]);
        if (path && !*path)
            hg_err_hint(hg_json_error(doc, pointer, errs, "an empty text is not a path"),
                        "leave %s out, or set it to null", keys[i]);
    }
}

static void check_names(const struct wk_config *c, const struct hg_json_doc *doc,
                        struct hg_errs *errs)
{
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    const struct wk_model_kind *model = wk_model_get(c->model, err);
    enum wk_precision precision;

    check_name(doc, "model", model, err, errs);
    wk_model_free(model);
    check_name(doc, "dataset", wk_qa_known(c->dataset) || wk_dataset_known(c->dataset, err), err,
               errs);
    check_name(doc, "strategy", wk_strategy_get(c->strategy, 1, err), err, errs);
    check_name(doc, "backend", wk_backend_get(c->backend, err), err, errs);
    check_name(doc, "precision", wk_precision_find(c->precision, &precision, err) == 0, err, errs);
    check_name(doc, "optimizer", wk_optim_get(c->optimizer, err), err, errs);
}

static bool is_bert(const json_t *root)
{
    const char *model = json_string_value(json_object_get(root, "model"));

    return model && strncmp(model, "bert", 4) == 0;
}

static bool is_field(const char *name)
{
    for (const struct hg_field *f = fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return true;
    return false;
}

/* The rest of the keys say where a cell runs and how its job is requested; hpcgrid has acted on them. */
static void decode_fields(const struct hg_json_doc *doc, struct wk_config *c, struct hg_errs *errs)
{
    json_t *mine = json_copy(doc->root);

    for (int i = 0; i < HG_KEY_COUNT; i++)
        if (!is_field(hg_keys[i].name))
            json_object_del(mine, hg_keys[i].name);
    hg_json_decode(doc, mine, "", fields, true, c, errs);
    json_decref(mine);
}

static int decode(const struct hg_json_doc *doc, struct wk_config *c, struct hg_errs *errs)
{
    bool bert = is_bert(doc->root);

    set_defaults(c, bert);
    if (json_is_object(doc->root))
        drop_nulls(doc->root);
    c->given = json_incref(doc->root);
    decode_fields(doc, c, errs);
    finish_defaults(c);
    choose_options(c, doc->root);
    check_paths(doc, errs);
    check_names(c, doc, errs);
    check_words(c, doc, errs);
    check_foreign(bert, doc, errs);
    check_options(c, doc, errs);
    check_limits(c, doc, errs);
    check_synthetic(c, doc, errs);
    if (bert)
        check_lengths(c, doc, errs);
    if (!c->checkpoint)
        check_absent(doc, "checkpoint_shards", errs, "checkpoint_shards requires a checkpoint");
    if (!c->eval || strcmp(c->dataset, "synthetic") == 0)
        check_absent(doc, "predictions", errs,
                     "predictions require an evaluation of real questions");
    if (!c->eval || strcmp(c->dataset, "squad-v2.0") != 0)
        check_absent(doc, "null_threshold", errs,
                     "null_threshold requires an evaluation of squad-v2.0");
    return errs->n ? -1 : 0;
}

int wk_config_load(const char *path, struct wk_config *c, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    int rc;

    *c = (struct wk_config){ 0 };
    if (hg_json_load(path, &doc, err) < 0)
        return hg_errs_add(errs, err);
    rc = decode(&doc, c, errs);
    hg_json_doc_done(&doc);
    return rc;
}

int wk_config_decode(const json_t *cell, struct wk_config *c, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err *err = &(struct hg_err)HG_ERR_INIT;
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    *c = (struct wk_config){ 0 };
    hg_json_dump(cell, HG_JSON_COMPACT, &text);
    rc = hg_json_parse("cell", hg_buf_str(&text), text.len, &doc, err);
    hg_buf_done(&text);
    if (rc < 0)
        return hg_errs_add(errs, err);
    rc = decode(&doc, c, errs);
    hg_json_doc_done(&doc);
    return rc;
}

/* NULL where there is no value. */
static json_t *encode_field(const struct hg_field *f, const struct wk_config *c)
{
    const void *at = (const char *)c + f->offset;

    if (f->flags & HG_J_IGNORED)
        return NULL;
    switch (f->kind) {
    case HG_J_INT:
        return json_integer(*(const long long *)at);
    case HG_J_REAL:
        return hg_json_number(*(const double *)at);
    case HG_J_BOOL:
        return json_boolean(*(const bool *)at);
    case HG_J_STRING:
        return *(char *const *)at ? hg_json_text(*(char *const *)at) : NULL;
    default:
        return NULL;
    }
}

json_t *wk_config_encode(const struct wk_config *c)
{
    json_t *o = json_object(), *value;

    for (const struct hg_field *f = fields; f->name; f++) {
        value = encode_field(f, c);
        if (value)
            json_object_set_new(o, f->name, value);
    }
    return o;
}

int wk_config_devices(const struct wk_config *c)
{
    json_int_t gpus = json_integer_value(json_object_get(c->given, "gpus_per_node"));

    if (strcmp(c->strategy, "dp") != 0)
        return 1;
    return c->dp_devices ? (int)c->dp_devices : gpus > 0 ? (int)gpus : 1;
}

void wk_config_done(struct wk_config *c)
{
    hg_json_release(fields, c);
    json_decref(c->given);
    c->given = NULL;
}

/* ---- Help ---- */

/* The table again: a section's head, or a parameter. */
static const struct entry {
    const char *section, *text, *param;
} entries[] = {
#define HG_WORKER_SECTION(word_, title_) { word_, title_, NULL },
#define HG_WORKER_PARAM(kind_, name_, min_, max_, doc_) { NULL, doc_, #name_ },
#include "contract/worker_params.def"
#undef HG_WORKER_PARAM
};
#define N_ENTRIES (sizeof entries / sizeof *entries)
#define HELP_COLUMNS 80
#define HELP_INDENT 13

void wk_config_overview(struct hg_buf *out)
{
    int column = 0;

    for (const struct entry *e = entries; e < entries + N_ENTRIES; e++) {
        int n = (int)strlen(e->section ? e->section : e->param);

        if (e->section) {
            hg_buf_printf(out, "%s  %-*s", column ? "\n" : "", HELP_INDENT - 2, e->section);
            column = HELP_INDENT;
            continue;
        }
        if (column + n >= HELP_COLUMNS) {
            hg_buf_printf(out, "\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        }
        hg_buf_printf(out, "%s%s", column > HELP_INDENT ? " " : "", e->param);
        column += n + (column > HELP_INDENT);
    }
    hg_buf_puts(out, "\n");
}

static int unknown_section(const char *section, struct hg_err *err)
{
    const char *names[N_ENTRIES];
    size_t n = 0;

    for (const struct entry *e = entries; e < entries + N_ENTRIES; e++)
        if (e->section)
            names[n++] = e->section;
    names[n++] = "all";
    hg_err_set(err, HG_E_USAGE, "train: unknown section \"%s\"", section);
    hg_text_suggest(err, section, names, n);
    return -1;
}

int wk_config_help(const char *section, struct hg_buf *out, struct hg_err *err)
{
    bool all = strcmp(section, "all") == 0, here = false, found = false;

    for (const struct entry *e = entries; e < entries + N_ENTRIES; e++) {
        if (e->section)
            here = all || strcmp(section, e->section) == 0;
        if (here && e->section)
            hg_buf_printf(out, "%s%s: %s\n", found ? "\n" : "", e->section, e->text);
        else if (here)
            hg_buf_printf(out, "  %-16s %s\n", e->param, e->text);
        found |= here;
    }
    return found ? 0 : unknown_section(section, err);
}
