/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonlist.h"

#include <stdbool.h>
#include <string.h>

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

/* One character at a time: nothing behind a value is taken from the file. */
static size_t get_one(void *to, size_t size, void *file)
{
    int c = getc_unlocked(file);

    (void)size;
    if (c == EOF)
        return 0;
    *(char *)to = (char)c;
    return 1;
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
    int c = peek(file);

    if (c != '{' && c != '[' && c != '"')
        return read_word(file);
    return json_load_callback(
        get_one, file, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
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
