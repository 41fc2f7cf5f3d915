/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/template.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "model/keys.h"

#define KEY_MAX 64

/* ---- Lists of words ---- */

int hg_words_push(struct hg_words *words, const char *word)
{
    char *copy = strdup(word);
    /* one place more than n, for the NULL at the end */
    char **slot = copy ? HG_VEC_PUSH(words) : NULL;

    if (!slot) {
        free(copy);
        return -1;
    }
    *slot = copy;
    if (hg_vec_grow((void **)&words->items, words->n, &words->cap, sizeof *words->items) < 0)
        return -1;
    words->items[words->n] = NULL;
    return 0;
}

static void words_cut(struct hg_words *words, size_t n)
{
    while (words->n > n)
        free(words->items[--words->n]);
    if (words->items)
        words->items[words->n] = NULL;
}

void hg_words_done(struct hg_words *words)
{
    words_cut(words, 0);
    HG_VEC_DONE(words);
}

/* ---- Values ---- */

bool hg_template_is_parameter(const char *key)
{
    int known = hg_key_find(key);

    return key[0] != '_' && (known < 0 || known == HG_KEY_STRATEGY);
}

void hg_template_value(const json_t *value, struct hg_buf *out)
{
    if (json_is_string(value))
        hg_buf_append(out, json_string_value(value), json_string_length(value));
    else if (value && !json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT, out);
}

/* ---- Placeholders ---- */

/* The next "{{name}}" (blanks inside the braces are fine) in a text: where it starts and ends, its
 * name. False if there is none. */
static bool next_placeholder(const char *text, const char **start, const char **end,
                             char key[static KEY_MAX + 1])
{
    for (const char *p = text; (p = strstr(p, "{{")); p++) {
        const char *name = p + 2 + strspn(p + 2, " ");
        size_t n = 0;

        while (isalnum((unsigned char)name[n]) || name[n] == '_' || name[n] == '-' ||
               name[n] == '.')
            n++;
        if (n == 0 || n > KEY_MAX || isdigit((unsigned char)name[0]))
            continue;
        *end = name + n + strspn(name + n, " ");
        if (strncmp(*end, "}}", 2) != 0)
            continue;
        *end += 2;
        *start = p;
        memcpy(key, name, n);
        key[n] = '\0';
        return true;
    }
    return false;
}

static int push_args(const json_t *cell, struct hg_words *words, struct hg_err *err)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)cell, key, value)
    {
        struct hg_buf word = HG_BUF_INIT;
        int rc;

        if (!hg_template_is_parameter(key) || json_is_null(value))
            continue;
        hg_buf_printf(&word, "--%s=", key);
        hg_template_value(value, &word);
        rc = word.failed ? -1 : hg_words_push(words, hg_buf_str(&word));
        hg_buf_done(&word);
        if (rc < 0)
            return hg_err_oom(err);
    }
    return 0;
}

static int append_args(const json_t *cell, struct hg_buf *out, struct hg_err *err)
{
    struct hg_words words = HG_WORDS_INIT;
    int rc = push_args(cell, &words, err);

    for (size_t i = 0; i < words.n; i++)
        hg_buf_printf(out, "%s%s", i ? " " : "", words.items[i]);
    hg_words_done(&words);
    return rc;
}

/* One placeholder's text. */
static int append_value(const char *key, const struct hg_template_vars *vars, struct hg_buf *out,
                        bool *absent, struct hg_err *err)
{
    const json_t *value;

    if (strcmp(key, "args") == 0)
        return append_args(vars->cell, out, err);
    if (strcmp(key, "dir") == 0 || strcmp(key, "head") == 0) {
        hg_buf_puts(out, key[0] == 'd' ? vars->dir : vars->head);
        return 0;
    }
    value = key[0] == '_' ? NULL : json_object_get(vars->cell, key);
    if (!value || json_is_null(value))
        *absent = true;
    hg_template_value(value, out);
    return 0;
}

int hg_template_text(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                     bool *absent, struct hg_err *err)
{
    char key[KEY_MAX + 1];
    const char *start, *end;

    while (next_placeholder(text, &start, &end, key)) {
        hg_buf_append(out, text, (size_t)(start - text));
        if (append_value(key, vars, out, absent, err) < 0)
            return -1;
        text = end;
    }
    hg_buf_puts(out, text);
    return out->failed ? hg_err_oom(err) : 0;
}

int hg_template_lines(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                      struct hg_err *err)
{
    struct hg_buf line = HG_BUF_INIT, shown = HG_BUF_INIT;
    int rc = 0;

    while (*text && rc == 0) {
        size_t n = strcspn(text, "\n");
        bool absent = false;

        n += text[n] == '\n';
        hg_buf_clear(&line);
        hg_buf_clear(&shown);
        hg_buf_append(&line, text, n);
        rc = hg_template_text(hg_buf_str(&line), vars, &shown, &absent, err);
        if (!absent)
            hg_buf_append(out, hg_buf_str(&shown), shown.len);
        text += n;
    }
    if (line.failed || out->failed)
        rc = hg_err_oom(err);
    hg_buf_done(&line);
    hg_buf_done(&shown);
    return rc;
}

static bool is_args(const char *word)
{
    char key[KEY_MAX + 1];
    const char *start, *end;

    return next_placeholder(word, &start, &end, key) && strcmp(key, "args") == 0 && start == word &&
           *end == '\0';
}

static int push_word(const char *word, const struct hg_template_vars *vars, struct hg_words *words,
                     bool *absent, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    bool missing = false;
    int rc;

    if (is_args(word))
        return push_args(vars->cell, words, err);
    rc = hg_template_text(word, vars, &text, &missing, err);
    if (rc == 0 && !missing && hg_words_push(words, hg_buf_str(&text)) < 0)
        rc = hg_err_oom(err);
    *absent |= missing;
    hg_buf_done(&text);
    return rc;
}

int hg_template_words(const json_t *list, const struct hg_template_vars *vars,
                      struct hg_words *words, struct hg_err *err)
{
    size_t i, j;
    json_t *item, *inner;

    json_array_foreach((json_t *)list, i, item)
    {
        size_t before = words->n;
        bool absent = false;

        if (json_is_string(item)) {
            if (push_word(json_string_value(item), vars, words, &absent, err) < 0)
                return -1;
            continue;
        }
        json_array_foreach(item, j, inner) if (push_word(json_string_value(inner), vars, words,
                                                         &absent, err) < 0) return -1;
        if (absent)
            words_cut(words, before);
    }
    return 0;
}

/* ---- Checking ---- */

struct check {
    const struct hg_matrix *m;
    const json_t *keys;
    struct hg_errs *errs;
    int rc;
};

static void suggest_key(struct hg_err *err, const char *key, const json_t *keys)
{
    const char **known = calloc(json_object_size(keys) + 3, sizeof *known);
    const char *name;
    json_t *value;
    size_t n = 0;

    if (!known)
        return;
    json_object_foreach((json_t *)keys, name, value)
    {
        (void)value;
        if (name[0] != '_')
            known[n++] = name;
    }
    known[n++] = "args";
    known[n++] = "dir";
    known[n++] = "head";
    hg_text_suggest(err, key, known, n);
    free(known);
}

static void check_text(struct check *c, const char *text, const char *pointer, bool word)
{
    char key[KEY_MAX + 1];
    const char *start, *end, *rest = text;

    for (; next_placeholder(rest, &start, &end, key); rest = end) {
        if (strcmp(key, "dir") == 0 || strcmp(key, "head") == 0)
            continue;
        if (strcmp(key, "args") == 0) {
            if (!word || is_args(text))
                continue;
            hg_err_hint(
                hg_json_error(&c->m->doc, pointer, c->errs, "{{args}} stands for several words"),
                "give it a word of its own");
        } else if (key[0] == '_') {
            hg_json_error(&c->m->doc, pointer, c->errs,
                          "{{%s}} is a note, which the workload does not see", key);
        } else if (!json_object_get(c->keys, key)) {
            suggest_key(
                hg_json_error(&c->m->doc, pointer, c->errs, "no cell has a member \"%s\"", key),
                key, c->keys);
        } else {
            continue;
        }
        c->rc = -1;
    }
}

static void check_words(struct check *c, const json_t *list, const char *at)
{
    size_t i, j;
    json_t *item, *inner;

    json_array_foreach((json_t *)list, i, item)
    {
        char pointer[64];

        snprintf(pointer, sizeof pointer, "%s/%zu", at, i);
        if (json_is_string(item))
            check_text(c, json_string_value(item), pointer, true);
        json_array_foreach(item, j, inner)
        {
            snprintf(pointer, sizeof pointer, "%s/%zu/%zu", at, i, j);
            if (json_is_string(inner))
                check_text(c, json_string_value(inner), pointer, true);
        }
    }
}

static void check_members(struct check *c, const json_t *object, const char *at)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
    {
        struct hg_buf pointer = HG_BUF_INIT;

        hg_buf_puts(&pointer, at);
        hg_json_pointer_push(&pointer, name);
        if (json_is_string(value))
            check_text(c, json_string_value(value), hg_buf_str(&pointer), false);
        hg_buf_done(&pointer);
    }
}

int hg_template_check(const struct hg_matrix *m, const json_t *keys, struct hg_errs *errs)
{
    struct check c = { .m = m, .keys = keys, .errs = errs };

    check_words(&c, m->workload.words, "/workload/command");
    check_words(&c, m->workload.launch, "/workload/launch");
    check_members(&c, m->workload.env, "/workload/env");
    check_members(&c, m->workload.files, "/workload/files");
    return c.rc;
}
