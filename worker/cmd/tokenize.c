/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-worker tokenize: texts in, WordPiece ids out; for holding other tokenizers against this
 * one, and for pipes. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "cmd/cmd.h"
#include "data/features.h"
#include "data/wordpiece.h"

static const char *vocab, *rules;
static bool offsets;

static const char *const rules_names[] = { "hf", "google", NULL };

static void print_ids(const struct wk_tokens *t, struct hg_buf *out)
{
    hg_buf_puts(out, "[");
    for (size_t i = 0; i < t->n; i++)
        hg_buf_printf(out, i ? ", %u" : "%u", t->ids[i]);
    hg_buf_puts(out, "]");
}

static void print_tokens(const struct wk_tokens *t, struct hg_buf *out)
{
    if (!offsets) {
        print_ids(t, out);
        hg_buf_puts(out, "\n");
        return;
    }
    hg_buf_puts(out, "{\"ids\": ");
    print_ids(t, out);
    hg_buf_puts(out, ", \"offsets\": [");
    for (size_t i = 0; i < t->n; i++)
        hg_buf_printf(out, i ? ", [%u, %u]" : "[%u, %u]", t->starts[i], t->ends[i]);
    hg_buf_puts(out, "]}\n");
}

/* One line in, one line appended to out. */
static int tokenize_line(const struct wk_wordpiece *wp, enum wk_wordpiece_rules r, const char *line,
                         size_t len, struct wk_tokens *t, struct hg_buf *out, struct hg_err *err)
{
    json_error_t je;
    json_t *text = json_loadb(line, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
    int rc = -1;

    t->n = 0;
    if (!text)
        hg_err_set(err, HG_E_INPUT, "not a JSON string: %s", je.text);
    else if (!json_is_string(text))
        hg_err_set(err, HG_E_INPUT, "expected a JSON string");
    else
        rc = wk_wordpiece_encode(wp, r, json_string_value(text), json_string_length(text), t, err);
    json_decref(text);
    if (rc == 0)
        print_tokens(t, out);
    return rc;
}

static int tokenize_all(const struct wk_wordpiece *wp, enum wk_wordpiece_rules r,
                        struct hg_err *err)
{
    struct wk_tokens tokens = WK_TOKENS_INIT;
    struct hg_buf out = HG_BUF_INIT;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int rc = 0;

    for (int number = 1; rc == 0 && (n = getline(&line, &cap, stdin)) >= 0; number++) {
        hg_buf_clear(&out);
        rc = tokenize_line(wp, r, line, (size_t)n, &tokens, &out, err);
        if (rc < 0 && err->line == 0) {
            hg_err_at(err, "standard input", NULL);
            err->line = number;
            err->column = 1;
        }
        if (rc == 0 && fwrite(out.data, 1, out.len, stdout) != out.len)
            rc = hg_err_sys(err, "cannot write the output");
    }
    if (rc == 0 && ferror(stdin))
        rc = hg_err_sys(err, "cannot read standard input");
    if (fflush(stdout) != 0 && rc == 0)
        rc = hg_err_sys(err, "cannot write the output");
    free(line);
    hg_buf_done(&out);
    wk_tokens_done(&tokens);
    return rc;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct hg_err *err;
    struct wk_wordpiece *wp;
    int r = WK_WORDPIECE_HF, rc;

    (void)argc;
    (void)argv;
    if (!vocab)
        return wk_cmd_misused(&wk_cmd_tokenize, "--vocab is missing", errs);
    err = hg_errs_next(errs);
    if (rules && (r = wk_feature_word(rules_names, rules, "rules", err)) < 0)
        return -1;
    wp = wk_wordpiece_load(vocab, err);
    if (!wp)
        return -1;
    rc = tokenize_all(wp, (enum wk_wordpiece_rules)r, err);
    wk_wordpiece_free(wp);
    return rc;
}

const struct wk_cmd wk_cmd_tokenize = {
    .name = "tokenize",
    .summary = "WordPiece ids of texts, one JSON string a line",
    .usage = "--vocab FILE [OPTIONS] < TEXTS",
    .about = "Cut texts into the WordPiece tokens of uncased BERT. Each line of standard input\n"
             "is a JSON string, each line of output the list of its ids, without [CLS] and\n"
             "[SEP]. Offsets are pairs [start, end) counted in Unicode code points of the text.\n",
    .opts =
        (const struct hg_opt[]){
            { HG_OPT_STRING, 0, "vocab", &vocab, "FILE", "the vocabulary, one token a line", 0, 0 },
            { HG_OPT_STRING, 0, "rules", &rules, "WORD",
              "hf (default) or google: who decides odd cases", 0, 0 },
            { HG_OPT_FLAG, 0, "offsets", &offsets, NULL, "print objects with ids and offsets", 0,
              0 },
            { 0 },
        },
    .run = run,
};
