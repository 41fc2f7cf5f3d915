/* SPDX-License-Identifier: Apache-2.0 */
#include "data/squad_eval.h"

#include <math.h>
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

/* Bytes of the word at p, 0 if none begins there; *code is the character at p then. len > 0. */
static size_t word_at(const char *p, size_t len, int32_t *code, size_t *step)
{
    size_t n = 0;

    while (n < len && wk_unicode_is_word(*code = wk_utf8_next(p + n, len - n, step)))
        n += *step;
    return n;
}

/* Articles become blanks if the characters around them are not part of words; then the rest is joined by single blanks. */
void wk_squad_normalize(const char *text, size_t len, struct hg_buf *out)
{
    struct hg_buf flat = HG_BUF_INIT;
    bool blank = false, any = false;
    size_t n, step = 1;

    lower_without_punctuation(text, len, &flat);
    for (size_t i = 0; i < flat.len; i += n) {
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

/* Fill from an answer. */
static void words_set(struct words *w, const char *text, size_t len)
{
    const char *p, *end;

    hg_buf_clear(&w->text);
    w->n = 0;
    wk_squad_normalize(text, len, &w->text);
    p = hg_buf_str(&w->text);
    for (; *p; p = *end ? end + 1 : end) {
        struct word *word = HG_VEC_PUSH(w);

        end = p + strcspn(p, " ");
        *word = (struct word){ p, (size_t)(end - p) };
    }
    if (w->n > 1)
        qsort(w->items, w->n, sizeof *w->items, compare_words);
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

static void compare_with(struct scorer *s, const char *answer, size_t len)
{
    double f1;

    words_set(&s->truth, answer, len);
    if (s->squad->v2 && len &&
        s->truth.text.len == 0) /* v2.0 ignores answers that are punctuation only */
        return;
    s->has_answer |= len != 0;
    if (words_equal(&s->prediction, &s->truth))
        s->exact = 1;
    f1 = f1_of(&s->prediction, &s->truth, s->squad->v2);
    if (f1 > s->f1)
        s->f1 = f1;
}

static void score_question(struct scorer *s, const struct wk_squad_question *q, const char *text)
{
    s->exact = s->f1 = 0;
    s->has_answer = false;
    words_set(&s->prediction, text, strlen(text));
    for (uint32_t i = 0; i < q->n_answers; i++) {
        const struct wk_squad_answer *a = &s->squad->answers[q->first_answer + i];

        compare_with(s, a->text, a->len);
    }
    if (!s->has_answer && s->squad->v2)
        compare_with(s, "", 0);
}

/* Each question's EM and F1 (0 to 1, NaN without a prediction). */
static void score_each(const struct wk_squad *squad, const char *const *predictions, double *exact,
                       double *f1)
{
    struct scorer s = { .squad = squad };

    for (size_t i = 0; i < squad->n_questions; i++) {
        exact[i] = f1[i] = NAN;
        if (!predictions[i])
            continue;
        score_question(&s, &squad->questions[i], predictions[i]);
        exact[i] = s.exact;
        f1[i] = s.f1;
    }
    words_done(&s.prediction);
    words_done(&s.truth);
}

static void add_figures(struct wk_squad_figures *f, double exact, double f1)
{
    f->n++;
    f->exact += exact;
    f->f1 += f1;
}

/* From sums to percent. */
static void finish_figures(struct wk_squad_figures *f)
{
    if (f->n == 0)
        return;
    f->exact = 100.0 * f->exact / (double)f->n;
    f->f1 = 100.0 * f->f1 / (double)f->n;
}

static void sum_scores(const struct wk_squad *squad, const double *exact, const double *f1,
                       struct wk_squad_score *out)
{
    *out = (struct wk_squad_score){ 0 };
    for (size_t i = 0; i < squad->n_questions; i++) {
        if (isnan(exact[i])) {
            out->missing++;
            out->all.n += !squad->v2;
            continue;
        }
        add_figures(&out->all, exact[i], f1[i]);
        if (squad->v2)
            add_figures(squad->questions[i].n_answers ? &out->has_answer : &out->no_answer,
                        exact[i], f1[i]);
    }
    finish_figures(&out->all);
    finish_figures(&out->has_answer);
    finish_figures(&out->no_answer);
}

void wk_squad_score(const struct wk_squad *squad, const char *const *predictions,
                    struct wk_squad_score *out)
{
    double *exact = hg_alloc_zeroed(squad->n_questions + 1, sizeof *exact);
    double *f1 = hg_alloc_zeroed(squad->n_questions + 1, sizeof *f1);

    score_each(squad, predictions, exact, f1);
    sum_scores(squad, exact, f1, out);
    free(exact);
    free(f1);
}

/* ---- Predictions in a file ---- */

/* The type of a file's values. */
struct kind {
    const char *many, *one;
    bool (*fits)(const json_t *value);
};

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static const struct kind texts_kind = { "texts", "string", is_text };
static const struct kind numbers_kind = { "numbers", "number", is_number };

static void check_values(const struct hg_json_doc *doc, const struct kind *kind,
                         struct hg_errs *errs)
{
    const char *id;
    json_t *value;

    if (!json_is_object(doc->root)) {
        hg_json_error(doc, "", errs, "expected an object of question ids and %s, found %s",
                      kind->many, hg_json_type_name(doc->root));
        return;
    }
    json_object_foreach(doc->root, id, value) {
        struct hg_buf pointer = HG_BUF_INIT;

        if (kind->fits(value) || errs->n >= HG_ERRS_MAX)
            continue;
        hg_json_pointer_push(&pointer, id);
        hg_json_error(doc, hg_buf_str(&pointer), errs, "expected a %s, found %s", kind->one,
                      hg_json_type_name(value));
        hg_buf_done(&pointer);
    }
}

/* An object of such values; NULL with errs filled. A new reference. */
static json_t *load_values(const char *path, const struct kind *kind, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    size_t before = errs->n + errs->dropped;
    json_t *root = NULL;

    if (wk_gzfile_read(path, WK_SQUAD_BYTES_MAX, &text, &err) == 0 &&
        hg_json_parse(path, hg_buf_str(&text), text.len, &doc, &err) == 0) {
        check_values(&doc, kind, errs);
        root = errs->n + errs->dropped == before ? json_incref(doc.root) : NULL;
    }
    hg_errs_add(errs, &err);
    hg_json_doc_done(&doc);
    hg_buf_done(&text);
    return root;
}

static void match_predictions(json_t *root, const struct wk_squad *squad,
                              struct wk_squad_predictions *out)
{
    size_t found = 0;

    out->texts = hg_alloc_zeroed(squad->n_questions + 1, sizeof *out->texts);
    for (size_t i = 0; i < squad->n_questions; i++) {
        out->texts[i] = json_string_value(json_object_get(root, squad->questions[i].id));
        found += out->texts[i] != NULL;
    }
    out->foreign = json_object_size(root) - found;
    out->json = root;
}

int wk_squad_predictions_load(const char *path, const struct wk_squad *squad,
                              struct wk_squad_predictions *out, struct hg_errs *errs)
{
    json_t *root = load_values(path, &texts_kind, errs);

    *out = (struct wk_squad_predictions){ 0 };
    if (root)
        match_predictions(root, squad, out);
    return root ? 0 : -1;
}

void wk_squad_predictions_done(struct wk_squad_predictions *p)
{
    free(p->texts);
    json_decref(p->json);
    *p = (struct wk_squad_predictions){ 0 };
}

/* ---- How likely a question has no answer ---- */

/* Places of the ids in the file. A new reference. */
static json_t *number_ids(const json_t *root)
{
    json_t *places = json_object(), *value;
    json_int_t n = 0;
    const char *id;

    json_object_foreach((json_t *)(uintptr_t)root, id, value)
        json_object_set_new(places, id, json_integer(n++));
    return places;
}

static void match_na(const json_t *root, const struct wk_squad *squad, struct wk_squad_na *out)
{
    json_t *places = number_ids(root);
    size_t found = 0;

    out->values = hg_alloc_zeroed(squad->n_questions + 1, sizeof *out->values);
    out->places = hg_alloc_zeroed(squad->n_questions + 1, sizeof *out->places);
    for (size_t i = 0; i < squad->n_questions; i++) {
        const json_t *value = json_object_get(root, squad->questions[i].id);

        out->values[i] = value ? json_number_value(value) : NAN;
        out->places[i] =
            (size_t)json_integer_value(json_object_get(places, squad->questions[i].id));
        found += value != NULL;
    }
    out->foreign = json_object_size(root) - found;
    json_decref(places);
}

int wk_squad_na_load(const char *path, const struct wk_squad *squad, struct wk_squad_na *out,
                     struct hg_errs *errs)
{
    json_t *root = load_values(path, &numbers_kind, errs);
    int rc = root ? 0 : -1;

    *out = (struct wk_squad_na){ 0 };
    if (root)
        match_na(root, squad, out);
    json_decref(root);
    return rc;
}

void wk_squad_na_done(struct wk_squad_na *na)
{
    free(na->values);
    free(na->places);
    *na = (struct wk_squad_na){ 0 };
}

/* A prediction without a number cannot be compared with a threshold. */
static int check_na(const struct wk_squad *squad, const char *const *predictions,
                    const struct wk_squad_na *na, struct hg_err *err)
{
    for (size_t i = 0; i < squad->n_questions; i++)
        if (predictions[i] && isnan(na->values[i]))
            return hg_err_set(
                err, HG_E_INPUT,
                "question %s has a prediction, but no probability of having no answer",
                squad->questions[i].id);
    return 0;
}

struct judged {
    double na;
    size_t place, question;
};

static int by_na(const void *pa, const void *pb)
{
    const struct judged *a = pa, *b = pb;

    if (a->na != b->na)
        return a->na < b->na ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* Questions with a prediction, the surest answer first. Returns their number. */
static size_t order_judged(const struct wk_squad *squad, const double *scores,
                           const struct wk_squad_na *na, struct judged *list)
{
    size_t n = 0;

    for (size_t i = 0; i < squad->n_questions; i++)
        if (!isnan(scores[i]))
            list[n++] =
                (struct judged){ .na = na->values[i], .place = na->places[i], .question = i };
    qsort(list, n, sizeof *list, by_na);
    return n;
}

/* With nothing answered, every question without an answer is right. Each prediction that is let in brings its score, or spoils one of those.
 * As officially defined: one at a time, also among equal numbers, and the first best one stays. */
static void find_best(const struct wk_squad *squad, const char *const *predictions,
                      const double *scores, const struct judged *list, size_t n, double *best,
                      double *threshold)
{
    double now = 0, most;

    for (size_t i = 0; i < squad->n_questions; i++)
        now += squad->questions[i].n_answers == 0;
    most = now;
    *threshold = 0;
    for (size_t k = 0; k < n; k++) {
        size_t i = list[k].question;

        now += squad->questions[i].n_answers ? scores[i] : *predictions[i] ? -1 : 0;
        if (now > most) {
            most = now;
            *threshold = list[k].na;
        }
    }
    *best = n ? 100.0 * most / (double)n : 0;
}

/* Above the threshold a prediction counts as "no answer". */
static void apply_threshold(const struct wk_squad *squad, const struct wk_squad_na *na,
                            double threshold, double *exact, double *f1)
{
    for (size_t i = 0; i < squad->n_questions; i++)
        if (!isnan(exact[i]) && na->values[i] > threshold)
            exact[i] = f1[i] = squad->questions[i].n_answers == 0;
}

int wk_squad_score_na(const struct wk_squad *squad, const char *const *predictions,
                      const struct wk_squad_na *na, double threshold, struct wk_squad_score *out,
                      struct wk_squad_best *best, struct hg_err *err)
{
    double *exact, *f1;
    struct judged *list;
    size_t n;

    if (check_na(squad, predictions, na, err) < 0)
        return -1;
    exact = hg_alloc_zeroed(squad->n_questions + 1, sizeof *exact);
    f1 = hg_alloc_zeroed(squad->n_questions + 1, sizeof *f1);
    list = hg_alloc_zeroed(squad->n_questions + 1, sizeof *list);
    score_each(squad, predictions, exact, f1);
    n = order_judged(squad, exact, na, list);
    find_best(squad, predictions, exact, list, n, &best->exact, &best->exact_threshold);
    find_best(squad, predictions, f1, list, n, &best->f1, &best->f1_threshold);
    apply_threshold(squad, na, threshold, exact, f1);
    sum_scores(squad, exact, f1, out);
    free(exact);
    free(f1);
    free(list);
    return 0;
}
