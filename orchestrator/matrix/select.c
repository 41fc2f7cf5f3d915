/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/select.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/expr.h"
#include "matrix/grid.h"
#include "matrix/judge.h"

/* One value of a part: a text, and the numbers it means if it is a number or a range. */
struct choice {
    char *text;
    double low, high;
    bool numeric;
};

struct part {
    char *key;
    bool negated;
    struct choice *items; /* none: the key's presence counts */
    size_t n, cap;
};

struct hg_selector {
    json_t *seen; /* keys of the cells; NULL: none were seen */
    struct part *items;
    size_t n, cap;
    struct hg_exprs *exprs; /* jq instead of parts */
};

/* ---- The grammar ---- */

/* A key begins with a letter, a digit or _; what begins with . is jq. */
static size_t key_length(const char *text)
{
    return isalnum((unsigned char)text[0]) || text[0] == '_'
               ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                              "0123456789_.-/:+@")
               : 0;
}

static bool parse_number(const char *text, size_t n, double *number)
{
    char digits[64], *end;

    if (n == 0 || n >= sizeof digits || !strchr("-0123456789.", text[0]))
        return false;
    memcpy(digits, text, n);
    digits[n] = '\0';
    *number = strtod(digits, &end);
    return *end == '\0';
}

/* False: this is not a selector. */
static bool parse_choice(struct part *part, const char *text, size_t n)
{
    struct choice *c;
    const char *dots = NULL;

    if (n == 0 || text[0] == '=')
        return false;
    for (size_t i = 0; i + 1 < n && !dots; i++)
        if (text[i] == '.' && text[i + 1] == '.')
            dots = text + i;
    c = HG_VEC_PUSH(part);
    *c = (struct choice){ .text = hg_strndup(text, n) };
    if (dots)
        c->numeric = parse_number(text, (size_t)(dots - text), &c->low) &&
                     parse_number(dots + 2, (size_t)(text + n - dots - 2), &c->high);
    else
        c->numeric = parse_number(text, n, &c->low) && parse_number(text, n, &c->high);
    return true;
}

static bool parse_choices(struct part *part, const char *text, size_t n)
{
    for (;;) {
        const char *bar = memchr(text, '|', n);
        size_t one = bar ? (size_t)(bar - text) : n;

        if (!parse_choice(part, text, one))
            return false;
        if (!bar)
            return true;
        text += one + 1;
        n -= one + 1;
    }
}

static bool parse_part(struct hg_selector *s, const char *text, size_t n)
{
    struct part *part = HG_VEC_PUSH(s);
    size_t key;

    *part = (struct part){ 0 };
    if (n && text[0] == '!') {
        part->negated = true;
        text++;
        n--;
    }
    key = key_length(text);
    if (key == 0 || key > n)
        return false;
    part->key = hg_strndup(text, key);
    text += key;
    n -= key;
    if (n == 0)
        return true;
    if (part->negated)
        return false;
    if (n >= 2 && text[0] == '!' && text[1] == '=') {
        part->negated = true;
        return parse_choices(part, text + 2, n - 2);
    }
    return text[0] == '=' && parse_choices(part, text + 1, n - 1);
}

static bool parse_parts(struct hg_selector *s, const char *text)
{
    for (;;) {
        size_t n = strcspn(text, ",");

        if (!parse_part(s, text, n))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

/* ---- Making and freeing ---- */

static void drop_parts(struct hg_selector *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < s->items[i].n; k++)
            free(s->items[i].items[k].text);
        HG_VEC_DONE(&s->items[i]);
        free(s->items[i].key);
    }
    HG_VEC_DONE(s);
}

static int parse_jq(struct hg_selector *s, const char *text, struct hg_err *err)
{
    struct hg_err why = HG_ERR_INIT;
    int bad;

    s->exprs = hg_exprs_create();
    if (hg_exprs_add(s->exprs, text, "error: selector", &why) >= 0 &&
        hg_exprs_compile(s->exprs, &bad, &why) == 0)
        return 0;
    hg_err_set(err, HG_E_USAGE, "\"%.100s\" is neither a selector nor a jq expression: %s", text,
               why.text);
    return hg_err_hint(err, "a selector looks like hardware=a100,nodes=2..8,strategy!=dp and an "
                            "expression like '.nodes > 2'");
}

struct hg_selector *hg_selector_parse(const char *text, struct hg_err *err)
{
    struct hg_selector *s = hg_alloc_zeroed(1, sizeof *s);

    if (parse_parts(s, text))
        return s;
    drop_parts(s);
    if (parse_jq(s, text, err) == 0)
        return s;
    hg_selector_free(s);
    return NULL;
}

void hg_selector_free(struct hg_selector *s)
{
    if (!s)
        return;
    drop_parts(s);
    hg_exprs_free(s->exprs);
    json_decref(s->seen);
    free(s);
}

const char *hg_selector_key(const struct hg_selector *s, size_t i)
{
    return s && i < s->n ? s->items[i].key : NULL;
}

/* Words are judged, as a string and as what they are in JSON (true); numbers not: a range may go beyond what cells can have. */
static int judge_choice(const struct hg_grid *g, const char *key, const struct choice *c,
                        struct hg_err *err)
{
    const struct hg_judge anywhere = { NULL, g->worker };
    json_t *text = json_string(c->text), *value = json_loads(c->text, JSON_DECODE_ANY, NULL);
    struct hg_err as_json = HG_ERR_INIT;
    bool fits = c->numeric || (value && hg_member_judge(&anywhere, key, value, &as_json) == 0) ||
                hg_member_judge(&anywhere, key, text, err) == 0;

    if (!fits)
        err->code = HG_E_USAGE;
    json_decref(value);
    json_decref(text);
    return fits ? 0 : -1;
}

int hg_selector_check(const struct hg_selector *s, const struct hg_grid *g, struct hg_err *err)
{
    for (size_t i = 0; s && i < s->n; i++) {
        const struct part *part = &s->items[i];

        if (strcmp(part->key, "id") == 0)
            continue;
        if (!hg_grid_has_key(g, part->key)) {
            hg_err_set(err, HG_E_USAGE, "no cell has \"%s\"", part->key);
            hg_grid_suggest(g, part->key, err);
            return -1;
        }
        for (size_t k = 0; k < part->n; k++)
            if (judge_choice(g, part->key, &part->items[k], err) < 0)
                return -1;
    }
    return 0;
}

void hg_selector_see(struct hg_selector *s, const json_t *cell)
{
    const char *key;
    json_t *value;

    if (!s)
        return;
    if (!s->seen)
        s->seen = json_object();
    json_object_foreach((json_t *)cell, key, value) {
        if (!json_object_get(s->seen, key))
            json_object_set_new(s->seen, key, json_null());
    }
}

static int unknown_key(const struct hg_selector *s, const char *name, struct hg_err *err)
{
    const char **names = hg_alloc((json_object_size(s->seen) + 1) * sizeof *names), *key;
    size_t n = 0;
    json_t *value;

    json_object_foreach(s->seen, key, value)
        names[n++] = key;
    hg_err_set(err, HG_E_USAGE, "no cell has \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    free(names);
    return -1;
}

int hg_selector_check_seen(const struct hg_selector *s, struct hg_err *err)
{
    for (size_t i = 0; s && s->seen && i < s->n; i++)
        if (strcmp(s->items[i].key, "id") != 0 && !json_object_get(s->seen, s->items[i].key))
            return unknown_key(s, s->items[i].key, err);
    return 0;
}

/* ---- Matching ---- */

static bool choice_fits(const struct choice *c, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;
    double number;
    bool fits;

    if (json_is_number(value)) {
        number = json_number_value(value);
        return c->numeric && number >= c->low && number <= c->high;
    }
    if (json_is_string(value))
        return strcmp(json_string_value(value), c->text) == 0;
    hg_json_dump(value, HG_JSON_SORT, &text);
    fits = strcmp(hg_buf_str(&text), c->text) == 0;
    hg_buf_done(&text);
    return fits;
}

static bool part_fits(const struct part *part, const char *id, const json_t *cell)
{
    const json_t *value = json_object_get(cell, part->key);
    bool by_id = strcmp(part->key, "id") == 0;
    bool fits = part->n == 0 && (by_id || (value && !json_is_null(value)));

    for (size_t i = 0; i < part->n && !fits; i++)
        fits = by_id ? strncmp(id, part->items[i].text, strlen(part->items[i].text)) == 0
                     : value && choice_fits(&part->items[i], value);
    return fits != part->negated;
}

static int match_jq(const struct hg_selector *s, const json_t *cell, struct hg_err *err)
{
    char shown[64];
    jv_kind kind;
    jv out;
    int rc = hg_exprs_eval(s->exprs, 0, hg_jv_of_json(cell), jv_null(), &out, err);

    if (rc < 0)
        return hg_err_wrap(err, "selector %.100s", hg_exprs_text(s->exprs, 0));
    if (rc == 0)
        return 0;
    kind = jv_get_kind(out);
    hg_expr_show(out, shown);
    if (kind == JV_KIND_TRUE || kind == JV_KIND_FALSE || kind == JV_KIND_NULL)
        return kind == JV_KIND_TRUE;
    return hg_err_set(err, HG_E_USAGE, "selector %.100s gives %s, neither true nor false",
                      hg_exprs_text(s->exprs, 0), shown);
}

int hg_selector_match(const struct hg_selector *s, const char *id, const json_t *cell,
                      struct hg_err *err)
{
    if (!s)
        return 1;
    if (s->exprs)
        return match_jq(s, cell, err);
    for (size_t i = 0; i < s->n; i++)
        if (!part_fits(&s->items[i], id, cell))
            return 0;
    return 1;
}
