/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker features: what a model reads of a data set: how many sequences, how long. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "data/features_cache.h"
#include "data/features_stats.h"

static const char *data, *vocab, *cache, *windows, *labels;
static long max_length = 384, stride = 128, questions;
static bool json, dump, skip;

/* ---- Output ---- */

static json_t *encode_lengths(const struct wk_length_stats *s)
{
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "n", (json_int_t)s->n, "mean",
                     s->mean, "median", s->median, "p90", s->p90, "p95", s->p95, "p99", s->p99,
                     "min", (json_int_t)s->min, "max", (json_int_t)s->max);
}

static json_t *encode(const struct wk_features *f, const struct wk_feature_options *o,
                      const struct wk_feature_stats *s)
{
    return json_pack(
        "{s:I, s:I, s:I, s:s, s:I, s:I, s:s, s:b, s:o, s:o, s:o, s:{s:f, s:f, s:f}, s:f, s:f, "
        "s:{s:f, s:f, s:f}}",
        "features", (json_int_t)f->n, "questions", (json_int_t)f->n_questions, "labelled",
        (json_int_t)s->labelled, "windows", wk_windows_names[o->windows], "max_length",
        (json_int_t)o->max_length, "stride", (json_int_t)o->stride, "labels",
        wk_labels_names[o->labels], "cached", (int)f->cached, "length",
        encode_lengths(&s->features), "context_length", encode_lengths(&s->windows),
        "question_length", encode_lengths(&s->questions), "at_most", "128", s->below_128, "192",
        s->below_192, "256", s->below_256, "fill", s->fill, "square_fill", s->square_fill,
        "batch_fill", "8", s->batch_fill[0], "16", s->batch_fill[1], "32", s->batch_fill[2]);
}

static void print_lengths(const char *what, const struct wk_length_stats *s, struct hg_buf *out)
{
    hg_buf_printf(out, "%-18s %8zu %7.1f %7.1f %7.1f %7.1f %7.1f %5u\n", what, s->n, s->mean,
                  s->median, s->p90, s->p95, s->p99, s->max);
}

static void print_table(const struct wk_features *f, const struct wk_feature_options *o,
                        const struct wk_feature_stats *s, struct hg_buf *out)
{
    hg_buf_printf(out, "windows %s, at most %u tokens, stride %u, labels %s\n\n",
                  wk_windows_names[o->windows], o->max_length, o->stride,
                  wk_labels_names[o->labels]);
    hg_buf_printf(out, "%-18s %8s %7s %7s %7s %7s %7s %5s\n", "tokens of", "count", "mean",
                  "median", "p90", "p95", "p99", "max");
    print_lengths("features", &s->features, out);
    print_lengths("  text in them", &s->windows, out);
    print_lengths("questions", &s->questions, out);
    hg_buf_printf(out, "\nwith an answer      %zu of %zu features\n", s->labelled, f->n);
    hg_buf_printf(out, "at most 128 tokens  %.1f%%, 192: %.1f%%, 256: %.1f%%\n", 100 * s->below_128,
                  100 * s->below_192, 100 * s->below_256);
    hg_buf_printf(out, "padded to %-9u %.1f%% real tokens; attention %.1f%%\n", o->max_length,
                  100 * s->fill, 100 * s->square_fill);
    hg_buf_printf(out, "padded to longest   %.1f%% in batches of 8, 16: %.1f%%, 32: %.1f%%\n",
                  100 * s->batch_fill[0], 100 * s->batch_fill[1], 100 * s->batch_fill[2]);
}

static void dump_feature(const struct wk_features *f, size_t i, int32_t *ids, int32_t *types,
                         struct hg_buf *out)
{
    const struct wk_feature *item = &f->items[i];
    uint32_t n = wk_feature_length(f, i);

    wk_feature_write(f, i, ids, types);
    hg_buf_printf(out, "{\"question\": %u, \"context\": %u, \"start\": %u, \"end\": %u, \"ids\": [",
                  item->question, wk_feature_context(f, i), item->start, item->end);
    for (uint32_t k = 0; k < n; k++)
        hg_buf_printf(out, k ? ", %d" : "%d", ids[k]);
    hg_buf_puts(out, "], \"offsets\": [");
    for (uint32_t k = 0; k < item->n; k++)
        hg_buf_printf(out, k ? ", [%u, %u]" : "[%u, %u]", f->starts[item->at + k],
                      f->ends[item->at + k]);
    hg_buf_puts(out, "]}\n");
}

static int dump_all(const struct wk_features *f, struct hg_err *err)
{
    static int32_t ids[WK_FEATURE_LENGTH_MAX], types[WK_FEATURE_LENGTH_MAX];
    struct hg_buf out = HG_BUF_INIT;
    int rc = 0;

    for (size_t i = 0; i < f->n && rc == 0; i++) {
        hg_buf_clear(&out);
        dump_feature(f, i, ids, types, &out);
        if (fwrite(out.data, 1, out.len, stdout) != out.len)
            rc = hg_err_sys(err, "cannot write the output");
    }
    hg_buf_done(&out);
    return rc;
}

static int print_stats(const struct wk_features *f, const struct wk_feature_options *o,
                       struct hg_err *err)
{
    struct hg_buf out = HG_BUF_INIT;
    struct wk_feature_stats stats;

    wk_features_stats(f, &stats);
    if (json)
        return wk_cmd_print_json(encode(f, o, &stats), HG_JSON_INDENT, err);
    print_table(f, o, &stats, &out);
    return wk_cmd_print(&out, err);
}

/* ---- Progress: on a terminal only, and only when it takes a while ---- */

static double started_s;
static bool shown;

static void show_progress(void *context, size_t done, size_t total)
{
    (void)context;
    if (!isatty(STDERR_FILENO) || (!shown && hg_clock_mono_s() - started_s < 1))
        return;
    fprintf(stderr, "\rfeatures: %zu of %zu questions%s", done, total, done == total ? "\n" : "");
    shown = true;
}

static int read_options(struct wk_feature_options *o, struct hg_err *err)
{
    int w = WK_WINDOWS_OVERLAP, l = WK_LABELS_TRUE;

    if ((windows && (w = wk_feature_word(wk_windows_names, windows, "windows", err)) < 0) ||
        (labels && (l = wk_feature_word(wk_labels_names, labels, "labels", err)) < 0))
        return -1;
    o->max_length = (uint32_t)max_length;
    o->stride = (uint32_t)stride;
    o->windows = (enum wk_windows)w;
    o->labels = (enum wk_labels)l;
    o->questions = (size_t)questions;
    o->skip_bad_answers = skip;
    o->length_key = "--max-length";
    o->stride_key = "--stride";
    return 0;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const struct wk_progress progress = { show_progress, NULL };
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_features f;
    int rc;

    (void)argc;
    (void)argv;
    started_s = hg_clock_mono_s();
    if (!data || !vocab)
        return wk_cmd_misused(&wk_cmd_features, "--data and --vocab are needed", errs);
    if (read_options(&o, &err) < 0)
        return hg_errs_add(errs, &err);
    if (wk_features_open(data, vocab, cache, &o, &progress, &f, errs) < 0)
        return -1;
    hg_debug("features %s in %.3f s", f.cached ? "read" : "made", hg_clock_mono_s() - started_s);
    rc = dump ? dump_all(&f, &err) : print_stats(&f, &o, &err);
    if (rc < 0)
        hg_errs_add(errs, &err);
    wk_features_done(&f);
    return rc;
}

const struct wk_cmd wk_cmd_features = {
    .name = "features",
    .summary = "sequences of a data set: how many, how long",
    .usage = "--data FILE --vocab FILE [OPTIONS]",
    .about = "Cut question answering data into the sequences a BERT model reads, and print how\n"
             "many there are and how long. A text too long for one sequence becomes several\n"
             "windows.\n",
    .opts =
        (const struct hg_opt[]){
            { HG_OPT_STRING, 0, "data", &data, "FILE", "SQuAD v1.1 or v2.0, plain or .gz", 0, 0 },
            { HG_OPT_STRING, 0, "vocab", &vocab, "FILE", "the vocabulary, one token a line", 0, 0 },
            { HG_OPT_INT, 0, "max-length", &max_length, "N", "tokens of a sequence at most (384)",
              WK_FEATURE_LENGTH_MIN, WK_FEATURE_LENGTH_MAX },
            { HG_OPT_INT, 0, "stride", &stride, "N",
              "tokens by which windows overlap or advance (128)", 0, WK_FEATURE_LENGTH_MAX },
            { HG_OPT_STRING, 0, "windows", &windows, "WORD",
              "overlap (default, Hugging Face) or advance (Google)", 0, 0 },
            { HG_OPT_STRING, 0, "labels", &labels, "WORD", "true (default) or dummy", 0, 0 },
            { HG_OPT_INT, 0, "questions", &questions, "N", "only the first N (all)", 0,
              4294967295.0 },
            { HG_OPT_FLAG, 0, "skip-bad-answers", &skip, NULL,
              "leave out answers that are not at their offset", 0, 0 },
            { HG_OPT_STRING, 0, "cache", &cache, "DIR", "keep and find ready features here", 0, 0 },
            { HG_OPT_FLAG, 0, "dump", &dump, NULL, "print every feature, one JSON object a line", 0,
              0 },
            { HG_OPT_FLAG, 0, "json", &json, NULL, "print the figures as JSON", 0, 0 },
            { 0 },
        },
    .run = run,
};
