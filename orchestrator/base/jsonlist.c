/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonlist.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

/* The next character that is not blank, left in the file. */
static int peek(FILE *file)
{
    int c;

    do
        c = getc_unlocked(file);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n');
    ungetc(c, file);
    return c;
}

static bool accept(FILE *file, int wanted)
{
    return peek(file) == wanted && getc_unlocked(file) == wanted;
}

/* Append the value that begins here, an object, a list or a text, as it stands in the file, and nothing behind it. -1: the file ends in it. */
static int copy_value(FILE *file, struct hg_buf *text)
{
    size_t depth = 0, n = 0;
    bool quoted = false;
    char part[4096];

    for (int c; (c = getc_unlocked(file)) != EOF;) {
        part[n++] = (char)c;
        if (n > sizeof part - 2) {
            hg_buf_append(text, part, n);
            n = 0;
        }
        if (quoted && c == '\\' && (c = getc_unlocked(file)) != EOF)
            part[n++] = (char)c;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
        if (!quoted && depth == 0) {
            hg_buf_append(text, part, n);
            return 0;
        }
    }
    return -1;
}

/* A number or a word: its end is what follows. */
static json_t *read_word(FILE *file)
{
    char text[64];
    size_t n = 0;
    int c;

    while (n < sizeof text && (c = getc_unlocked(file)) != EOF) {
        if (strchr(",]} \t\r\n", c)) {
            ungetc(c, file);
            break;
        }
        text[n++] = (char)c;
    }
    return n < sizeof text ? json_loadb(text, n, JSON_DECODE_ANY, NULL) : NULL;
}

static json_t *read_value(FILE *file)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *value = NULL;
    int c = peek(file);

    if (c != '{' && c != '[' && c != '"')
        return read_word(file);
    if (copy_value(file, &text) == 0)
        value = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    hg_buf_done(&text);
    return value;
}

static int read_list(FILE *file, int (*take)(void *context, json_t *item), void *context)
{
    if (!accept(file, '['))
        return -1;
    if (accept(file, ']'))
        return 0;
    do {
        json_t *item = read_value(file);
        int rc = item ? take(context, item) : -1;

        json_decref(item);
        if (rc != 0)
            return -1;
    } while (accept(file, ','));
    return accept(file, ']') ? 0 : -1;
}

int hg_json_each_item(FILE *file, const char *list, json_t *rest,
                      int (*take)(void *context, json_t *item), void *context)
{
    bool done = false;
    int rc = accept(file, '{') ? 0 : -1;

    while (rc == 0) {
        json_t *name = peek(file) == '"' ? read_value(file) : NULL;
        const char *key = json_string_value(name);

        if (!key || !accept(file, ':') || json_object_get(rest, key)) {
            rc = -1;
        } else if (strcmp(key, list) != 0) {
            rc = json_object_set_new(rest, key, read_value(file));
        } else {
            rc = done ? -1 : read_list(file, take, context);
            done = true;
        }
        json_decref(name);
        if (rc == 0 && !accept(file, ','))
            break;
    }
    return rc == 0 && done && accept(file, '}') && peek(file) == EOF && !ferror(file) ? 0 : -1;
}

int hg_json_load_items(const char *path, size_t max, const char *list, struct hg_json_doc *doc,
                       int (*take)(void *context, json_t *item), void *context, struct hg_err *err)
{
    FILE *file;
    int rc = hg_json_load_text(path, max, doc, err);

    if (rc < 0)
        return -1;
    doc->root = json_object();
    file = fmemopen(doc->text, doc->len, "r"); /* NULL where there is no text */
    rc = file ? hg_json_each_item(file, list, doc->root, take, context) : -1;
    if (file)
        fclose(file);
    if (rc == 0)
        return 0;
    json_decref(doc->root);
    return hg_json_parse_text(doc, err) < 0 ? -1 : HG_JSON_WHOLE;
}
