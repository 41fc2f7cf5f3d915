/* SPDX-License-Identifier: Apache-2.0 */
#include "data/squad_eval.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "data/gzfile.h"
#include "data/unicode.h"

/* ---- Normal form ----
 *
 * The order of steps counts: punctuation goes first, so "a." becomes an article and "the-end" one
 * word. */

static bool is_punct(char c)
{
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
}

static void lower_without_punctuation(const char *text, size_t len, struct hg_buf *out)
{
    size_t kept = 0;

    wk_unicode_lower(text, len, out);
    if (out->failed)
        return;
    for (size_t i = 0; i < out->len; i++)
        if (!is_punct(out->data[i]))
            out->data[kept++] = out->data[i];
    out->len = kept;
    if (out->data)
        out->data[kept] = '\0';
}

static bool is_article(const char *word, size_t len)
{
    return (len == 1 && word[0] == 'a') || (len == 2 && memcmp(word, "an", 2) == 0) ||
           (len == 3 && memcmp(word, "the", 3) == 0);
}

/* Bytes of the word at p, 0 if none begins there; *code is what stands at p then. len > 0. */
static size_t word_at(const char *p, size_t len, int32_t *code, size_t *step)
{
    size_t n = 0;

    while (n < len && wk_unicode_is_word(*code = wk_utf8_next(p + n, len - n, step)))
        n += *step;
    return n;
}

/* Articles become blanks where they stand between characters that are no part of words; then what
 * is left is joined by single blanks. */
void wk_squad_normalize(const char *text, size_t len, struct hg_buf *out)
{
    struct hg_buf flat = HG_BUF_INIT;
    bool blank = false, any = false;
    size_t n, step = 1;

    lower_without_punctuation(text, len, &flat);
    for (size_t i = 0; i < flat.len && !flat.failed; i += n) {
        const char *p = flat.data + i;
        int32_t code = 0;
        bool word;

        n = word_at(p, flat.len - i, &code, &step);
        word = n > 0;
        if (!word)
            n = step;
        if (word ? is_article(p, n) : wk_unicode_is_space(code)) {
            blank = true;
            continue;
        }
        if (blank && any)
            hg_buf_puts(out, " ");
        hg_buf_append(out, p, n);
        any = true;
        blank = false;
    }
    out->failed |= flat.failed;
    hg_buf_done(&flat);
}

/* ---- F1 over words ---- */

struct word {
    const char *text;
    size_t len;
};

struct words {
    struct hg_buf text; /* normal form */
    struct word *items; /* in order of their bytes */
    size_t n, cap;
};

static int compare_words(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, n);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Fill from an answer. Returns 0, or -1 when memory is gone. */
static int words_set(struct words *w, const char *text, size_t len)
{
    const char *p, *end;

    hg_buf_clear(&w->text);
    w->n = 0;
    wk_squad_normalize(text, len, &w->text);
    if (w->text.failed)
        return -1;
    p = hg_buf_str(&w->text);
    for (; *p; p = *end ? end + 1 : end) {
        struct word *word = HG_VEC_PUSH(w);

        if (!word)
            return -1;
        end = p + strcspn(p, " ");
        *word = (struct word){ p, (size_t)(end - p) };
    }
    if (w->n > 1)
        qsort(w->items, w->n, sizeof *w->items, compare_words);
    return 0;
}

static void words_done(struct words *w)
{
    hg_buf_done(&w->text);
    HG_VEC_DONE(w);
}

static bool words_equal(const struct words *a, const struct words *b)
{
    return strcmp(hg_buf_str(&a->text), hg_buf_str(&b->text)) == 0;
}

/* Words that both have, counted as often as both have them. */
static size_t common_words(const struct words *a, const struct words *b)
{
    size_t n = 0;

    for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
        int order = compare_words(&a->items[i], &b->items[j]);

        n += order == 0;
        i += order <= 0;
        j += order >= 0;
    }
    return n;
}

static double f1_of(const struct words *prediction, const struct words *truth, bool v2)
{
    double same, precision, recall;

    if (v2 && (prediction->n == 0 || truth->n == 0)) /* no answer agrees with no answer only */
        return prediction->n == truth->n;
    same = (double)common_words(prediction, truth);
    if (same == 0)
        return 0;
    precision = same / (double)prediction->n;
    recall = same / (double)truth->n;
    return 2 * precision * recall / (precision + recall);
}

/* ---- Scores ---- */

struct scorer {
    const struct wk_squad *squad;
    struct words prediction, truth;
    double exact, f1; /* of the question at hand: the best over its answers */
    bool has_answer;
};

static int compare_with(struct scorer *s, const char *answer, size_t len)
{
    double f1;

    if (words_set(&s->truth, answer, len) < 0)
        return -1;
    if (s->squad->v2 && len &&
        s->truth.text.len == 0) /* v2.0 ignores answers that are punctuation only */
        return 0;
    s->has_answer |= len != 0;
    if (words_equal(&s->prediction, &s->truth))
        s->exact = 1;
    f1 = f1_of(&s->prediction, &s->truth, s->squad->v2);
    if (f1 > s->f1)
        s->f1 = f1;
    return 0;
}

static int score_question(struct scorer *s, const struct wk_squad_question *q, const char *text)
{
    s->exact = s->f1 = 0;
    s->has_answer = false;
    if (words_set(&s->prediction, text, strlen(text)) < 0)
        return -1;
    for (uint32_t i = 0; i < q->n_answers; i++) {
        const struct wk_squad_answer *a = &s->squad->answers[q->first_answer + i];

        if (compare_with(s, a->text, a->len) < 0)
            return -1;
    }
    if (!s->has_answer && s->squad->v2)
        return compare_with(s, "", 0);
    return 0;
}

static void add_figures(struct wk_squad_figures *f, const struct scorer *s)
{
    f->n++;
    f->exact += s->exact;
    f->f1 += s->f1;
}

/* From sums to percent. */
static void finish_figures(struct wk_squad_figures *f)
{
    if (f->n == 0)
        return;
    f->exact = 100.0 * f->exact / (double)f->n;
    f->f1 = 100.0 * f->f1 / (double)f->n;
}

int wk_squad_score(const struct wk_squad *squad, const char *const *predictions,
                   struct wk_squad_score *out, struct hg_err *err)
{
    struct scorer s = { .squad = squad };
    int rc = 0;

    *out = (struct wk_squad_score){ 0 };
    for (size_t i = 0; i < squad->n_questions && rc == 0; i++) {
        const struct wk_squad_question *q = &squad->questions[i];

        if (!predictions[i]) {
            out->missing++;
            out->all.n += !squad->v2;
            continue;
        }
        rc = score_question(&s, q, predictions[i]);
        add_figures(&out->all, &s);
        if (squad->v2)
            add_figures(q->n_answers ? &out->has_answer : &out->no_answer, &s);
    }
    words_done(&s.prediction);
    words_done(&s.truth);
    finish_figures(&out->all);
    finish_figures(&out->has_answer);
    finish_figures(&out->no_answer);
    return rc < 0 ? hg_err_oom(err) : 0;
}

/* ---- Predictions in a file ---- */

static void check_predictions(const struct hg_json_doc *doc, struct hg_errs *errs)
{
    const char *id;
    json_t *value;

    if (!json_is_object(doc->root)) {
        hg_json_error(doc, "", errs, "expected an object of question ids and texts, found %s",
                      hg_json_type_name(doc->root));
        return;
    }
    json_object_foreach(doc->root, id, value) {
        struct hg_buf pointer = HG_BUF_INIT;

        if (json_is_string(value) || errs->n >= HG_ERRS_MAX)
            continue;
        hg_json_pointer_push(&pointer, id);
        hg_json_error(doc, hg_buf_str(&pointer), errs, "expected a string, found %s",
                      hg_json_type_name(value));
        hg_buf_done(&pointer);
    }
}

static int match_predictions(json_t *root, const struct wk_squad *squad,
                             struct wk_squad_predictions *out)
{
    size_t found = 0;

    out->texts = calloc(squad->n_questions ? squad->n_questions : 1, sizeof *out->texts);
    if (!out->texts)
        return -1;
    for (size_t i = 0; i < squad->n_questions; i++) {
        out->texts[i] = json_string_value(json_object_get(root, squad->questions[i].id));
        found += out->texts[i] != NULL;
    }
    out->foreign = json_object_size(root) - found;
    out->json = json_incref(root);
    return 0;
}

int wk_squad_predictions_load(const char *path, const struct wk_squad *squad,
                              struct wk_squad_predictions *out, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    size_t before = errs->n + errs->dropped;

    *out = (struct wk_squad_predictions){ 0 };
    if (wk_gzfile_read(path, WK_SQUAD_BYTES_MAX, &text, &err) == 0 &&
        hg_json_parse(path, hg_buf_str(&text), text.len, &doc, &err) == 0) {
        check_predictions(&doc, errs);
        if (errs->n + errs->dropped == before && match_predictions(doc.root, squad, out) < 0)
            hg_err_oom(&err);
    }
    hg_errs_add(errs, &err);
    hg_json_doc_done(&doc);
    hg_buf_done(&text);
    return errs->n + errs->dropped == before ? 0 : -1;
}

void wk_squad_predictions_done(struct wk_squad_predictions *p)
{
    free(p->texts);
    json_decref(p->json);
    *p = (struct wk_squad_predictions){ 0 };
}
