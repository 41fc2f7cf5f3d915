/* SPDX-License-Identifier: Apache-2.0 */
/* There is no lock. A process that finds nothing (or something damaged) makes the features and
 * moves a complete file into place; when several do so at once, they write the same content, and a
 * rename replaces one whole file by another. */
#include "data/features_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/features_block.h"
#include "data/gzfile.h"

/* Raise it whenever the same inputs give other features. */
#define RULES_VERSION 2
#define CACHE_BYTES_MAX ((size_t)1 << 36)
#define VOCAB_BYTES_MAX ((size_t)16 << 20)

struct inputs {
    const char *data_path, *vocab_path;
    struct hg_buf data, vocab; /* as they lie on disk */
};

static void make_key(const struct inputs *in, const struct wk_feature_options *o, char key[33])
{
    char data[33], vocab[33], text[512];
    int n;

    hg_hash128_hex(hg_buf_str(&in->data), in->data.len, data);
    hg_hash128_hex(hg_buf_str(&in->vocab), in->vocab.len, vocab);
    n = snprintf(
        text, sizeof text,
        "features %d data %s vocab %s max_length %u stride %u windows %s labels %s questions %zu skip %d "
        "unicode %s",
        RULES_VERSION, data, vocab, o->max_length, o->stride, wk_windows_names[o->windows],
        wk_labels_names[o->labels], o->questions, o->skip_bad_answers, utf8proc_unicode_version());
    hg_hash128_hex(text, (size_t)n, key);
}

/* Returns 0 when the features came from the file, else -1; damage is told, absence is normal. */
static int load(const char *path, const char *key, struct wk_features *out)
{
    struct hg_buf file = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc = -1;

    if (access(path, F_OK) == 0 && hg_fs_read_file(path, CACHE_BYTES_MAX, &file, &err) == 0) {
        size_t size = file.len;

        rc = wk_block_adopt(file.data, size, key, out, &err);
        if (rc == 0)
            file = (struct hg_buf)HG_BUF_INIT; /* out owns it now */
        out->cached = rc == 0;
    }
    if (err.code)
        hg_warn("%s: %s; the features are built again", path, err.text);
    hg_buf_done(&file);
    return rc;
}

/* hg_fs_replace names its temporary file after the process; on a folder that several nodes share a
 * random name comes first. */
static int save_as(const char *path, const struct wk_features *f, struct hg_err *err)
{
    char random[17];
    char *tmp;
    int rc = -1;

    hg_text_random_hex(8, random);
    tmp = hg_str_printf("%s.%s", path, random);
    if (hg_fs_replace(tmp, f->memory, f->size, 0644, err) == 0) {
        rc = rename(tmp, path);
        if (rc < 0) {
            hg_err_sys(err, "cannot rename %s", tmp);
            unlink(tmp);
        }
    }
    free(tmp);
    return rc;
}

static void save(const char *dir, const char *path, const char *key, struct wk_features *f)
{
    struct hg_err err = HG_ERR_INIT;

    wk_block_seal(f, key);
    if (hg_fs_mkdirs(dir, 0755, &err) < 0 || save_as(path, f, &err) < 0)
        hg_warn("cannot save the features for the next run: %s", err.text);
}

static int make(const struct inputs *in, const struct wk_feature_options *options,
                const struct wk_progress *progress, struct wk_features *out, struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT, words = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_wordpiece *wp = NULL;
    const struct wk_squad_options how = { .skip_bad_answers = options->skip_bad_answers };
    struct wk_squad squad = { 0 };
    int rc = -1;

    if (wk_gzfile_unpack(in->vocab_path, hg_buf_str(&in->vocab), in->vocab.len, VOCAB_BYTES_MAX,
                         &words, &err) < 0 ||
        !(wp = wk_wordpiece_parse(in->vocab_path, hg_buf_str(&words), words.len, &err)) ||
        wk_gzfile_unpack(in->data_path, hg_buf_str(&in->data), in->data.len, WK_SQUAD_BYTES_MAX,
                         &text, &err) < 0)
        goto out;
    if (wk_squad_parse(in->data_path, hg_buf_str(&text), text.len, &how, &squad, errs) < 0)
        goto out;
    if (squad.dropped_answers)
        hg_warn("%s: %zu answers are not at their offset: left out, with %zu questions",
                in->data_path, squad.dropped_answers, squad.dropped_questions);
    rc = wk_features_build(&squad, wp, options, progress, out, &err);
    if (rc < 0)
        hg_err_at(&err, in->data_path, NULL);
out:
    hg_errs_add(errs, &err);
    wk_squad_done(&squad);
    wk_wordpiece_free(wp);
    hg_buf_done(&words);
    hg_buf_done(&text);
    return rc;
}

static int open_cached(const struct inputs *in, const char *cache_dir,
                       const struct wk_feature_options *options, const struct wk_progress *progress,
                       struct wk_features *out, struct hg_errs *errs)
{
    char key[33];
    char *path;
    int rc;

    make_key(in, options, key);
    path = hg_str_printf("%s/features-%s.bin", cache_dir, key);
    rc = load(path, key, out);
    if (rc < 0) {
        rc = make(in, options, progress, out, errs);
        if (rc == 0)
            save(cache_dir, path, key, out);
    }
    free(path);
    return rc;
}

int wk_features_open(const char *data_path, const char *vocab_path, const char *cache_dir,
                     const struct wk_feature_options *options, const struct wk_progress *progress,
                     struct wk_features *out, struct hg_errs *errs)
{
    struct inputs in = { .data_path = data_path, .vocab_path = vocab_path };
    struct hg_err err = HG_ERR_INIT;
    int rc = -1;

    *out = (struct wk_features){ 0 };
    if (hg_fs_read(data_path, WK_SQUAD_BYTES_MAX, &in.data, &err) < 0 ||
        hg_fs_read(vocab_path, VOCAB_BYTES_MAX, &in.vocab, &err) < 0)
        hg_errs_add(errs, &err);
    else if (cache_dir)
        rc = open_cached(&in, cache_dir, options, progress, out, errs);
    else
        rc = make(&in, options, progress, out, errs);
    hg_buf_done(&in.data);
    hg_buf_done(&in.vocab);
    return rc;
}
