/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "contract/keys.h"
#include "matrix/placeholder.h"

/* ---- Values ---- */

/* Is this member of a cell a parameter of the workload? Not where and how the job runs (site, nodes,
 * time ...), not repeat, not a note (_x). */
static bool is_parameter(const char *key)
{
    int known = hg_key_find(key);

    return key[0] != '_' && (known < 0 || known == HG_COLUMN_STRATEGY);
}

void hg_template_value(const json_t *value, struct hg_buf *out)
{
    if (json_is_string(value))
        hg_buf_append(out, json_string_value(value), json_string_length(value));
    else if (value && !json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT, out);
}

/* ---- Placeholders ---- */

static void push_args(const json_t *cell, struct hg_words *words)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)cell, key, value) {
        struct hg_buf word = HG_BUF_INIT;

        if (!is_parameter(key) || json_is_null(value))
            continue;
        hg_buf_printf(&word, "--%s=", key);
        hg_template_value(value, &word);
        hg_words_push(words, hg_buf_str(&word));
        hg_buf_done(&word);
    }
}

static void append_args(const json_t *cell, struct hg_buf *out)
{
    struct hg_words words = HG_WORDS_INIT;

    push_args(cell, &words);
    for (size_t i = 0; i < words.n; i++)
        hg_buf_printf(out, "%s%s", i ? " " : "", words.items[i]);
    hg_words_done(&words);
}

/* What is not a member of a cell. False if the key is none of these. */
static bool append_special(const char *key, const struct hg_template_vars *vars, struct hg_buf *out)
{
    if (strcmp(key, "args") == 0)
        append_args(vars->cell, out);
    else if (strcmp(key, "dir") == 0)
        hg_buf_puts(out, vars->dir);
    else if (strcmp(key, "head") == 0)
        hg_buf_puts(out, vars->head);
    else if (strcmp(key, "id") == 0)
        hg_buf_puts(out, vars->id);
    else if (strcmp(key, "cell") == 0)
        hg_buf_printf(out, "%s/cell.json", vars->dir);
    else if (strcmp(key, "result") == 0)
        hg_buf_printf(out, "%s/workload.json", vars->dir);
    else
        return false;
    return true;
}

static const json_t *member_of(const struct hg_template_vars *vars, const char *key)
{
    return key[0] == '_' ? NULL : json_object_get(vars->cell, key);
}

/* One placeholder's text. */
static void append_value(const struct hg_placeholder *p, const struct hg_template_vars *vars,
                         struct hg_buf *out, bool *absent)
{
    const json_t *value;

    if (append_special(p->key, vars, out))
        return;
    value = member_of(vars, p->key);
    if (!value || json_is_null(value) || (p->text && !json_is_true(value)))
        *absent = true;
    else if (p->text)
        hg_buf_append(out, p->text, p->text_len);
    else
        hg_template_value(value, out);
}

void hg_template_text(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                      bool *absent)
{
    struct hg_placeholder p;

    while (hg_placeholder_next(text, &p)) {
        hg_buf_append(out, text, (size_t)(p.start - text));
        append_value(&p, vars, out, absent);
        text = p.end;
    }
    hg_buf_puts(out, text);
}

void hg_template_lines(const char *text, const struct hg_template_vars *vars, struct hg_buf *out)
{
    struct hg_buf line = HG_BUF_INIT, shown = HG_BUF_INIT;

    while (*text) {
        size_t n = strcspn(text, "\n");
        bool absent = false;

        n += text[n] == '\n';
        hg_buf_clear(&line);
        hg_buf_clear(&shown);
        hg_buf_append(&line, text, n);
        hg_template_text(hg_buf_str(&line), vars, &shown, &absent);
        if (!absent)
            hg_buf_append(out, hg_buf_str(&shown), shown.len);
        text += n;
    }
    hg_buf_done(&line);
    hg_buf_done(&shown);
}

/* Each element of a list is a word; what is absent is none. */
static void push_elements(const json_t *list, struct hg_words *words)
{
    struct hg_buf word = HG_BUF_INIT;
    json_t *item;
    size_t i;

    json_array_foreach((json_t *)list, i, item) {
        hg_buf_clear(&word);
        hg_template_value(item, &word);
        if (!json_is_null(item))
            hg_words_push(words, hg_buf_str(&word));
    }
    hg_buf_done(&word);
}

/* A word that is one placeholder and may become several words. */
static int push_several(const struct hg_placeholder *p, const struct hg_template_vars *vars,
                        struct hg_words *words, bool *absent, struct hg_err *err)
{
    const json_t *list = p->several ? member_of(vars, p->key) : NULL;

    if (!p->several)
        push_args(vars->cell, words);
    else if (!list || json_is_null(list))
        *absent = true;
    else if (!json_is_array(list))
        return hg_err_set(err, HG_E_INPUT, "{{%s...}}: \"%s\" of this cell is %s, not a list",
                          p->key, p->key, hg_json_type_name(list));
    else
        push_elements(list, words);
    return 0;
}

static int push_word(const char *word, const struct hg_template_vars *vars, struct hg_words *words,
                     bool *absent, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_placeholder p;
    bool missing = false;

    for (const char *rest = word; hg_placeholder_next(rest, &p); rest = p.end) {
        if (!p.several && strcmp(p.key, "args") != 0)
            continue;
        if (hg_placeholder_is_whole(&p, word))
            return push_several(&p, vars, words, absent, err);
        hg_err_set(err, HG_E_INPUT, "\"%s\": {{%s%s}} stands for several words", word, p.key,
                   p.several ? "..." : "");
        return hg_err_hint(err, "give it a word of its own");
    }
    hg_template_text(word, vars, &text, &missing);
    if (!missing)
        hg_words_push(words, hg_buf_str(&text));
    *absent |= missing;
    hg_buf_done(&text);
    return 0;
}

int hg_template_words(const json_t *list, const struct hg_template_vars *vars,
                      struct hg_words *words, struct hg_err *err)
{
    size_t i, j;
    json_t *item, *inner;

    json_array_foreach((json_t *)list, i, item) {
        size_t before = words->n;
        bool absent = false;

        if (json_is_string(item)) {
            if (push_word(json_string_value(item), vars, words, &absent, err) < 0)
                return -1;
            continue;
        }
        json_array_foreach(item, j, inner)
            if (push_word(json_string_value(inner), vars, words, &absent, err) < 0)
                return -1;
        if (absent)
            hg_words_cut(words, before);
    }
    return 0;
}
