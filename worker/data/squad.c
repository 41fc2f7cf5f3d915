/* SPDX-License-Identifier: Apache-2.0 */
#include "data/squad.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "data/gzfile.h"
#include "data/unicode.h"

/* From code points to bytes of one text without walking it from its beginning: the byte of every
 * STEP-th code point. */
#define STEP 64

struct char_index {
    size_t *items;
    size_t n, cap;
    size_t n_chars;
};

struct reader {
    const struct hg_json_doc *doc;
    const struct wk_squad_options *options;
    struct hg_errs *errs;
    struct hg_buf pointer; /* where we are in the document */
    struct wk_squad *squad;
    struct {
        struct wk_squad_paragraph *items;
        size_t n, cap;
    } paragraphs;
    struct {
        struct wk_squad_question *items;
        size_t n, cap;
    } questions;
    struct {
        struct wk_squad_answer *items;
        size_t n, cap;
    } answers;
    size_t strings_len;      /* used of squad->strings */
    json_t *ids;             /* the ids seen, to find doubles */
    json_t *nothing;         /* "" */
    struct char_index index; /* of the paragraph being read */
};

/* ---- Places ---- */

static size_t enter(struct reader *r, const char *member)
{
    size_t before = r->pointer.len;

    hg_json_pointer_push(&r->pointer, member);
    return before;
}

static size_t enter_item(struct reader *r, size_t i)
{
    size_t before = r->pointer.len;

    hg_buf_printf(&r->pointer, "/%zu", i);
    return before;
}

static void leave(struct reader *r, size_t before)
{
    r->pointer.len = before;
    r->pointer.data[before] = '\0';
}

#define REPORT(r, ...) \
    ((void)hg_json_error((r)->doc, hg_buf_str(&(r)->pointer), (r)->errs, __VA_ARGS__))

/* Go on only while it is worth it: a file with errors everywhere need not be read to its end. */
static bool give_up(const struct reader *r)
{
    return r->errs->n >= HG_ERRS_MAX;
}

/* ---- Values ---- */

/* A member of the object at the pointer, of the type wanted; NULL with an error added. */
static const json_t *get(struct reader *r, const json_t *object, const char *name, json_type type)
{
    static const char *const names[] = { [JSON_OBJECT] = "an object",
                                         [JSON_ARRAY] = "a list",
                                         [JSON_STRING] = "a string",
                                         [JSON_INTEGER] = "an integer" };
    const json_t *value = json_object_get(object, name);
    size_t here;

    if (!value) {
        REPORT(r, "\"%s\" is missing", name);
        return NULL;
    }
    if (json_typeof(value) == type)
        return value;
    here = enter(r, name);
    REPORT(r, "expected %s, found %s", names[type], hg_json_type_name(value));
    leave(r, here);
    return NULL;
}

static bool is_object(struct reader *r, const json_t *value)
{
    if (json_is_object(value))
        return true;
    REPORT(r, "expected an object, found %s", hg_json_type_name(value));
    return false;
}

/* A text that scoring does not need: "" where only answers are read and it is absent or something else. */
static const json_t *get_text(struct reader *r, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!r->options->answers_only)
        return get(r, object, name, JSON_STRING);
    return json_is_string(value) ? value : r->nothing;
}

static const char *keep(struct reader *r, const json_t *string)
{
    size_t n = json_string_length(string) + 1;
    char *kept = r->squad->strings + r->strings_len;

    memcpy(kept, json_string_value(string), n);
    r->strings_len += n;
    return kept;
}

/* ---- Offsets ---- */

static void index_text(struct reader *r, const char *text, size_t len)
{
    struct char_index *index = &r->index;
    size_t chars = 0;

    index->n = 0;
    for (size_t i = 0; i < len; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (chars++ % STEP == 0)
            *HG_VEC_PUSH(index) = i;
    }
    index->n_chars = chars;
}

/* The byte where a code point of the paragraph begins; at < n_chars. */
static size_t byte_of(const struct char_index *index, const char *text, size_t at)
{
    size_t i = index->items[at / STEP];

    for (size_t left = at % STEP; left; left--) {
        i++;
        while (((unsigned char)text[i] & 0xc0) == 0x80)
            i++;
    }
    return i;
}

/* ---- The parts, from the inside out ---- */

/* At most n bytes of a text, cut between characters, for messages. */
static int shown(const char *text, size_t len, size_t n)
{
    if (len <= n)
        return (int)len;
    while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return (int)n;
}

/* Is the answer what the paragraph has at its offset? If not, an error is added unless such answers
 * are skipped. */
static bool answer_fits(struct reader *r, const struct wk_squad_paragraph *p, const char *text,
                        size_t len, json_int_t start, size_t n_chars)
{
    size_t total = r->index.n_chars, here = enter(r, "answer_start");
    bool fits = false;
    size_t at;

    if (start < 0 || (uint64_t)start >= total || n_chars > total - (size_t)start) {
        if (!r->options->skip_bad_answers)
            REPORT(r, "the answer's %zu characters begin at %lld of a text of %zu", n_chars,
                   (long long)start, total);
        goto out;
    }
    at = byte_of(&r->index, p->context, (size_t)start);
    fits = len <= p->len - at && memcmp(p->context + at, text, len) == 0;
    if (!fits && !r->options->skip_bad_answers)
        REPORT(r, "the text has \"%.*s\" at %lld, not \"%.*s\"",
               shown(p->context + at, p->len - at, len < 60 ? len : 60), p->context + at,
               (long long)start, shown(text, len, 60), text);
out:
    leave(r, here);
    return fits;
}

/* Where the text has the answer. Returns false with an error added, or with the answer counted as dropped. */
static bool find_answer(struct reader *r, const struct wk_squad_paragraph *p, const json_t *object,
                        const json_t *text, uint32_t n_chars, uint32_t *at)
{
    const json_t *start = get(r, object, "answer_start", JSON_INTEGER);

    if (!start)
        return false;
    if (n_chars == 0) {
        REPORT(r, "the answer is empty");
        return false;
    }
    if (!answer_fits(r, p, json_string_value(text), json_string_length(text),
                     json_integer_value(start), n_chars)) {
        r->squad->dropped_answers++;
        return false;
    }
    *at = (uint32_t)json_integer_value(start);
    return true;
}

static void read_answer(struct reader *r, const json_t *object)
{
    const struct wk_squad_paragraph *p = &r->paragraphs.items[r->paragraphs.n - 1];
    const json_t *text;
    struct wk_squad_answer *a;
    uint32_t start = 0, n_chars;

    if (!is_object(r, object) || !(text = get(r, object, "text", JSON_STRING)))
        return;
    n_chars = (uint32_t)wk_utf8_count(json_string_value(text), json_string_length(text));
    if (!r->options->answers_only && !find_answer(r, p, object, text, n_chars, &start))
        return;
    a = HG_VEC_PUSH(&r->answers);
    a->text = keep(r, text);
    a->len = json_string_length(text);
    a->start = start;
    a->end = start + n_chars;
}

/* Do the members `answers` and `is_impossible` agree? Notes whether the file is of version 2. */
static bool is_consistent(struct reader *r, const json_t *question, const json_t *answers)
{
    const json_t *impossible = json_object_get(question, "is_impossible");
    bool none = json_array_size(answers) == 0;

    if (impossible && !json_is_boolean(impossible)) {
        size_t here = enter(r, "is_impossible");

        REPORT(r, "expected true or false, found %s", hg_json_type_name(impossible));
        leave(r, here);
        return false;
    }
    if (impossible || (none && r->options->answers_only))
        r->squad->v2 = true;
    if (none && !json_is_true(impossible) && (impossible || !r->squad->v2)) {
        REPORT(r, "the question has no answer%s",
               impossible ? ", but is_impossible is false" : " (in version 1.1 each has one)");
        return false;
    }
    if (!none && json_is_true(impossible)) {
        REPORT(r, "is_impossible is true, but the question has answers");
        return false;
    }
    return true;
}

static bool is_new_id(struct reader *r, const json_t *id)
{
    size_t here = enter(r, "id");
    bool fine = true;

    if (json_string_length(id) == 0) {
        REPORT(r, "the id is empty");
        fine = false;
    } else if (json_object_get(r->ids, json_string_value(id))) {
        REPORT(r, "a second question with the id \"%.60s\"", json_string_value(id));
        fine = false;
    } else {
        json_object_set_new_nocheck(r->ids, json_string_value(id), json_true());
    }
    leave(r, here);
    return fine;
}

/* Every item of a member that is a list, each at its own place. */
static void read_each(struct reader *r, const char *member, const json_t *list,
                      void (*read)(struct reader *r, const json_t *object))
{
    size_t here = enter(r, member), i;
    json_t *object;

    json_array_foreach(list, i, object) {
        size_t item = enter_item(r, i);

        if (!give_up(r))
            read(r, object);
        leave(r, item);
    }
    leave(r, here);
}

static void read_question(struct reader *r, const json_t *object)
{
    const json_t *id, *text, *answers;
    struct wk_squad_question *q;
    size_t first = r->answers.n;

    if (!is_object(r, object) || !(id = get(r, object, "id", JSON_STRING)) ||
        !(text = get_text(r, object, "question")) ||
        !(answers = get(r, object, "answers", JSON_ARRAY)) || !is_new_id(r, id) ||
        !is_consistent(r, object, answers))
        return;
    read_each(r, "answers", answers, read_answer);
    if (r->answers.n == first && json_array_size(answers)) { /* all were bad ones */
        r->squad->dropped_questions++;
        return;
    }
    q = HG_VEC_PUSH(&r->questions);
    q->id = keep(r, id);
    q->text = keep(r, text);
    q->len = json_string_length(text);
    q->paragraph = (uint32_t)(r->paragraphs.n - 1);
    q->first_answer = (uint32_t)first;
    q->n_answers = (uint32_t)(r->answers.n - first);
}

static void read_paragraph(struct reader *r, const json_t *object)
{
    const json_t *context, *questions;
    struct wk_squad_paragraph *p;

    if (!is_object(r, object) || !(context = get_text(r, object, "context")) ||
        !(questions = get(r, object, "qas", JSON_ARRAY)))
        return;
    p = HG_VEC_PUSH(&r->paragraphs);
    p->context = keep(r, context);
    p->len = json_string_length(context);
    index_text(r, p->context, p->len);
    read_each(r, "qas", questions, read_question);
}

static void read_article(struct reader *r, const json_t *object)
{
    const json_t *paragraphs;

    if (!is_object(r, object) || !(paragraphs = get(r, object, "paragraphs", JSON_ARRAY)))
        return;
    r->squad->n_articles++;
    read_each(r, "paragraphs", paragraphs, read_paragraph);
}

/* "version" is optional: the shape of the questions tells as well. */
static void read_version(struct reader *r, const json_t *root)
{
    const json_t *version = json_object_get(root, "version");
    size_t here;

    if (!version)
        return;
    if (json_is_string(version) && json_string_length(version) < sizeof r->squad->version) {
        const char *v = json_string_value(version);

        strcpy(r->squad->version, v);
        r->squad->v2 = v[v[0] == 'v'] == '2';
        return;
    }
    here = enter(r, "version");
    REPORT(r, "expected a string such as \"1.1\" or \"v2.0\"");
    leave(r, here);
}

static void read_root(struct reader *r, const json_t *root)
{
    const json_t *articles;
    size_t here;

    if (!is_object(r, root))
        return;
    read_version(r, root);
    articles = get(r, root, "data", JSON_ARRAY);
    if (!articles)
        return;
    read_each(r, "data", articles, read_article);
    here = enter(r, "data");
    if (!give_up(r) && r->questions.n == 0 && r->errs->n == 0)
        REPORT(r, "it has no questions");
    leave(r, here);
}

/* Everything read is handed to the data set, also after a failure. */
static void hand_over(struct reader *r)
{
    struct wk_squad *s = r->squad;

    s->paragraphs = r->paragraphs.items;
    s->n_paragraphs = r->paragraphs.n;
    s->questions = r->questions.items;
    s->n_questions = r->questions.n;
    s->answers = r->answers.items;
    s->n_answers = r->answers.n;
    json_decref(r->ids);
    json_decref(r->nothing);
    free(r->index.items);
    hg_buf_done(&r->pointer);
}

static int read_document(const struct hg_json_doc *doc, const struct wk_squad_options *options,
                         struct wk_squad *squad, struct hg_errs *errs)
{
    size_t before = errs->n + errs->dropped;
    struct reader r = { .doc = doc, .options = options, .errs = errs, .squad = squad };

    squad->strings = hg_alloc(doc->len + 1); /* is enough: strings are shorter than their JSON */
    r.ids = json_object();
    r.nothing = json_string("");
    read_root(&r, doc->root);
    hand_over(&r);
    if (errs->n + errs->dropped == before)
        return 0;
    wk_squad_done(squad);
    return -1;
}

int wk_squad_parse(const char *name, const char *text, size_t len,
                   const struct wk_squad_options *options, struct wk_squad *squad,
                   struct hg_errs *errs)
{
    static const struct wk_squad_options strict = { 0 };
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc;

    *squad = (struct wk_squad){ 0 };
    if (hg_json_parse(name, text, len, &doc, &err) < 0)
        return hg_errs_add(errs, &err);
    rc = read_document(&doc, options ? options : &strict, squad, errs);
    hg_json_doc_done(&doc);
    return rc;
}

int wk_squad_load(const char *path, const struct wk_squad_options *options, struct wk_squad *squad,
                  struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    int rc;

    *squad = (struct wk_squad){ 0 };
    if (wk_gzfile_read(path, WK_SQUAD_BYTES_MAX, &text, &err) == 0)
        rc = wk_squad_parse(path, hg_buf_str(&text), text.len, options, squad, errs);
    else
        rc = hg_errs_add(errs, &err);
    hg_buf_done(&text);
    return rc;
}

void wk_squad_done(struct wk_squad *squad)
{
    free(squad->paragraphs);
    free(squad->questions);
    free(squad->answers);
    free(squad->strings);
    *squad = (struct wk_squad){ 0 };
}
