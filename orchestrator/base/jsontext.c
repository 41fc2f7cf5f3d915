/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsontext.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define DEPTH_MAX 32

static const char *skip_digits(const char *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Over digits; NULL if there are none. */
static const char *skip_some_digits(const char *p)
{
    const char *end = skip_digits(p);

    return end > p ? end : NULL;
}

enum hg_json_number hg_json_number_skip(const char **at)
{
    const char *whole = *at + (**at == '-'), *p = skip_digits(whole), *part;
    bool odd = p == whole || (*whole == '0' && p - whole > 1) || p - whole > 18;

    *at = p;
    if (odd || (*p != '.' && *p != 'e' && *p != 'E'))
        return odd ? HG_JSON_UNUSUAL : HG_JSON_WHOLE;
    if (*p == '.' && !(p = skip_some_digits(p + 1)))
        return HG_JSON_UNUSUAL;
    *at = p;
    if (*p != 'e' && *p != 'E')
        return HG_JSON_REAL;
    part = p + 1 + (p[1] == '-' || p[1] == '+');
    *at = skip_digits(part);
    return *at > part && *at - part <= 2 ? HG_JSON_REAL : HG_JSON_UNUSUAL;
}

struct members {
    struct hg_json_member *items;
    size_t n, cap;
};

struct reader {
    const char *text, *at, *end;
    char *out, *to;       /* what is written, and where to go on: never longer than the text */
    struct hg_buf sorted; /* room to put members into order */
    int depth;
};

static bool read_value(struct reader *r, struct members *top);

static void skip_space(struct reader *r)
{
    r->at = hg_json_blanks_skip(r->at);
}

/* Copy what was read from `start` on. */
static void copy_from(struct reader *r, const char *start)
{
    size_t n = (size_t)(r->at - start);

    memcpy(r->to, start, n);
    r->to += n;
}

static void copy_sign(struct reader *r)
{
    *r->to++ = *r->at++;
}

static size_t written(const struct reader *r)
{
    return (size_t)(r->to - r->out);
}

/* What only a parser can judge: numbers of many digits, strings with escapes or beyond ASCII. */
static bool is_read(const char *start, const char *end)
{
    json_t *value = json_loadb(start, (size_t)(end - start), JSON_DECODE_ANY, NULL);

    json_decref(value);
    return value != NULL;
}

/* Copy a string with its quotes. */
static bool read_string(struct reader *r)
{
    const char *start = r->at++;
    bool plain = true;

    for (; r->at < r->end && *r->at != '"'; r->at++) {
        plain = plain && (signed char)*r->at >= 0x20 && *r->at != '\\';
        r->at += *r->at == '\\' && r->at + 1 < r->end;
    }
    if (r->at >= r->end)
        return false;
    r->at++;
    copy_from(r, start);
    return plain || is_read(start, r->at);
}

/* Copy a number, or true, false, null. */
static bool read_word(struct reader *r)
{
    const char *start = r->at;
    bool usual = hg_json_number_skip(&r->at) != HG_JSON_UNUSUAL;

    if (!usual)
        r->at = start + strcspn(start, ",:]} \t\r\n\"{[");
    copy_from(r, start);
    return usual || is_read(start, r->at);
}

/* Between values: a comma goes on, `close` ends. */
static bool read_separator(struct reader *r, char close, bool *more)
{
    skip_space(r);
    *more = *r->at == ',';
    if (*r->at != ',' && *r->at != close)
        return false;
    copy_sign(r);
    skip_space(r);
    return true;
}

static bool read_list(struct reader *r)
{
    bool more = true;

    copy_sign(r);
    skip_space(r);
    if (*r->at == ']') {
        copy_sign(r);
        return true;
    }
    while (more)
        if (!read_value(r, NULL) || !read_separator(r, ']', &more))
            return false;
    return true;
}

/* A name of plain ASCII: its order by bytes is that by UTF-16 code units. */
static bool is_plain(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] >= 0x80 || (unsigned char)name[i] < 0x20 || name[i] == '\\')
            return false;
    return true;
}

static bool read_member(struct reader *r, struct members *list)
{
    struct hg_json_member *m = HG_VEC_PUSH(list);

    if (!m || *r->at != '"')
        return false;
    m->from = (size_t)(r->at - r->text);
    m->begin = written(r);
    if (!read_string(r))
        return false;
    m->name = m->begin + 1;
    m->name_len = written(r) - m->begin - 2;
    skip_space(r);
    if (*r->at != ':' || !is_plain(r->out + m->name, m->name_len))
        return false;
    copy_sign(r);
    m->value = written(r);
    skip_space(r);
    if (!read_value(r, NULL))
        return false;
    list->items[list->n - 1].end = written(r);
    list->items[list->n - 1].to = (size_t)(r->at - r->text);
    return true;
}

static int compare_names(const char *text, const struct hg_json_member *a,
                         const struct hg_json_member *b)
{
    size_t n = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(text + a->name, text + b->name, n);

    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int compare_members(const void *a, const void *b, void *text)
{
    return compare_names(text, a, b);
}

/* Names in order, none twice. */
static bool is_sorted(const char *text, const struct members *list)
{
    for (size_t i = 1; i < list->n; i++)
        if (compare_names(text, &list->items[i - 1], &list->items[i]) >= 0)
            return false;
    return true;
}

/* Put the members, which stand in out from `start` to its end, into order. */
static bool sort_members(struct reader *r, struct members *list, size_t start)
{
    size_t at = start;

    if (is_sorted(r->out, list))
        return true;
    qsort_r(list->items, list->n, sizeof *list->items, compare_members, r->out);
    if (!is_sorted(r->out, list))
        return false;
    hg_buf_clear(&r->sorted);
    for (size_t i = 0; i < list->n; i++) {
        struct hg_json_member *m = &list->items[i];
        size_t shift = at - m->begin; /* wraps; so does what it is added to */

        hg_buf_append(&r->sorted, i ? "," : "", i ? 1 : 0);
        shift += i ? 1 : 0;
        hg_buf_append(&r->sorted, r->out + m->begin, m->end - m->begin);
        m->begin += shift;
        m->name += shift;
        m->value += shift;
        m->end += shift;
        at = m->end;
    }
    if (r->sorted.failed || r->sorted.len + 1 != written(r) - start)
        return false;
    memcpy(r->out + start, r->sorted.data, r->sorted.len);
    return true;
}

/* The members of an object; `list` is empty. */
static bool read_members(struct reader *r, struct members *list)
{
    size_t start;
    bool more = true;

    copy_sign(r);
    start = written(r);
    skip_space(r);
    if (*r->at == '}') {
        copy_sign(r);
        return true;
    }
    while (more)
        if (!read_member(r, list) || !read_separator(r, '}', &more))
            return false;
    return sort_members(r, list, start);
}

static bool read_object(struct reader *r, struct members *top)
{
    struct members own = { 0 };
    bool ok = read_members(r, top ? top : &own);

    HG_VEC_DONE(&own);
    return ok;
}

static bool read_value(struct reader *r, struct members *top)
{
    bool ok;

    if (r->depth == DEPTH_MAX)
        return false;
    r->depth++;
    ok = *r->at == '{'   ? read_object(r, top)
         : *r->at == '[' ? read_list(r)
         : *r->at == '"' ? read_string(r)
                         : read_word(r);
    r->depth--;
    return ok;
}

bool hg_json_canonical_read(struct hg_json_canonical *c, const char *text, size_t len)
{
    struct members top = { c->items, 0, c->cap };
    struct reader r = { .text = text, .at = text, .end = text + len };
    bool ok;

    hg_buf_clear(&c->text);
    c->n = 0;
    if (hg_buf_reserve(&c->text, len) < 0)
        return false;
    r.out = r.to = c->text.data;
    skip_space(&r);
    ok = *r.at == '{' && read_value(&r, &top) && !r.sorted.failed;
    skip_space(&r);
    ok = ok && r.at == r.end;
    *r.to = '\0';
    c->text.len = (size_t)(r.to - r.out);
    hg_buf_done(&r.sorted);
    c->items = top.items;
    c->cap = top.cap;
    c->n = ok ? top.n : 0;
    return ok;
}

const struct hg_json_member *hg_json_canonical_find(const struct hg_json_canonical *c,
                                                    const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].name_len == len && memcmp(c->text.data + c->items[i].name, name, len) == 0)
            return &c->items[i];
    return NULL;
}

void hg_json_canonical_done(struct hg_json_canonical *c)
{
    hg_buf_done(&c->text);
    HG_VEC_DONE(c);
}
