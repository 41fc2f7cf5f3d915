/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "data/features.h"
#include "data/features_block.h"
#include "data/gzfile.h"
#include "data/idx.h"
#include "data/squad.h"
#include "data/squad_eval.h"
#include "data/wordpiece.h"
#include "fuzz.h"
#include "models/models.h"
#include "train/config.h"
#include "train/safetensors.h"
#include "train/weights.h"

#define UNPACKED_MAX ((size_t)1 << 20)
#define LENGTH 16           /* tokens of a sequence */
#define FEATURES_HEADER 104 /* bytes; data/features_block.c */
#define FEATURES_LENGTH 100000

/* ---- Bytes ---- */

static void run_gzip(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf out = HG_BUF_INIT;

    if (wk_gzfile_unpack("fuzz", text, len, UNPACKED_MAX, &out, &err) == 0)
        hg_fuzz_expect(out.len <= (len > UNPACKED_MAX ? len : UNPACKED_MAX), "the limit holds");
    hg_buf_done(&out);
    hg_fuzz_errors(&errs, &err);
}

static void run_idx(const char *text, size_t len)
{
    const char *path = hg_fuzz_file(text, len);
    struct hg_errs errs = HG_ERRS_INIT;

    for (int n_dims = 1; n_dims <= 3; n_dims += 2) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_idx idx = { 0 };

        if (wk_idx_load(path, n_dims, &idx, &err) == 0)
            hg_fuzz_expect(idx.n && idx.n_dims == n_dims, "what is read is there");
        wk_idx_done(&idx);
        hg_errs_add(&errs, &err);
    }
    hg_fuzz_errors(&errs, NULL);
}

static void read_tensor(const struct wk_st *st, const struct wk_st_tensor *t, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    wk_real *values = t->n <= st->size ? malloc((t->n + 1) * sizeof *values) : NULL;
    char shape[128];

    wk_st_shape_format(t, shape);
    if (values)
        wk_st_read(st, t, values, &err);
    free(values);
    hg_errs_add(errs, &err);
}

static void run_safetensors(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_st st;

    if (wk_st_open(hg_fuzz_file(text, len), &st, &err) == 0) {
        for (size_t i = 0; i < st.n; i++)
            read_tensor(&st, &st.tensors[i], &errs);
        wk_st_metadata(&st, "format");
        wk_weights_in_parts(&st);
        wk_st_close(&st);
    }
    hg_errs_add(&errs, &err);
    err = (struct hg_err)HG_ERR_INIT;
    wk_weights_check(hg_fuzz_file(text, len), wk_models[0].fixed, &err);
    hg_fuzz_errors(&errs, &err);
}

/* Ready features, with the checksum that belongs to them. */
static void run_features(const char *text, size_t len)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";
    struct wk_features f = { .memory = hg_alloc(len + 1), .size = len };
    void *memory = f.memory;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;

    memcpy(memory, text, len);
    if (len >= FEATURES_HEADER)
        wk_block_seal(&f, key);
    if (wk_block_adopt(f.memory, len, key, &f, &err) == 0 && f.max_length < FEATURES_LENGTH) {
        int32_t *ids = hg_alloc_zeroed((size_t)f.max_length + 1, 2 * sizeof *ids);

        for (size_t i = 0; i < f.n; i++)
            wk_feature_write(&f, i, ids, ids + f.max_length);
        free(ids);
    }
    free(memory);
    hg_fuzz_errors(&errs, &err);
}

/* The parameters of a cell. */
static void run_config(const char *text, size_t len)
{
    struct wk_config config = { 0 };
    struct hg_errs errs = HG_ERRS_INIT;

    if (wk_config_load(hg_fuzz_file(text, len), &config, &errs) == 0)
        json_decref(wk_config_encode(&config));
    wk_config_done(&config);
    hg_fuzz_errors(&errs, NULL);
}

/* ---- Texts ---- */

static const struct wk_wordpiece *vocabulary(void)
{
    static const char tokens[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\na\nb\nc\n##a\n##b\n##c\n"
                                 "##s\ne\n##e\nwho\nin\n##in\n1\n##1\n.\n,\n?\n\xce\xb1\n";
    static struct wk_wordpiece *wp;

    if (!wp)
        wp = wk_wordpiece_parse("tokens", tokens, sizeof tokens - 1, NULL);
    hg_fuzz_expect(wp, "the vocabulary is good");
    return wp;
}

static void expect_inside(const struct wk_features *f)
{
    int32_t ids[LENGTH], types[LENGTH];

    for (size_t i = 0; i < f->n; i++) {
        uint32_t n = wk_feature_length(f, i);

        hg_fuzz_expect(n <= LENGTH, "a sequence fits");
        hg_fuzz_expect(f->items[i].start <= f->items[i].end && f->items[i].end < n,
                       "a label is a place of its sequence");
        wk_feature_write(f, i, ids, types);
    }
}

static void make_features(const struct wk_squad *squad, struct hg_errs *errs)
{
    struct wk_feature_options o = WK_FEATURE_OPTIONS_INIT;

    o.max_length = LENGTH;
    o.stride = 4;
    for (int windows = WK_WINDOWS_OVERLAP; windows <= WK_WINDOWS_ADVANCE; windows++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_features f;

        o.windows = windows;
        if (wk_features_build(squad, vocabulary(), &o, NULL, &f, &err) == 0) {
            expect_inside(&f);
            wk_features_done(&f);
        }
        hg_errs_add(errs, &err);
    }
}

static void score(const struct wk_squad *squad)
{
    const char **predictions = hg_alloc_zeroed(squad->n_questions + 1, sizeof *predictions);
    struct wk_squad_score out;

    for (size_t i = 0; i < squad->n_questions; i++)
        predictions[i] = i % 3 == 0 ? NULL : i % 3 == 1 ? "" : squad->questions[i].text;
    wk_squad_score(squad, predictions, &out);
    free(predictions);
}

static void run_squad(const char *text, size_t len)
{
    static const struct wk_squad_options ways[] = { { 0 },
                                                    { .skip_bad_answers = true },
                                                    { .answers_only = true } };
    struct hg_errs errs = HG_ERRS_INIT;

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct wk_squad squad;

        if (wk_squad_parse("fuzz", text, len, &ways[i], &squad, &errs) < 0)
            continue;
        if (!ways[i].answers_only)
            make_features(&squad, &errs);
        score(&squad);
        wk_squad_done(&squad);
    }
    hg_fuzz_errors(&errs, NULL);
}

static void run_wordpiece(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    size_t chars = 0;

    for (size_t i = 0; i < len; i++)
        chars += ((unsigned char)text[i] & 0xc0) != 0x80;
    for (int rules = WK_WORDPIECE_HF; rules <= WK_WORDPIECE_GOOGLE; rules++) {
        struct wk_tokens tokens = WK_TOKENS_INIT;
        struct hg_err err = HG_ERR_INIT;

        wk_wordpiece_encode(vocabulary(), rules, text, len, &tokens, &err);
        for (size_t i = 0; i < tokens.n; i++)
            hg_fuzz_expect(tokens.starts[i] <= tokens.ends[i] && tokens.ends[i] <= chars,
                           "a token is a part of the text");
        wk_tokens_done(&tokens);
        hg_errs_add(&errs, &err);
    }
    hg_fuzz_errors(&errs, NULL);
}

static void run_vocabulary(const char *text, size_t len)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;

    wk_wordpiece_free(wk_wordpiece_parse("fuzz", text, len, &err));
    hg_fuzz_errors(&errs, &err);
}

const struct hg_fuzz_target hg_fuzz_worker[] = {
    { "gzip", run_gzip },
    { "idx", run_idx },
    { "safetensors", run_safetensors },
    { "features", run_features },
    { "config", run_config },
    { "squad", run_squad },
    { "wordpiece", run_wordpiece },
    { "vocabulary", run_vocabulary },
    { NULL, NULL },
};
