/* SPDX-License-Identifier: Apache-2.0 */
#include "train/qa.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "data/answers.h"
#include "data/features_cache.h"
#include "data/squad_eval.h"
#include "data/synthetic.h"
#include "data/wordpiece.h"
#include "strategies/strategy.h"

/* ---- Where the files are ---- */

#define SYNTHETIC 10000 /* sequences where the cell does not say how many */

static const struct set {
    const char *name, *train, *test;
    bool ships;
    long long questions; /* for training */
} sets[] = {
    { "squad-v1.1", "train-v1.1.json", "dev-v1.1.json", false, 87599 },
    { "squad-v2.0", "train-v2.0.json", "dev-v2.0.json", false, 130319 },
    { "squad-slice", "train-v1.1-slice.json", "dev-v1.1-slice.json", true, 128 },
    { "synthetic", NULL, NULL, false, SYNTHETIC },
};

static const struct set *find_set(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    return NULL;
}

bool wk_qa_known(const char *name)
{
    return find_set(name);
}

/* A path in the shipped data: next to the installed program, or in the source tree that built it. */
static char *shipped(const char *name)
{
    char *self = hg_fs_self(NULL), *bin = self ? hg_fs_dirname(self) : NULL;
    char *path = bin ? hg_str_printf("%s/../share/hpcgrid/%s", bin, name) : NULL;

    free(self);
    free(bin);
    if (path && !hg_fs_exists(path)) {
        free(path);
        path = hg_str_printf("%s/%s", WK_SHIPPED_DATA, name);
    }
    return path;
}

static char *choose_folder(const struct set *set, const struct wk_config *c, struct hg_err *err)
{
    const char *root = getenv("HPCGRID_DATA");
    char *folder;

    if (c->data)
        folder = hg_strdup(c->data);
    else if (set->ships)
        folder = shipped("squad");
    else if (root && *root)
        folder = hg_fs_join(root, "squad");
    else {
        hg_err_set(err, HG_E_INPUT, "dataset %s: no folder is given for its files", set->name);
        hg_err_hint(err,
                    "set \"data\" to the folder that holds %s and %s (plain or .gz), or "
                    "HPCGRID_DATA to one with them in squad/; \"squad-slice\" ships with hpcgrid",
                    set->train, set->test);
        return NULL;
    }
    return folder;
}

/* folder/name or folder/name.gz, whichever exists; not a pipe, as several ranks open it. Yours. */
static char *find_file(const char *folder, const char *name, struct hg_err *err)
{
    char *path = hg_fs_join(folder, name);

    if (!hg_fs_exists(path)) {
        free(path);
        path = hg_str_printf("%s/%s.gz", folder, name);
    }
    if (hg_fs_exists(path)) {
        if (hg_fs_check_file(path, err) == 0)
            return path;
    } else {
        hg_err_set(err, HG_E_INPUT, "no file %s/%s (nor with .gz)", folder, name);
        hg_err_hint(err, "download it from the SQuAD web site, or train on \"squad-slice\", which "
                         "ships with hpcgrid");
    }
    free(path);
    return NULL;
}

static char *find_vocab(const struct wk_config *c, const char *folder)
{
    char *path = c->vocab ? hg_strdup(c->vocab) : hg_fs_join(folder, "vocab.txt");

    if (!c->vocab && !hg_fs_exists(path)) {
        free(path);
        path = shipped("vocab/bert-base-uncased-vocab.txt");
    }
    return path;
}

static int check_vocab(const char *path, long long vocab_size, struct hg_err *err)
{
    struct wk_wordpiece *wp =
        hg_fs_check_file(path, err) == 0 ? wk_wordpiece_load(path, err) : NULL;
    int rc = wp ? wk_wordpiece_check_size(wp, (size_t)vocab_size, err) : -1;

    if (wp && rc < 0)
        hg_err_at(err, path, "");
    wk_wordpiece_free(wp);
    return rc;
}

/* ---- Features ---- */

/* The first of several errors, and how many there are. */
static int first_error(struct hg_errs *errs, struct hg_err *err)
{
    hg_errs_sort(errs);
    if (err && errs->n) {
        *err = errs->items[0];
        if (errs->n > 1)
            hg_err_hint(err, "%zu more problems in the same file", errs->n - 1);
    }
    hg_errs_done(errs);
    return -1;
}

/* Progress of long work, every few seconds. */
struct watch {
    const char *path;
    double said_s;
};

static void report(void *context, size_t done, size_t total)
{
    struct watch *w = context;
    double now = hg_clock_mono_s();

    if (now - w->said_s < 5)
        return;
    w->said_s = now;
    hg_info("%s: %zu of %zu questions tokenised", w->path, done, total);
}

static int open_features(const struct wk_config *c, const char *path, const char *vocab,
                         long long questions, struct wk_features *out, struct hg_err *err)
{
    struct wk_feature_options o = { .max_length = (uint32_t)c->seq_len,
                                    .stride = (uint32_t)c->doc_stride,
                                    .questions = (size_t)questions,
                                    .skip_bad_answers = c->skip_bad_answers,
                                    .length_key = "seq_len",
                                    .stride_key = "doc_stride" };
    struct watch watch = { path, hg_clock_mono_s() };
    struct wk_progress progress = { report, &watch };
    struct hg_errs errs = HG_ERRS_INIT;

    o.windows = (enum wk_windows)wk_feature_word(wk_windows_names, c->windows, "windows", err);
    o.labels = (enum wk_labels)wk_feature_word(wk_labels_names, c->labels, "labels", err);
    if (wk_features_open(path, vocab, c->cache, &o, &progress, out, &errs) < 0)
        return first_error(&errs, err);
    hg_errs_done(&errs);
    if (out->n == 0)
        return hg_err_set(err, HG_E_INPUT, "%s contains nothing to train on", path);
    return 0;
}

static int open_texts(struct wk_qa *qa, const struct wk_config *c, const char *path,
                      struct hg_err *err)
{
    const struct wk_squad_options options = { .skip_bad_answers = c->skip_bad_answers };
    size_t questions = (size_t)c->test_samples;
    struct hg_errs errs = HG_ERRS_INIT;

    if (wk_squad_load(path, &options, &qa->squad, &errs) < 0)
        return first_error(&errs, err);
    hg_errs_done(&errs);
    if (questions && questions < qa->squad.n_questions)
        qa->squad.n_questions = questions;
    qa->scored = true;
    return 0;
}

static int open_files(struct wk_qa *qa, const struct set *set, const struct wk_config *c,
                      long long vocab_size, struct hg_err *err)
{
    char *folder = choose_folder(set, c, err), *train = NULL, *test = NULL, *vocab = NULL;
    int rc = -1;

    if (!folder || !(train = find_file(folder, set->train, err)) ||
        check_vocab(vocab = find_vocab(c, folder), vocab_size, err) < 0 ||
        open_features(c, train, vocab, c->samples, &qa->train, err) < 0)
        goto out;
    if (c->eval && (!(test = find_file(folder, set->test, err)) ||
                    open_features(c, test, vocab, c->test_samples, &qa->test, err) < 0 ||
                    open_texts(qa, c, test, err) < 0))
        goto out;
    rc = 0;
out:
    free(folder);
    free(train);
    free(test);
    free(vocab);
    return rc;
}

static int make_synthetic(const struct wk_config *c, long long vocab_size, long long n,
                          uint64_t seed, struct wk_features *out, struct hg_err *err)
{
    struct wk_synthetic_options o = WK_SYNTHETIC_OPTIONS_INIT;

    o.n = (size_t)n;
    o.seed = seed;
    o.max_length = (uint32_t)c->seq_len;
    o.min_length = (uint32_t)(c->length_min < c->seq_len ? c->length_min : c->seq_len);
    o.mean = c->length_mean;
    o.sd = c->length_sd;
    o.vocab_size = (uint32_t)vocab_size;
    o.lengths = (enum wk_lengths)wk_feature_word(wk_lengths_names, c->lengths, "lengths", err);
    o.labels = (enum wk_labels)wk_feature_word(wk_labels_names, c->labels, "labels", err);
    return wk_synthetic_build(&o, out, err);
}

/* Over what a model reads: equal hashes mean the same training. */
static void hash_features(const struct wk_features *f, char out[static 33])
{
    char text[4 * 32 + 1];

    hg_hash128_hex(f->items, f->n * sizeof *f->items, text);
    hg_hash128_hex(f->questions, f->n_questions * sizeof *f->questions, text + 32);
    hg_hash128_hex(f->question_ids, f->n_question_ids * sizeof *f->question_ids, text + 64);
    hg_hash128_hex(f->context_ids, f->n_context * sizeof *f->context_ids, text + 96);
    hg_hash128_hex(text, 4 * 32, out);
}

int wk_qa_open(struct wk_qa *qa, const struct wk_config *c, long long vocab_size,
               long long positions, struct hg_err *err)
{
    const struct set *set = find_set(c->dataset);

    *qa = (struct wk_qa){ .pad_to = strcmp(c->padding, "packed") == 0 ? 0 : (int)c->seq_len,
                          .predictions = c->predictions,
                          .null_threshold = c->null_threshold };
    snprintf(qa->name, sizeof qa->name, "%s", c->dataset);
    if (!set)
        return hg_err_set(err, HG_E_INPUT, "model %s does not read data set %s", c->model,
                          c->dataset);
    if (c->seq_len > positions)
        return hg_err_set(err, HG_E_INPUT,
                          "seq_len is %lld, but model %s reads at most %lld tokens (positions)",
                          c->seq_len, c->model, positions);
    if (set->train) {
        if (open_files(qa, set, c, vocab_size, err) < 0)
            return -1;
    } else if (make_synthetic(c, vocab_size, c->samples ? c->samples : SYNTHETIC, (uint64_t)c->seed,
                              &qa->train, err) < 0 ||
               (c->eval && make_synthetic(c, vocab_size, c->test_samples ? c->test_samples : 1000,
                                          (uint64_t)c->seed + 1, &qa->test, err) < 0)) {
        return -1;
    }
    hash_features(&qa->train, qa->hash);
    return 0;
}

int wk_qa_tokens(const struct wk_qa *qa, const struct wk_features *f, int rows)
{
    return (int)wk_tokens_most(f, rows, qa->pad_to);
}

#define QUESTION_TOKENS 512 /* of all windows of a question, more than they are on average */

void wk_qa_imagine(struct wk_qa *qa, const struct wk_config *c)
{
    const struct set *set = find_set(c->dataset);
    long long questions = set ? set->questions : 0;
    size_t each = c->seq_len > QUESTION_TOKENS ? (size_t)c->seq_len : QUESTION_TOKENS;

    if (c->samples && (c->samples < questions || (set && !set->train)))
        questions = c->samples;
    qa->pad_to = (int)c->seq_len;
    qa->train.n = qa->test.n = INT_MAX;
    qa->train.n_questions = (size_t)questions;
    qa->train.n_context = (size_t)questions * each;
}

int wk_qa_batches(struct wk_qa *qa, int rows, int test_rows, struct wk_dev *dev, struct hg_err *err)
{
    if (wk_token_batch_open(&qa->batch, rows, wk_qa_tokens(qa, &qa->train, rows), dev, err) < 0)
        return -1;
    if (dev->keeps_tokens && wk_token_source_open(&qa->source, &qa->train, dev, err) < 0)
        return -1;
    if (!test_rows)
        return 0;
    return wk_token_batch_open(&qa->test_batch, test_rows, wk_qa_tokens(qa, &qa->test, test_rows),
                               dev, err);
}

void wk_qa_batches_close(struct wk_qa *qa, struct wk_dev *dev)
{
    wk_token_batch_close(&qa->batch, dev);
    wk_token_batch_close(&qa->test_batch, dev);
    wk_token_source_close(&qa->source, dev);
}

void wk_qa_gather(struct wk_qa *qa, const int32_t *ids, int rows, struct wk_dev *dev)
{
    wk_token_batch_gather(&qa->batch, &qa->train, qa->source.tokens.data ? &qa->source : NULL, ids,
                          rows, qa->pad_to, dev);
}

void wk_qa_close(struct wk_qa *qa)
{
    wk_features_done(&qa->train);
    wk_features_done(&qa->test);
    wk_squad_done(&qa->squad);
    *qa = (struct wk_qa){ 0 };
}

/* ---- Evaluation ---- */

struct evaluation {
    struct wk_qa *qa;
    struct wk_model *model;
    const struct wk_pass *pass;
    struct wk_strategy *strategy;
    wk_qa_go_on *go_on;
    void *context;
    struct wk_answers *answers;
    struct wk_span sums;  /* (2) what score gives */
    wk_real *logits;      /* (rows, 2) of a batch */
    float *starts, *ends; /* (rows) of a sequence */
    double loss;
};

static int evaluation_open(struct evaluation *e, struct hg_err *err)
{
    struct wk_answer_options options = WK_ANSWER_OPTIONS_INIT;
    size_t rows = (size_t)e->qa->test_batch.tokens_max;

    options.null_threshold = e->qa->null_threshold;
    e->logits = hg_alloc(2 * rows * sizeof *e->logits);
    e->starts = hg_alloc(rows * sizeof *e->starts);
    e->ends = hg_alloc(rows * sizeof *e->ends);
    if (wk_dev_alloc(e->model->dev, WK_MEM_ACTIVATIONS, WK_REAL, 2, &e->sums, err) < 0)
        return -1;
    if (!e->qa->scored)
        return 0;
    e->answers = wk_answers_create(&e->qa->squad, &e->qa->test, &options, err);
    return e->answers ? 0 : -1;
}

static void evaluation_close(struct evaluation *e)
{
    wk_dev_free(e->model->dev, WK_MEM_ACTIVATIONS, &e->sums);
    wk_answers_free(e->answers);
    free(e->logits);
    free(e->starts);
    free(e->ends);
}

static void take_answers(struct evaluation *e, const int32_t *ids)
{
    const struct wk_token_batch *b = &e->qa->test_batch;

    for (int s = 0; e->answers && s < b->batch.packing.sequences; s++) {
        int first = b->first[s], n = b->first[s + 1] - first;

        for (int i = 0; i < n; i++) {
            e->starts[i] = (float)e->logits[2 * (first + i)];
            e->ends[i] = (float)e->logits[2 * (first + i) + 1];
        }
        wk_answers_add(e->answers, (size_t)ids[s], e->starts, e->ends, (size_t)n);
    }
}

static int eval_batch(struct evaluation *e, const int32_t *ids, int rows, struct hg_err *err)
{
    struct wk_dev *dev = e->model->dev;
    const struct wk_model_kind *kind = e->model->kind;
    struct wk_batch *batch = &e->qa->test_batch.batch;
    wk_real sums[2];

    if (e->go_on(e->context, err) < 0)
        return -1;
    wk_token_batch_gather(&e->qa->test_batch, &e->qa->test, NULL, ids, rows, e->qa->pad_to, dev);
    if (kind->forward(e->model, e->pass, batch, err) < 0)
        return -1;
    kind->score(e->model, e->pass, batch, e->sums);
    dev->backend->download(dev, sums, e->sums);
    dev->backend->download(
        dev, e->logits, wk_span_part(kind->outputs(e->model), 0, 2 * (size_t)batch->packing.rows));
    if (dev->backend->sync(dev, err) < 0)
        return -1;
    e->loss += (double)sums[0];
    take_answers(e, ids);
    return 0;
}

/* Passes of the rank that has the most features. */
static int passes_most(const struct wk_features *f, int world, int room)
{
    int most = 0;

    for (int rank = 0; rank < world; rank++) {
        int n = 0;

        for (size_t i = 0; i < f->n; i++)
            n += (int)(f->items[i].question % (uint32_t)world) == rank;
        most = n > most ? n : most;
    }
    return (most + room - 1) / room;
}

/* All features of this rank's questions. */
static int eval_features(struct evaluation *e, struct hg_err *err)
{
    const struct wk_comm *comm = e->strategy->comm;
    const struct wk_features *f = &e->qa->test;
    int room = e->qa->test_batch.rows_max, rows = 0, rc = 0;
    int left = passes_most(f, comm->world, room);
    int32_t *ids = hg_alloc((size_t)room * sizeof *ids);

    for (size_t i = 0; i < f->n && rc == 0; i++) {
        if ((int)(f->items[i].question % (uint32_t)comm->world) == comm->rank)
            ids[rows++] = (int32_t)i;
        if (rows == room || (i + 1 == f->n && rows)) {
            rc = eval_batch(e, ids, rows, err);
            rows = 0;
            left--;
        }
    }
    for (; left > 0 && rc == 0; left--)
        rc = e->go_on(e->context, err) < 0 ? -1 : wk_strategy_idle_pass(e->strategy, err);
    free(ids);
    return rc;
}

/* ---- Predictions ---- */

int wk_qa_prepare_predictions(const char *path, struct hg_err *err)
{
    char *folder = hg_fs_dirname(path);
    int rc = hg_fs_mkdirs(folder, 0755, err);

    if (rc == 0)
        rc = hg_fs_check_output(path, err);
    free(folder);
    return rc < 0 ? hg_err_wrap(err, "predictions") : 0;
}

/* This rank's answers as a list. */
static void encode_own(const struct wk_squad *squad, const char *const *texts,
                       const struct wk_comm *comm, struct hg_buf *out)
{
    json_t *list = json_array();

    for (size_t q = (size_t)comm->rank; q < squad->n_questions; q += (size_t)comm->world)
        json_array_append_new(list, json_string(texts[q] ? texts[q] : ""));
    hg_json_dump(list, HG_JSON_COMPACT, out);
    json_decref(list);
}

/* The lists of all ranks, `most` bytes each, as one object. */
static json_t *merge(const struct wk_squad *squad, const char *all, const uint64_t *lens,
                     uint64_t most, int world)
{
    json_t **lists = hg_alloc_zeroed((size_t)world, sizeof *lists), *object = json_object();

    for (int rank = 0; rank < world; rank++)
        lists[rank] = json_loadb(all + (uint64_t)rank * most, lens[rank], 0, NULL);
    for (size_t q = 0; q < squad->n_questions; q++)
        json_object_set(object, squad->questions[q].id,
                        json_array_get(lists[q % (size_t)world], q / (size_t)world));
    for (int rank = 0; rank < world; rank++)
        json_decref(lists[rank]);
    free(lists);
    return object;
}

/* Write {question id: text} in the order of the questions; rank 0 replaces the file as a whole, all ranks succeed or fail together.
 * Question q is rank q % world's, which has its text in texts[q] (NULL: no answer). */
static int save_predictions(const char *path, const struct wk_squad *squad,
                            const char *const *texts, struct wk_comm *comm, struct hg_err *err)
{
    struct hg_buf own = HG_BUF_INIT;
    uint64_t *lens = hg_alloc_zeroed((size_t)comm->world, sizeof *lens), most = 0;
    char *all = NULL;
    int rc = -1;

    encode_own(squad, texts, comm, &own);
    lens[comm->rank] = own.len;
    if (wk_comm_gather(comm, lens, sizeof *lens, err) < 0)
        goto out;
    for (int rank = 0; rank < comm->world; rank++)
        most = lens[rank] > most ? lens[rank] : most;
    all = hg_alloc_zeroed((size_t)comm->world, most);
    memcpy(all + (uint64_t)comm->rank * most, own.data, own.len);
    if (wk_comm_gather(comm, all, most, err) < 0)
        goto out;
    rc = 0;
    if (comm->rank == 0) {
        json_t *object = merge(squad, all, lens, most, comm->world);

        rc = hg_json_save(path, object, err);
        json_decref(object);
    }
    rc = wk_comm_agree(comm, rc, err);
out:
    hg_buf_done(&own);
    free(lens);
    free(all);
    return rc;
}

/* ---- Scores ---- */

/* Sums of this rank's scores: EM and F1 times their questions, and those questions. Questions of other ranks have no prediction
 * here; in v1.1 they count 0, in v2.0 not at all. */
static int score_answers(struct evaluation *e, struct wk_comm *comm, double sums[3],
                         struct hg_err *err)
{
    const struct wk_squad *squad = &e->qa->squad;
    const char **texts = hg_alloc_zeroed(squad->n_questions + 1, sizeof *texts);
    struct wk_squad_score score;
    int rc = 0;

    for (size_t q = (size_t)comm->rank; q < squad->n_questions; q += (size_t)comm->world)
        texts[q] = wk_answers_get(e->answers, q);
    wk_squad_score(squad, texts, &score);
    sums[0] = score.all.exact * (double)score.all.n;
    sums[1] = score.all.f1 * (double)score.all.n;
    sums[2] = squad->v2 ? (double)score.all.n : (double)score.all.n / comm->world;
    if (e->qa->predictions)
        rc = save_predictions(e->qa->predictions, squad, texts, comm, err);
    free(texts);
    return rc;
}

int wk_qa_eval(struct wk_qa *qa, struct wk_model *model, const struct wk_pass *pass,
               struct wk_strategy *strategy, wk_qa_go_on *go_on, void *context,
               struct wk_qa_score *out, struct hg_err *err)
{
    struct evaluation e = { .qa = qa,
                            .model = model,
                            .pass = pass,
                            .strategy = strategy,
                            .go_on = go_on,
                            .context = context };
    struct wk_comm *comm = strategy->comm;
    double sums[4] = { 0 };
    int rc = -1;

    if (evaluation_open(&e, err) < 0 || eval_features(&e, err) < 0 ||
        (e.answers && score_answers(&e, comm, sums, err) < 0))
        goto out;
    sums[3] = e.loss;
    if (wk_comm_sum(comm, sums, 4, err) < 0)
        goto out;
    *out = (struct wk_qa_score){ .loss = sums[3] / (double)qa->test.n,
                                 .features = (int)qa->test.n,
                                 .questions = (int)(sums[2] + 0.5) };
    if (sums[2] > 0) {
        out->exact = sums[0] / sums[2];
        out->f1 = sums[1] / sums[2];
    }
    rc = 0;
out:
    evaluation_close(&e);
    return rc;
}
