/* SPDX-License-Identifier: Apache-2.0 */
#include "data/features.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "data/features_block.h"
#include "data/unicode.h"

#define AROUND 3 /* [CLS] and two [SEP] */
#define ADVANCE_QUESTION_MAX 64
#define PROGRESS_EVERY 1000 /* questions */

const char *const wk_windows_names[] = { "overlap", "advance", NULL };
const char *const wk_labels_names[] = { "true", "dummy", NULL };

int wk_feature_word(const char *const *names, const char *word, const char *what,
                    struct hg_err *err)
{
    int n = 0;

    for (; names[n]; n++)
        if (strcmp(names[n], word) == 0)
            return n;
    hg_err_set(err, HG_E_INPUT, "unknown %s \"%s\"", what, word);
    hg_text_suggest(err, word, names, (size_t)n);
    return -1;
}

/* Where a text's tokens lie among those of all texts. */
struct text_tokens {
    size_t at, n;
};

struct builder {
    const struct wk_squad *squad;
    const struct wk_wordpiece *wp;
    const struct wk_feature_options *options;
    enum wk_wordpiece_rules rules;
    struct wk_tokens context, question, answer; /* answer: scratch */
    struct text_tokens text;                    /* of the question at hand */
    size_t texts_done;                          /* paragraphs whose tokens are there */
    uint32_t *words; /* ADVANCE: per token of the text, the word it is in */
    size_t words_cap;
    struct {
        struct wk_feature *items;
        size_t n, cap;
    } features;
    struct {
        struct wk_feature_question *items;
        size_t n, cap;
    } questions;
};

/* Tokens that answer the question, counted from the text's first; none: has is false. */
struct span {
    bool has;
    size_t start, end; /* both included */
};

/* ---- Labels as Hugging Face makes them: by characters, inside the window ---- */

static void label_by_chars(const struct builder *b, const struct wk_squad_answer *a,
                           struct wk_feature *f, uint32_t shift)
{
    const uint32_t *starts = b->context.starts + f->at, *ends = b->context.ends + f->at;
    uint32_t i = 0, j = f->n;

    if (f->n == 0 || starts[0] > a->start || ends[f->n - 1] < a->end)
        return;
    while (i < f->n && starts[i] <= a->start)
        i++;
    while (j > 0 && ends[j - 1] >= a->end)
        j--;
    f->start = shift + i - 1;
    f->end = shift + j;
}

/* ---- Labels as Google makes them: by words, then tightened to the answer's own tokens ---- */

/* Google's words: what is between these five blanks. */
static bool is_blank(int32_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202f;
}

/* Number the words of the text, and note for every token which one it is in. */
static void number_words(struct builder *b, const struct wk_squad_paragraph *p)
{
    const uint32_t *starts = b->context.starts + b->text.at;
    uint32_t word = 0, at = 0;
    size_t token = 0, step;
    bool blank = true;

    if (b->text.n > b->words_cap) {
        b->words = hg_realloc(b->words, b->text.n * sizeof *b->words);
        b->words_cap = b->text.n;
    }
    for (size_t i = 0; i < p->len && token < b->text.n; i += step, at++) {
        bool was_blank = blank;

        blank = is_blank(wk_utf8_next(p->context + i, p->len - i, &step));
        word += was_blank && !blank;
        while (token < b->text.n && starts[token] <= at)
            b->words[token++] = word;
    }
}

/* The first token of the word that the character is in (a blank belongs to the word before it). */
static size_t token_of_char(const struct builder *b, const struct wk_squad_paragraph *p,
                            uint32_t wanted, uint32_t *word_out)
{
    uint32_t word = 0, at = 0;
    size_t step, token = 0;
    bool blank = true;

    for (size_t i = 0; i < p->len && at <= wanted; i += step, at++) {
        bool was_blank = blank;

        blank = is_blank(wk_utf8_next(p->context + i, p->len - i, &step));
        word += was_blank && !blank;
    }
    while (token < b->text.n && b->words[token] < word)
        token++;
    *word_out = word;
    return token;
}

/* The first run of tokens inside the span that is the answer's own tokens; else the span as it is. */
static void tighten(const struct builder *b, struct span *s)
{
    const uint32_t *ids = b->context.ids + b->text.at;
    size_t n = b->answer.n;

    if (n == 0)
        return;
    for (size_t i = s->start; i + n <= s->end + 1; i++)
        if (memcmp(ids + i, b->answer.ids, n * sizeof *ids) == 0) {
            s->start = i;
            s->end = i + n - 1;
            return;
        }
}

static int find_span(struct builder *b, const struct wk_squad_question *q, struct span *s,
                     struct hg_err *err)
{
    const struct wk_squad_paragraph *p = &b->squad->paragraphs[q->paragraph];
    const struct wk_squad_answer *a = &b->squad->answers[q->first_answer];
    uint32_t word;

    s->start = token_of_char(b, p, a->start, &word);
    s->end = token_of_char(b, p, a->end - 1, &word);
    while (s->end < b->text.n && b->words[s->end] == word)
        s->end++;
    if (s->start >= s->end)
        return 0;
    s->end--;
    s->has = true;
    b->answer.n = 0;
    if (wk_wordpiece_encode(b->wp, b->rules, a->text, a->len, &b->answer, err) < 0)
        return -1;
    tighten(b, s);
    return 0;
}

static void label_by_tokens(const struct span *s, size_t text_at, struct wk_feature *f,
                            uint32_t shift)
{
    size_t first = f->at - text_at;

    if (!s->has || s->start < first || s->end >= first + f->n)
        return;
    f->start = shift + (uint32_t)(s->start - first);
    f->end = shift + (uint32_t)(s->end - first);
}

/* ---- Windows ---- */

static const char *length_key(const struct wk_feature_options *o)
{
    return o->length_key ? o->length_key : "max_length";
}

static const char *stride_key(const struct wk_feature_options *o)
{
    return o->stride_key ? o->stride_key : "stride";
}

/* Tokens of the text that fit beside a question. */
static uint32_t room_beside(const struct builder *b, uint32_t n_question)
{
    uint32_t taken = AROUND + n_question;

    return b->options->max_length > taken ? b->options->max_length - taken : 0;
}

static int no_room(const struct builder *b, const struct wk_squad_question *q, uint32_t n_question,
                   uint32_t room, struct hg_err *err)
{
    hg_err_set(err, HG_E_INPUT,
               "question \"%.60s\": its %u tokens leave room for %u of the text in %u, too few "
               "for windows with %s %u",
               q->id, n_question, room, b->options->max_length, stride_key(b->options),
               b->options->stride);
    return hg_err_hint(err, "make %s larger or %s smaller", length_key(b->options),
                       stride_key(b->options));
}

/* Tokens from this window's start to the next one's; -1 if there is no room. */
static int window_step(const struct builder *b, const struct wk_squad_question *q,
                       uint32_t n_question, uint32_t room, uint32_t *step, struct hg_err *err)
{
    uint32_t stride = b->options->stride;

    if (b->options->windows == WK_WINDOWS_ADVANCE) {
        *step = stride < room ? stride : room;
        return *step ? 0 : no_room(b, q, n_question, room, err);
    }
    *step = room > stride ? room - stride : 0;
    return *step ? 0 : no_room(b, q, n_question, room, err);
}

static void add_window(struct builder *b, const struct wk_squad_question *q, size_t first,
                       uint32_t n, const struct span *span)
{
    struct wk_feature *f = HG_VEC_PUSH(&b->features);
    uint32_t shift = 2 + b->questions.items[b->questions.n - 1].n;

    *f = (struct wk_feature){ .question = (uint32_t)(b->questions.n - 1),
                              .at = (uint32_t)(b->text.at + first),
                              .n = n };
    if (b->options->labels == WK_LABELS_DUMMY || q->n_answers == 0)
        return;
    if (b->options->windows == WK_WINDOWS_ADVANCE)
        label_by_tokens(span, b->text.at, f, shift);
    else
        label_by_chars(b, &b->squad->answers[q->first_answer], f, shift);
}

static int add_windows(struct builder *b, const struct wk_squad_question *q, uint32_t n_question,
                       struct hg_err *err)
{
    uint32_t room = room_beside(b, n_question), step = 0;
    bool advance = b->options->windows == WK_WINDOWS_ADVANCE;
    struct span span = { 0 };

    if ((b->text.n > room || n_question + AROUND > b->options->max_length) &&
        window_step(b, q, n_question, room, &step, err) < 0)
        return -1;
    if (advance && b->text.n == 0)
        return 0;
    if (advance && q->n_answers && b->options->labels == WK_LABELS_TRUE &&
        find_span(b, q, &span, err) < 0)
        return -1;
    for (size_t first = 0;; first += step) {
        size_t left = b->text.n - first;

        add_window(b, q, first, (uint32_t)(left < room ? left : room), &span);
        if (left <= room)
            return 0;
    }
}

/* ---- Questions ---- */

/* The tokens of a question's text; questions about one text follow each other. */
static int tokenize_text(struct builder *b, uint32_t paragraph, struct hg_err *err)
{
    const struct wk_squad_paragraph *p = &b->squad->paragraphs[paragraph];

    if (b->texts_done == (size_t)paragraph + 1)
        return 0;
    b->text.at = b->context.n;
    if (wk_wordpiece_encode(b->wp, b->rules, p->context, p->len, &b->context, err) < 0)
        return -1;
    b->text.n = b->context.n - b->text.at;
    b->texts_done = (size_t)paragraph + 1;
    if (b->context.n > UINT32_MAX)
        return hg_err_set(err, HG_E_INPUT, "more than %u tokens of text", UINT32_MAX);
    if (b->options->windows == WK_WINDOWS_ADVANCE)
        number_words(b, p);
    return 0;
}

static int add_question(struct builder *b, const struct wk_squad_question *q, struct hg_err *err)
{
    struct wk_feature_question *made = HG_VEC_PUSH(&b->questions);
    size_t before = b->question.n, n;

    if (tokenize_text(b, q->paragraph, err) < 0 ||
        wk_wordpiece_encode(b->wp, b->rules, q->text, q->len, &b->question, err) < 0)
        return -1;
    n = b->question.n - before;
    if (b->options->windows == WK_WINDOWS_ADVANCE && n > ADVANCE_QUESTION_MAX)
        n = ADVANCE_QUESTION_MAX;
    b->question.n = before + n;
    *made = (struct wk_feature_question){ .at = (uint32_t)before, .n = (uint32_t)n };
    return add_windows(b, q, (uint32_t)n, err);
}

static int check_options(const struct wk_feature_options *o, struct hg_err *err)
{
    if (o->max_length < WK_FEATURE_LENGTH_MIN || o->max_length > WK_FEATURE_LENGTH_MAX)
        return hg_err_set(err, HG_E_INPUT, "%s %u is not within %d to %d", length_key(o),
                          o->max_length, WK_FEATURE_LENGTH_MIN, WK_FEATURE_LENGTH_MAX);
    if (o->windows == WK_WINDOWS_ADVANCE && o->stride == 0)
        return hg_err_set(err, HG_E_INPUT,
                          "windows that advance by 0 tokens never end: %s must be more",
                          stride_key(o));
    if (o->windows == WK_WINDOWS_OVERLAP && o->stride >= o->max_length - AROUND)
        return hg_err_set(err, HG_E_INPUT,
                          "windows of %u tokens that overlap by %u never end: %s must be less",
                          o->max_length - AROUND, o->stride, stride_key(o));
    return 0;
}

static int add_all(struct builder *b, const struct wk_progress *progress, struct hg_err *err)
{
    size_t n = b->squad->n_questions;

    if (b->options->questions && b->options->questions < n)
        n = b->options->questions;
    for (size_t i = 0; i < n; i++) {
        if (progress && i % PROGRESS_EVERY == 0)
            progress->report(progress->context, i, n);
        if (add_question(b, &b->squad->questions[i], err) < 0)
            return -1;
    }
    if (progress)
        progress->report(progress->context, n, n);
    return 0;
}

int wk_features_build(const struct wk_squad *squad, const struct wk_wordpiece *wp,
                      const struct wk_feature_options *options, const struct wk_progress *progress,
                      struct wk_features *out, struct hg_err *err)
{
    const struct wk_wordpiece_special *special = wk_wordpiece_special(wp);
    struct builder b = { .squad = squad, .wp = wp, .options = options };
    int rc = -1;

    *out = (struct wk_features){ 0 };
    b.rules = options->windows == WK_WINDOWS_ADVANCE ? WK_WORDPIECE_GOOGLE : WK_WORDPIECE_HF;
    if (check_options(options, err) == 0 && add_all(&b, progress, err) == 0) {
        struct wk_features parts = {
            .max_length = options->max_length,
            .pad = special->pad,
            .cls = special->cls,
            .sep = special->sep,
            .n = b.features.n,
            .n_questions = b.questions.n,
            .n_context = b.context.n,
            .n_question_ids = b.question.n,
            .items = b.features.items,
            .questions = b.questions.items,
            .question_ids = b.question.ids,
            .context_ids = b.context.ids,
            .starts = b.context.starts,
            .ends = b.context.ends,
        };

        rc = wk_block_pack(&parts, out, err);
    }
    wk_tokens_done(&b.context);
    wk_tokens_done(&b.question);
    wk_tokens_done(&b.answer);
    free(b.words);
    HG_VEC_DONE(&b.features);
    HG_VEC_DONE(&b.questions);
    return rc;
}

void wk_features_done(struct wk_features *f)
{
    free(f->memory);
    *f = (struct wk_features){ 0 };
}

void wk_feature_write(const struct wk_features *f, size_t i, int32_t *ids, int32_t *types)
{
    const struct wk_feature *item = &f->items[i];
    const struct wk_feature_question *q = &f->questions[item->question];
    uint32_t n = 0, second;

    ids[n++] = (int32_t)f->cls;
    for (uint32_t k = 0; k < q->n; k++)
        ids[n++] = (int32_t)f->question_ids[q->at + k];
    ids[n++] = (int32_t)f->sep;
    second = n;
    for (uint32_t k = 0; k < item->n; k++)
        ids[n++] = (int32_t)f->context_ids[item->at + k];
    ids[n++] = (int32_t)f->sep;
    for (uint32_t k = 0; k < n; k++)
        types[k] = k >= second;
}
