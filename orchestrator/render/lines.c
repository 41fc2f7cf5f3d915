/* SPDX-License-Identifier: Apache-2.0 */
#include "render/lines.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bar.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/map.h"
#include "base/vec.h"
#include "typeset/escape.h"
#include "render/sentences.h"

#define EOL "\r\n"
#define PIECE 65536  /* bytes that are written at a time */
#define NAME_MAX 256 /* longer names have nothing below them */

/* Kinds of values, as bits. */
enum { KIND_INT = 1, KIND_REAL = 2, KIND_BOOL = 4, KIND_TEXT = 8 };

/* The latest value of a column and its text: few columns have another value in every line. */
struct latest {
    json_t *value;
    struct hg_buf text;
};

/* A place in a result where something was found: a dotted path. */
struct path {
    char *name;
    struct latest latest;
    unsigned kinds;
    bool column;     /* some result has a plain value there */
    bool left_out;   /* some result has a list or an object there that its line has not */
    bool wanted;     /* it was a column in an earlier round */
    size_t last;     /* line that has it, from 1 */
    const char *own; /* while writing a line: its field there, len bytes; NULL: none */
    size_t len;
};

/* A key of the cells. */
struct key {
    char *name;
    struct latest latest;
    unsigned kinds;
    const char *own;
    size_t len;
};

struct hg_lines {
    const struct hg_style *style; /* NULL: JSON */
    struct {
        struct path *items;
        size_t n, cap;
    } paths;
    struct {
        struct key *items;
        size_t n, cap;
    } keys;
    struct {
        size_t *items; /* paths that are columns, in order of appearance */
        size_t n, cap;
    } columns;
    struct hg_map path_index, key_index;
    struct hg_buf path, field, record; /* room */
    bool odd;                          /* the members have names that dotted paths cannot tell */
    bool again;
    struct {
        const struct hg_results **items;
        size_t n, cap;
    } sets;
    size_t n;            /* lines */
    struct hg_buf bytes; /* the records of the lines */
    size_t memory_max;
    FILE *file; /* has them instead; NULL: not yet */
    char *marked_id;
};

struct hg_lines *hg_lines_create(const struct hg_style *style, size_t memory_max)
{
    struct hg_lines *l = hg_alloc_zeroed(1, sizeof *l);

    l->style = style;
    l->memory_max = memory_max;
    return l;
}

static void latest_done(struct latest *latest)
{
    json_decref(latest->value);
    hg_buf_done(&latest->text);
}

void hg_lines_free(struct hg_lines *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->paths.n; i++) {
        latest_done(&l->paths.items[i].latest);
        free(l->paths.items[i].name);
    }
    for (size_t i = 0; i < l->keys.n; i++) {
        latest_done(&l->keys.items[i].latest);
        free(l->keys.items[i].name);
    }
    HG_VEC_DONE(&l->paths);
    HG_VEC_DONE(&l->keys);
    HG_VEC_DONE(&l->columns);
    HG_VEC_DONE(&l->sets);
    hg_map_done(&l->path_index);
    hg_map_done(&l->key_index);
    hg_buf_done(&l->path);
    hg_buf_done(&l->field);
    hg_buf_done(&l->record);
    hg_buf_done(&l->bytes);
    if (l->file)
        fclose(l->file);
    free(l->marked_id);
    free(l);
}

/* ---- Fields: CSV in a style; without one JSON, in which nothing is lost ---- */

static const char *separator(const struct hg_style *style)
{
    return style ? hg_csv_separator(style) : ",";
}

static void append_text(const struct hg_style *style, const char *text, struct hg_buf *out)
{
    if (style)
        hg_csv_append_text(style, text, out);
    else
        hg_json_dump_string(text, strlen(text), out);
}

/* One that need not stay a text for a program that guesses; NULL: nothing. */
static void append_word(const struct hg_style *style, const char *text, struct hg_buf *out)
{
    if (!style)
        text ? append_text(style, text, out) : hg_buf_puts(out, "null");
    else if (text)
        hg_csv_append(style, text, out);
}

static void append_value(const struct hg_style *style, const char *name, const json_t *value,
                         struct hg_buf *out)
{
    if (style)
        hg_csv_append_json(style, name, value, out);
    else if (value && !json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, out);
}

/* The type that SQL has for values of these kinds; "": any. */
static const char *type_of(unsigned kinds)
{
    switch (kinds) {
    case KIND_INT:
    case KIND_INT | KIND_BOOL:
        return "INTEGER";
    case KIND_REAL:
    case KIND_REAL | KIND_INT:
        return "REAL";
    case KIND_BOOL:
        return "BOOLEAN";
    case KIND_TEXT:
        return "TEXT";
    default:
        return "";
    }
}

static unsigned kind_of(const json_t *value)
{
    if (!value || json_is_null(value))
        return 0;
    return json_is_integer(value)   ? KIND_INT
           : json_is_real(value)    ? KIND_REAL
           : json_is_boolean(value) ? KIND_BOOL
                                    : KIND_TEXT;
}

/* The name of a column, in JSON with its type: ["nodes","INTEGER"]. */
static void append_name(const struct hg_style *style, const char *name, unsigned kinds,
                        struct hg_buf *out)
{
    hg_buf_puts(out, style ? "" : "[");
    append_word(style, name, out);
    if (!style)
        hg_buf_printf(out, ",\"%s\"]", type_of(kinds));
}

void hg_csv_append_json(const struct hg_style *style, const char *name, const json_t *value,
                        struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    if (json_is_number(value) && hg_metric_is_time(name)) {
        hg_csv_append_seconds(style, json_number_value(value), out);
    } else if (json_is_real(value)) {
        hg_csv_append_number(style, json_real_value(value), out);
    } else if (json_is_integer(value) || json_is_boolean(value)) {
        hg_json_dump(value, HG_JSON_COMPACT, out);
    } else if (json_is_string(value)) {
        hg_csv_append_text(style, json_string_value(value), out);
    } else if (value && !json_is_null(value)) {
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
        hg_csv_append(style, hg_buf_str(&text), out);
    }
    hg_buf_done(&text);
}

void hg_csv_append_origin(const struct hg_style *style, const struct hg_results *const *sets,
                          size_t n, const struct hg_results *set, struct hg_buf *out)
{
    static const char *const members[] = { "source", "note" }, *const names[] = { "set_source",
                                                                                  "set_note" };

    for (size_t m = 0; m < 2; m++) {
        bool any = false;

        for (size_t i = 0; i < n && !any; i++)
            any = hg_set_text(sets[i], members[m]);
        if (!any)
            continue;
        hg_buf_puts(out, separator(style));
        if (!set)
            append_name(style, names[m], KIND_TEXT, out);
        else
            append_word(style, hg_set_text(set, members[m]), out);
    }
    hg_buf_puts(out, separator(style));
    if (set)
        append_word(style, HG_MADE_BY, out);
    else
        append_name(style, "made_by", KIND_TEXT, out);
}

/* ---- Names ---- */

static struct path *find_path(struct hg_lines *l, const char *name)
{
    size_t at = hg_map_put(&l->path_index, name, strlen(name), l->paths.n);

    if (at == l->paths.n)
        *HG_VEC_PUSH(&l->paths) = (struct path){ .name = hg_strdup(name) };
    return &l->paths.items[at];
}

/* Which of the keys. */
static size_t find_key(struct hg_lines *l, const char *name)
{
    size_t at = hg_map_put(&l->key_index, name, strlen(name), l->keys.n);

    if (at == l->keys.n)
        *HG_VEC_PUSH(&l->keys) = (struct key){ .name = hg_strdup(name) };
    return at;
}

/* ---- A line as a record: its length, three texts, then which place and text of each field ---- */

static void put_count(struct hg_buf *out, uint64_t n)
{
    unsigned char bytes[10];
    size_t len = 0;

    do {
        bytes[len++] = (unsigned char)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
        n >>= 7;
    } while (n);
    hg_buf_append(out, bytes, len);
}

static uint64_t take_count(const char **at)
{
    uint64_t n = 0;
    unsigned shift = 0;
    unsigned char byte;

    do {
        byte = (unsigned char)*(*at)++;
        n |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return n;
}

static void put_text(struct hg_buf *out, const char *text, size_t len)
{
    put_count(out, len);
    hg_buf_append(out, text, len);
}

static const char *take_text(const char **at, size_t *len)
{
    const char *text;

    *len = take_count(at);
    text = *at;
    *at += *len;
    return text;
}

/* place: twice the key's number, or twice the path's and one. Nothing is kept of an empty field. */
static void put_field(struct hg_lines *l, uint64_t place, const char *name, json_t *value,
                      struct latest *latest)
{
    if (value != latest->value) {
        json_decref(latest->value);
        latest->value = json_incref(value);
        hg_buf_clear(&latest->text);
        append_value(l->style, name, value, &latest->text);
    }
    if (latest->text.len == 0)
        return;
    put_count(&l->record, place);
    put_text(&l->record, latest->text.data, latest->text.len);
}

/* Behind what was put into `field`. */
static void put_own(struct hg_lines *l, const char *text, bool first)
{
    hg_buf_puts(&l->field, first ? "" : separator(l->style));
    append_text(l->style, text, &l->field);
}

/* The set of a line; lines of a set stand together. */
static size_t find_set(struct hg_lines *l, const struct hg_results *set)
{
    if (!l->sets.n || l->sets.items[l->sets.n - 1] != set)
        *HG_VEC_PUSH(&l->sets) = set;
    return l->sets.n - 1;
}

static void put_head(struct hg_lines *l, const struct hg_results *set, const struct hg_result *r)
{
    hg_buf_clear(&l->record);
    put_count(&l->record, find_set(l, set));
    put_text(&l->record, r->id, strlen(r->id));
    hg_buf_clear(&l->path);
    hg_buf_puts(&l->path, set->name);
    hg_buf_puts(&l->path, *set->run ? "/" : "");
    hg_buf_puts(&l->path, set->run);
    hg_buf_clear(&l->field);
    put_own(l, hg_buf_str(&l->path), true);
    put_own(l, r->id, false);
    put_own(l, r->attempt, false);
    put_text(&l->record, hg_buf_str(&l->field), l->field.len);
    hg_buf_clear(&l->field);
    put_own(l, r->status, true);
    hg_buf_puts(&l->field, separator(l->style));
    hg_buf_puts(&l->field, r->added ? "true" : "false");
    put_own(l, r->baseline_id, false);
    put_text(&l->record, hg_buf_str(&l->field), l->field.len);
}

/* ---- The members of a result ---- */

static bool is_own(const char *name)
{
    static const char *const own[] = { "cell",    "id",         "baseline_id", "added",
                                       "attempt", "attempt_in", "status" };

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0)
            return true;
    return false;
}

/* Has a name dots in it, so that two members may have one path? */
static bool is_odd(const json_t *object)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value) {
        if (!*name || strchr(name, '.') || strlen(name) >= NAME_MAX || is_odd(value))
            return true;
    }
    return false;
}

static json_t *value_at(const json_t *object, const char *path)
{
    while (object) {
        json_t *value = json_object_get(object, path);
        char name[NAME_MAX];
        size_t n = strcspn(path, ".");

        if (value || !path[n] || n >= sizeof name)
            return value;
        memcpy(name, path, n);
        name[n] = '\0';
        object = json_object_get(object, name);
        path += n + 1;
    }
    return NULL;
}

static void add_column(struct hg_lines *l, struct path *path)
{
    *HG_VEC_PUSH(&l->columns) = (size_t)(path - l->paths.items);
    path->column = true;
    if (path->left_out && !path->wanted)
        l->again = path->wanted = true;
}

/* What stands at l->path. */
static void put_value(struct hg_lines *l, const json_t *members, json_t *value)
{
    struct path *path = find_path(l, hg_buf_str(&l->path));
    bool plain = !json_is_object(value) && !json_is_array(value);

    if (plain && !path->column)
        add_column(l, path);
    if (!path->column && !path->wanted)
        path->left_out = true;
    else if (path->last != l->n) {
        json_t *own = l->odd ? value_at(members, path->name) : value;

        path->kinds |= kind_of(own);
        put_field(l, 2 * (uint64_t)(path - l->paths.items) + 1, path->name, own, &path->latest);
    }
    path->last = l->n;
}

static void put_members(struct hg_lines *l, const json_t *members, const json_t *object)
{
    size_t keep = l->path.len;
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value) {
        if (keep == 0 && is_own(name))
            continue;
        hg_buf_puts(&l->path, keep ? "." : "");
        hg_buf_puts(&l->path, name);
        put_value(l, members, value);
        if (json_is_object(value))
            put_members(l, members, value);
        l->path.len = keep;
        if (l->path.data)
            l->path.data[keep] = '\0';
    }
}

/* ---- Keeping ---- */

static int keep_record(struct hg_lines *l, struct hg_err *err)
{
    FILE *file = l->file;

    hg_buf_clear(&l->field);
    put_count(&l->field, l->record.len);
    if (!file) {
        hg_buf_append(&l->bytes, l->field.data, l->field.len);
        hg_buf_append(&l->bytes, l->record.data, l->record.len);
        if (l->bytes.len <= l->memory_max)
            return 0;
        l->file = file = hg_fs_scratch(err);
        if (!file || fwrite(l->bytes.data, 1, l->bytes.len, file) != l->bytes.len)
            return file ? hg_fs_scratch_failed(err) : -1;
        hg_buf_done(&l->bytes);
        return 0;
    }
    if (fwrite(l->field.data, 1, l->field.len, file) != l->field.len ||
        fwrite(l->record.data, 1, l->record.len, file) != l->record.len)
        return hg_fs_scratch_failed(err);
    return 0;
}

int hg_lines_add(struct hg_lines *l, const struct hg_results *set, const struct hg_result *r,
                 const json_t *members, struct hg_err *err)
{
    const char *name;
    json_t *value;

    l->n++;
    put_head(l, set, r);
    json_object_foreach((json_t *)r->cell, name, value) {
        size_t key = find_key(l, name);

        l->keys.items[key].kinds |= kind_of(value);
        put_field(l, 2 * (uint64_t)key, "", value, &l->keys.items[key].latest);
    }
    l->odd = is_odd(members);
    hg_buf_clear(&l->path);
    put_members(l, members, members);
    return keep_record(l, err);
}

bool hg_lines_again(struct hg_lines *l)
{
    if (!l->again)
        return false;
    for (size_t i = 0; i < l->paths.n; i++) {
        l->paths.items[i].column = l->paths.items[i].left_out = false;
        l->paths.items[i].last = 0;
    }
    l->columns.n = l->n = l->sets.n = 0;
    l->again = false;
    hg_buf_done(&l->bytes);
    if (l->file)
        fclose(l->file);
    l->file = NULL;
    return true;
}

/* ---- Writing ---- */

/* Text on its way, and the records it is made of. */
struct writing {
    struct hg_lines *l;
    const char *at; /* the next record, if they are in memory */
    struct hg_buf out;
    hg_lines_put_fn put;
    void *context;
    struct hg_err *err;
};

/* Returns the next record and, behind it, *end; NULL with err set: the file cannot be read. */
static const char *next_record(struct writing *w, const char **end)
{
    struct hg_lines *l = w->l;
    const char *text;
    size_t len = 0;

    if (!l->file) {
        text = take_text(&w->at, &len);
        *end = text + len;
        return text;
    }
    for (int byte = 0x80, shift = 0; byte & 0x80 && shift < 64; shift += 7) {
        byte = getc_unlocked(l->file);
        if (byte == EOF)
            break;
        len |= (size_t)(byte & 0x7f) << shift;
    }
    hg_buf_clear(&l->record);
    hg_buf_reserve(&l->record, len);
    if (fread(l->record.data, 1, len, l->file) != len) {
        hg_fs_scratch_failed(w->err);
        return NULL;
    }
    *end = l->record.data + len;
    return l->record.data;
}

static int flush(struct writing *w, size_t at_least)
{
    int rc;

    if (w->out.len <= at_least)
        return 0;
    rc = w->put(w->context, w->out.data, w->out.len, w->err);
    hg_buf_clear(&w->out);
    return rc;
}

static void separate(struct writing *w, const char *text, size_t len)
{
    hg_buf_puts(&w->out, separator(w->l->style));
    hg_buf_append(&w->out, text, len);
}

/* What a line has of a key or a path; text NULL: nothing. */
static void write_own(struct writing *w, const char *text, size_t len)
{
    if (text)
        separate(w, text, len);
    else
        separate(w, "null", w->l->style ? 0 : 4);
}

static void end_line(struct writing *w)
{
    hg_buf_puts(&w->out, w->l->style ? EOL : "]\n");
}

/* A key of the cells that is also called like a result keeps its name; the result is "result.X". */
static void write_header(struct writing *w, const size_t *places, const char *const *keys,
                         size_t n_keys)
{
    static const char *const own[] = { "run",    "id",    "attempt",    "counts",
                                       "status", "added", "baseline_id" };
    const struct hg_lines *l = w->l;
    struct hg_map taken = HG_MAP_INIT;

    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        hg_buf_puts(&w->out, i ? separator(l->style) : l->style ? "" : "[");
        append_name(l->style, own[i], i == 3 || i == 5 ? KIND_BOOL : KIND_TEXT, &w->out);
    }
    for (size_t k = 0; k < n_keys; k++) {
        separate(w, "", 0);
        append_name(l->style, keys[k],
                    places[k] == HG_MAP_NONE ? 0 : l->keys.items[places[k]].kinds, &w->out);
        hg_map_put(&taken, keys[k], strlen(keys[k]), k);
    }
    for (size_t i = 0; i < l->columns.n; i++) {
        const struct path *path = &l->paths.items[l->columns.items[i]];
        bool taken_too = hg_map_find(&taken, path->name, strlen(path->name)) != HG_MAP_NONE;
        char *name = hg_str_printf("%s%s", taken_too ? "result." : "", path->name);

        separate(w, "", 0);
        append_name(l->style, name, path->kinds, &w->out);
        free(name);
    }
    hg_map_done(&taken);
    hg_csv_append_origin(l->style, l->sets.items, l->sets.n, NULL, &w->out);
    end_line(w);
}

/* Where each field of a record goes. */
static void spread_fields(struct hg_lines *l, const char *at, const char *end)
{
    for (size_t i = 0; i < l->keys.n; i++)
        l->keys.items[i].own = NULL;
    for (size_t i = 0; i < l->columns.n; i++)
        l->paths.items[l->columns.items[i]].own = NULL;
    while (at < end) {
        uint64_t place = take_count(&at);
        size_t len;
        const char *text = take_text(&at, &len);

        if (place & 1) {
            l->paths.items[place / 2].own = text;
            l->paths.items[place / 2].len = len;
        } else {
            l->keys.items[place / 2].own = text;
            l->keys.items[place / 2].len = len;
        }
    }
}

/* keys: which of the lines' keys each column is; HG_MAP_NONE: no result has it. */
static void write_line(struct writing *w, const char *at, const char *end, unsigned flags,
                       const size_t *keys, size_t n_keys)
{
    const char *counts = flags & HG_LINE_COUNTS ? "true" : "false", *text;
    struct hg_lines *l = w->l;
    const struct hg_results *set = l->sets.items[take_count(&at)];
    size_t len;

    text = take_text(&at, &len);
    if (flags & HG_LINE_MARKED) {
        free(l->marked_id);
        l->marked_id = hg_strndup(text, len);
    }
    text = take_text(&at, &len);
    hg_buf_puts(&w->out, l->style ? "" : "[");
    hg_buf_append(&w->out, text, len);
    separate(w, counts, strlen(counts));
    text = take_text(&at, &len);
    separate(w, text, len);
    spread_fields(l, at, end);
    for (size_t k = 0; k < n_keys; k++) {
        const struct key *key = keys[k] == HG_MAP_NONE ? NULL : &l->keys.items[keys[k]];

        write_own(w, key ? key->own : NULL, key ? key->len : 0);
    }
    for (size_t i = 0; i < l->columns.n; i++) {
        const struct path *path = &l->paths.items[l->columns.items[i]];

        write_own(w, path->own, path->len);
    }
    hg_csv_append_origin(l->style, l->sets.items, l->sets.n, set, &w->out);
    end_line(w);
}

static int write_lines(struct writing *w, const unsigned char *flags, const size_t *keys,
                       size_t n_keys)
{
    struct hg_lines *l = w->l;

    if (l->file && (fflush(l->file) != 0 || fseek(l->file, 0, SEEK_SET) != 0))
        return hg_fs_scratch_failed(w->err);
    for (size_t i = 0; i < l->n; i++) {
        const char *end, *record = next_record(w, &end);

        hg_bar_step();
        if (!record)
            return -1;
        if (flags[i] & HG_LINE_SHOWN)
            write_line(w, record, end, flags[i], keys, n_keys);
        if (flush(w, PIECE) < 0)
            return -1;
    }
    return flush(w, 0);
}

int hg_lines_write(struct hg_lines *l, const char *const *keys, size_t n_keys,
                   const unsigned char *flags, hg_lines_put_fn put, void *context,
                   struct hg_err *err)
{
    struct writing w = { .l = l, .at = l->bytes.data, .put = put, .context = context, .err = err };
    size_t *places = hg_alloc(n_keys * sizeof *places);
    int rc;

    for (size_t k = 0; k < n_keys; k++)
        places[k] = hg_map_find(&l->key_index, keys[k], strlen(keys[k]));
    write_header(&w, places, keys, n_keys);
    hg_bar_begin("lines", l->n);
    rc = write_lines(&w, flags, places, n_keys);
    hg_bar_end();
    hg_buf_done(&w.out);
    free(places);
    return rc;
}

const char *hg_lines_marked_id(const struct hg_lines *l)
{
    return l->marked_id ? l->marked_id : "";
}
