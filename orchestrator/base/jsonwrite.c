/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonwrite.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"

static void dump_special(unsigned char c, struct hg_buf *out)
{
    static const char short_names[] = "btn.fr"; /* 8 to 13; 11 has none */

    if (c == '"' || c == '\\')
        hg_buf_printf(out, "\\%c", c);
    else if (c >= 8 && c <= 13 && c != 11)
        hg_buf_printf(out, "\\%c", short_names[c - 8]);
    else
        hg_buf_printf(out, "\\u%04x", c);
}

/* May a control character or a direction mark, as hg_text_control finds them, begin with this byte? Few do. */
static bool may_be_control(unsigned char c)
{
    return c == 0x7f || c == 0xc2 || c >= 0xd8;
}

/* The canonical form has no choice of what is escaped. */
static void dump_string(const char *s, size_t n, bool canonical, struct hg_buf *out)
{
    size_t plain = 0; /* characters before i that stand for themselves, not yet appended */

    hg_buf_append(out, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool special = c < 0x20 || c == '"' || c == '\\';
        size_t control = !special && !canonical && may_be_control(c) ? hg_text_control(s + i) : 0;
        uint32_t cp = c;

        if (!special && !control) {
            plain++;
            continue;
        }
        hg_buf_append(out, s + i - plain, plain);
        plain = 0;
        if (special) {
            dump_special(c, out);
        } else {
            i += hg_text_utf8_next(s + i, &cp) - 1;
            hg_buf_printf(out, "\\u%04x", (unsigned)cp);
        }
    }
    hg_buf_append(out, s + n - plain, plain);
    hg_buf_append(out, "\"", 1);
}

void hg_json_dump_string(const char *s, size_t n, struct hg_buf *out)
{
    dump_string(s, n, false, out);
}

/* UTF-16 order of two UTF-8 strings: as bytes, but that U+E000..U+FFFF (lead bytes EE, EF) sort
 * behind the supplementary planes (lead bytes F0..F4), whose surrogates begin with D8. */
int hg_json_compare_keys(const char *ka, const char *kb)
{
    const unsigned char *a = (const unsigned char *)ka, *b = (const unsigned char *)kb;

    while (*a && *a == *b) {
        a++;
        b++;
    }
    if ((*a >= 0xee && *b >= 0xee) && ((*a >= 0xf0) != (*b >= 0xf0)))
        return *a >= 0xf0 ? -1 : 1;
    return *a - *b;
}

static int compare_utf16(const void *a, const void *b)
{
    return hg_json_compare_keys(*(const char *const *)a, *(const char *const *)b);
}

#define DUMP_WIDTH 98 /* columns of an indented list of scalars */

struct dump {
    struct hg_buf *out;
    unsigned flags;
};

static void dump_value(const struct dump *d, const json_t *value, int depth);

static void dump_newline(const struct dump *d, int depth)
{
    if (d->flags & HG_JSON_INDENT)
        hg_buf_printf(d->out, "\n%*s", depth * 2, "");
}

static void dump_member(const struct dump *d, const char *key, const json_t *value, int depth,
                        bool first)
{
    if (!first)
        hg_buf_puts(d->out, ",");
    dump_newline(d, depth);
    dump_string(key, strlen(key), d->flags & HG_JSON_SORT, d->out);
    hg_buf_puts(d->out, d->flags & HG_JSON_INDENT ? ": " : ":");
    dump_value(d, value, depth);
}

static void dump_sorted(const struct dump *d, const json_t *object, int depth)
{
    size_t n = json_object_size(object), i = 0;
    const char **keys = hg_alloc(n * sizeof *keys);
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
        keys[i++] = key;
    qsort(keys, n, sizeof *keys, compare_utf16);
    for (i = 0; i < n; i++)
        dump_member(d, keys[i], json_object_get(object, keys[i]), depth + 1, i == 0);
    free(keys);
}

static void dump_object(const struct dump *d, const json_t *object, int depth)
{
    bool first = true;
    const char *key;
    json_t *value;

    hg_buf_puts(d->out, "{");
    if (d->flags & HG_JSON_SORT) {
        dump_sorted(d, object, depth);
    } else {
        json_object_foreach((json_t *)object, key, value) {
            dump_member(d, key, value, depth + 1, first);
            first = false;
        }
    }
    if (json_object_size(object))
        dump_newline(d, depth);
    hg_buf_puts(d->out, "}");
}

static bool has_only_scalars(const json_t *array)
{
    json_t *value;
    size_t i;

    json_array_foreach(array, i, value)
        if (json_is_object(value) || json_is_array(value))
            return false;
    return true;
}

/* Lists of numbers and words fill their lines; a value starts a new line when it would pass WIDTH. */
static void dump_flat_array(const struct dump *d, const json_t *array, int depth)
{
    const struct dump compact = { .out = d->out, .flags = d->flags & ~(unsigned)HG_JSON_INDENT };
    bool indented = d->flags & HG_JSON_INDENT;
    json_t *value;
    size_t i;

    json_array_foreach(array, i, value) {
        size_t start = d->out->len;
        const char *newline;

        hg_buf_puts(d->out, i == 0 ? "" : indented ? ", " : ",");
        dump_value(&compact, value, depth);
        if (!indented || i == 0)
            continue;
        newline = memrchr(d->out->data, '\n', start);
        if (d->out->len - (newline ? (size_t)(newline + 1 - d->out->data) : 0) > DUMP_WIDTH) {
            d->out->len = start;
            hg_buf_puts(d->out, ",");
            dump_newline(d, depth + 1);
            dump_value(&compact, value, depth);
        }
    }
}

static void dump_array(const struct dump *d, const json_t *array, int depth)
{
    size_t i;
    json_t *value;

    hg_buf_puts(d->out, "[");
    if (has_only_scalars(array)) {
        dump_flat_array(d, array, depth);
    } else {
        json_array_foreach(array, i, value) {
            hg_buf_puts(d->out, i ? "," : "");
            dump_newline(d, depth + 1);
            dump_value(d, value, depth + 1);
        }
        dump_newline(d, depth);
    }
    hg_buf_puts(d->out, "]");
}

/* Whole numbers from 2^63 on would read back as integers, and most readers know none so large. The
 * canonical form has no choice. */
static void dump_real(const struct dump *d, double v)
{
    char number[32];

    hg_buf_append(d->out, number, hg_text_number_format(v, number));
    if (!(d->flags & HG_JSON_SORT) && fabs(v) >= 0x1p63 && !strchr(number, 'e'))
        hg_buf_puts(d->out, ".0");
}

static void dump_integer(const struct dump *d, json_int_t v)
{
    char number[32];

    hg_buf_append(d->out, number, hg_text_integer_format(v, number));
}

static void dump_value(const struct dump *d, const json_t *value, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        dump_object(d, value, depth);
        break;
    case JSON_ARRAY:
        dump_array(d, value, depth);
        break;
    case JSON_STRING:
        dump_string(json_string_value(value), json_string_length(value), d->flags & HG_JSON_SORT,
                    d->out);
        break;
    case JSON_INTEGER:
        dump_integer(d, json_integer_value(value));
        break;
    case JSON_REAL:
        dump_real(d, json_real_value(value));
        break;
    case JSON_TRUE:
        hg_buf_puts(d->out, "true");
        break;
    case JSON_FALSE:
        hg_buf_puts(d->out, "false");
        break;
    case JSON_NULL:
        hg_buf_puts(d->out, "null");
        break;
    }
}

void hg_json_dump(const json_t *value, unsigned flags, struct hg_buf *out)
{
    struct dump d = { .out = out, .flags = flags };

    dump_value(&d, value, 0);
}

void hg_json_dump_piece(const json_t *value, int depth, struct hg_buf *out)
{
    struct dump d = { .out = out, .flags = HG_JSON_INDENT };

    dump_value(&d, value, depth);
}

int hg_json_save(const char *path, const json_t *value, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    int rc;

    hg_json_dump(value, HG_JSON_INDENT, &text);
    hg_buf_puts(&text, "\n");
    rc = hg_fs_replace(path, text.data, text.len, 0600, err);
    hg_buf_done(&text);
    return rc;
}

json_t *hg_json_text(const char *text)
{
    json_t *value = json_string(text);
    struct hg_buf clean = HG_BUF_INIT;

    if (value)
        return value;
    while (*text) {
        uint32_t cp;
        size_t n = hg_text_utf8_next(text, &cp);

        hg_buf_append(&clean, cp == 0xfffd ? "\xef\xbf\xbd" : text, cp == 0xfffd ? 3 : n);
        text += n;
    }
    value = json_string(hg_buf_str(&clean));
    hg_buf_done(&clean);
    return value;
}

json_t *hg_json_path(const char *path, struct hg_err *err)
{
    json_t *value = json_string(path), *text;

    if (value)
        return value;
    text = hg_json_text(path);
    hg_err_set(err, HG_E_ENV, "the folder %s cannot hold a run: its name is not valid UTF-8",
               json_string_value(text));
    hg_err_hint(err, "jobs find their files by a plan in JSON, which must be UTF-8; "
                     "rename it, or work in another folder");
    json_decref(text);
    return NULL;
}

json_t *hg_json_number(double v)
{
    if (!isfinite(v))
        return json_null();
    if (v == floor(v) && fabs(v) < 9007199254740992.0)
        return json_integer((json_int_t)v);
    return json_real(v);
}

bool hg_json_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (!a || !b || json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach(a, i, value)
            if (!hg_json_equal(value, json_array_get(b, i)))
                return false;
        return true;
    }
    if (json_is_object(a)) {
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach((json_t *)a, key, value)
            if (!hg_json_equal(value, json_object_get(b, key)))
                return false;
        return true;
    }
    return json_equal(a, b);
}
