/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/select.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "matrix/cell.h"
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
    const char *compare; /* "<", "<=", ">" or ">=": one item, a number; NULL: equals an item */
    bool negated;
    bool width; /* the second number of a shape: GPUs per node, or tasks where there are none */
    struct choice *items; /* none: the key's presence counts */
    size_t n, cap;
};

struct hg_selector {
    /* Key of a cell: its values, as text: value, if the selector names them; else null. */
    json_t *seen;
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

/* ">0.01": a range that is open on one side. With something else than a number it has no low and is refused later, by name. */
static bool parse_comparison(struct part *part, const char *text, size_t n)
{
    static const char *const operators[] = { "<=", ">=", "<", ">" };
    struct choice *c;
    size_t op = 0;

    while (strncmp(text, operators[op], strlen(operators[op])) != 0)
        op++;
    part->compare = operators[op];
    text += strlen(part->compare);
    n -= strlen(part->compare);
    if (n == 0)
        return false;
    c = HG_VEC_PUSH(part);
    *c = (struct choice){ .text = hg_strndup(text, n) };
    c->numeric = parse_number(text, n, &c->low);
    c->high = part->compare[0] == '>' ? INFINITY
              : part->compare[1]      ? c->low
                                      : nextafter(c->low, -INFINITY);
    if (part->compare[0] == '<')
        c->low = -INFINITY;
    else if (!part->compare[1])
        c->low = nextafter(c->low, INFINITY);
    return true;
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
    if (text[0] == '<' || text[0] == '>')
        return parse_comparison(part, text, n);
    return text[0] == '=' && parse_choices(part, text + 1, n - 1);
}

/* ---- Names of cells, see matrix/names.h ---- */

static void push_value(struct hg_selector *s, const char *key, const char *text)
{
    struct part *part = HG_VEC_PUSH(s);

    *part = (struct part){ .key = hg_strdup(key) };
    parse_choice(part, text, strlen(text));
}

/* "2x4": its length; 0 for anything else. */
static size_t shape_length(const char *text)
{
    size_t n = strspn(text, "0123456789"),
           m = text[n] == 'x' ? strspn(text + n + 1, "0123456789") : 0;

    return n && m && (!text[n + 1 + m] || strchr(" ,", text[n + 1 + m])) ? n + 1 + m : 0;
}

static void push_shape(struct hg_selector *s, const char *text)
{
    char number[32];

    snprintf(number, sizeof number, "%lu", strtoul(text, NULL, 10));
    push_value(s, "nodes", number);
    snprintf(number, sizeof number, "%lu", strtoul(strchr(text, 'x') + 1, NULL, 10));
    push_value(s, "gpus_per_node", number);
    s->items[s->n - 1].width = true;
}

/* To the next space or comma outside of quotes and brackets. */
static size_t word_length(const char *text)
{
    bool quoted = false;
    size_t n = 0;
    int depth = 0;

    for (; text[n] && (quoted || depth > 0 || !strchr(" ,", text[n])); n++) {
        if (quoted && text[n] == '\\' && text[n + 1])
            n++;
        else if (text[n] == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += strchr("[{", text[n]) ? 1 : strchr("]}", text[n]) ? -1 : 0;
    }
    return n;
}

/* KEY="text": exactly this text, also if it looks like a number. */
static bool parse_quoted(struct hg_selector *s, const char *text, size_t n)
{
    size_t key = key_length(text);
    json_t *value = key && key + 1 < n && text[key] == '=' && text[key + 1] == '"'
                        ? json_loadb(text + key + 1, n - key - 1, JSON_DECODE_ANY, NULL)
                        : NULL;
    struct part *part;

    if (!json_is_string(value)) {
        json_decref(value);
        return false;
    }
    part = HG_VEC_PUSH(s);
    *part = (struct part){ .key = hg_strndup(text, key) };
    *HG_VEC_PUSH(part) = (struct choice){ .text = hg_strdup(json_string_value(value)) };
    json_decref(value);
    return true;
}

static bool parse_name(struct hg_selector *s, const char *text)
{
    for (size_t n; *text; text += strspn(text, " ")) {
        bool run = strncmp(text, "run ", 4) == 0, no = strncmp(text, "no ", 3) == 0;

        text += run ? 4 : no ? 3 : 0;
        n = word_length(text);
        if (run) {
            char *number = hg_strndup(text, n);

            push_value(s, "repeat", number);
            free(number);
        } else if (shape_length(text)) {
            push_shape(s, text);
        } else if (!parse_quoted(s, text, n) && !parse_part(s, text, n)) {
            return false;
        }
        if (no)
            s->items[s->n - 1].negated = true;
        text += n;
        text += strspn(text, " ");
        if (*text == ',' && !*++text)
            return false;
    }
    return s->n > 0;
}

/* Is it certainly a name? Others are tried as a list of parts first. */
static bool is_name(const char *text)
{
    for (const char *p = text; (p = strchr(p, ' ')); p++)
        if (key_length(p + 1) && p[1 + key_length(p + 1)] == '=')
            return true;
    return shape_length(text) || strchr(text, '"');
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
    return hg_err_hint(err, "a selector looks like nodes=2..8,lr>0.01,strategy!=dp and an "
                            "expression like '.nodes > 2'");
}

/* A copy without the blanks around < and >, which people write: "lr > 0.01". */
static char *close_up(const char *text)
{
    char *copy = hg_strdup(text), *to = copy;

    for (const char *p = text; *p && !strchr(text, '"'); p++) {
        const char *last = to - (to > copy + 1 && to[-1] == '='), *next = p + strspn(p, " ");
        bool beside = (last > copy && strchr("<>", last[-1])) || *next == '<' || *next == '>';

        if (*p != ' ' || !beside)
            *to++ = *p;
        *to = '\0';
    }
    return copy;
}

/* False: it is jq. */
static bool parse_words(struct hg_selector *s, const char *text)
{
    if (!is_name(text) && parse_parts(s, text))
        return true;
    drop_parts(s);
    if (parse_name(s, text))
        return true;
    drop_parts(s);
    return false;
}

static int check_comparisons(const struct hg_selector *s, struct hg_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct part *part = &s->items[i];

        if (!part->compare || (part->items[0].numeric && strcmp(part->key, "id") != 0))
            continue;
        hg_err_set(err, HG_E_USAGE, "selector %s%s%s: %s is not a number", part->key, part->compare,
                   part->items[0].text, part->items[0].numeric ? part->key : part->items[0].text);
        return hg_err_hint(err, "<, <=, > and >= compare numbers; words: key=a|b or key!=a");
    }
    return 0;
}

struct hg_selector *hg_selector_parse(const char *text, struct hg_err *err)
{
    struct hg_selector *s = hg_alloc_zeroed(1, sizeof *s);
    char *closed = close_up(text);
    int rc;

    s->seen = json_object();
    rc = parse_words(s, closed) ? check_comparisons(s, err) : parse_jq(s, text, err);
    free(closed);
    if (rc == 0)
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
    const struct hg_judge anywhere = { .worker = g->worker };
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

/* A key that a cell has to have, or its strategy. */
static bool is_word(const struct part *part)
{
    return part->n == 0 && !part->negated;
}

int hg_selector_check(const struct hg_selector *s, const struct hg_grid *g, struct hg_err *err)
{
    for (size_t i = 0; s && i < s->n; i++) {
        const struct part *part = &s->items[i];

        if (strcmp(part->key, "id") == 0)
            continue;
        if (!hg_grid_has_key(g, part->key) &&
            !(is_word(part) && hg_pool_has_string(g->pool, part->key))) {
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
    hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
    fits = strcmp(hg_buf_str(&text), c->text) == 0;
    hg_buf_done(&text);
    return fits;
}

static const char *width_key(const json_t *cell)
{
    return json_number_value(json_object_get(cell, "gpus_per_node")) > 0 ? "gpus_per_node"
                                                                         : "tasks_per_node";
}

static bool is_strategy(const char *word, const json_t *cell)
{
    const char *strategy = json_string_value(json_object_get(cell, "strategy"));

    return strategy && strcmp(strategy, word) == 0;
}

static bool part_fits(const struct part *part, const char *id, const json_t *cell)
{
    const json_t *value = json_object_get(cell, part->width ? width_key(cell) : part->key);
    bool by_id = strcmp(part->key, "id") == 0;
    bool fits = part->n == 0 && (by_id || (value && !json_is_null(value)) ||
                                 (is_word(part) && is_strategy(part->key, cell)));

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

/* ---- What there is ---- */

/* Does the part ask for values that some cell has to have? */
static bool wants_value(const struct part *part)
{
    return part->n && !part->negated && strcmp(part->key, "id") != 0;
}

/* The key of a cell whose value is remembered for this part; NULL: none. */
static const char *valued(const struct part *part, const json_t *cell)
{
    if (is_word(part))
        return "strategy";
    return !wants_value(part) ? NULL : part->width ? width_key(cell) : part->key;
}

void hg_selector_see(const struct hg_selector *s, const json_t *cell)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(s ? cell : NULL), key, value) {
        if (!json_object_get(s->seen, key))
            json_object_set_new(s->seen, key, json_null());
    }
    for (size_t i = 0; s && i < s->n; i++) {
        struct hg_buf text = HG_BUF_INIT;

        key = valued(&s->items[i], cell);
        value = key ? json_object_get(cell, key) : NULL;
        if (!value)
            continue;
        key = s->items[i].width ? "gpus_per_node" : key;
        if (!json_is_object(json_object_get(s->seen, key)))
            json_object_set_new(s->seen, key, json_object());
        hg_json_dump(value, HG_JSON_COMPACT, &text);
        json_object_set(json_object_get(s->seen, key), hg_buf_str(&text), value);
        hg_buf_done(&text);
    }
}

/* With the names that there are: the members of an object, text for text. */
static int suggest(const json_t *known, const char *word, struct hg_err *err)
{
    const char **names = hg_alloc((json_object_size(known) + 1) * sizeof *names), *name;
    size_t n = 0;
    json_t *value;

    json_object_foreach((json_t *)known, name, value)
        names[n++] = json_is_string(value) ? json_string_value(value) : name;
    hg_text_suggest(err, word, names, n);
    free(names);
    return -1;
}

static bool was_strategy(const struct hg_selector *s, const char *word)
{
    const char *text;
    json_t *value;

    json_object_foreach(json_object_get(s->seen, "strategy"), text, value) {
        if (json_is_string(value) && strcmp(json_string_value(value), word) == 0)
            return true;
    }
    return false;
}

static bool any_fits(const struct part *part, const json_t *values)
{
    const char *text;
    json_t *value;

    json_object_foreach((json_t *)values, text, value) {
        for (size_t i = 0; i < part->n; i++)
            if (choice_fits(&part->items[i], value))
                return true;
    }
    return false;
}

int hg_selector_check_seen(const struct hg_selector *s, struct hg_err *err)
{
    for (size_t i = 0; s && json_object_size(s->seen) && i < s->n; i++) {
        const struct part *part = &s->items[i];
        const json_t *values = json_object_get(s->seen, part->key);

        if (strcmp(part->key, "id") == 0 || (is_word(part) && was_strategy(s, part->key)))
            continue;
        if (!values) {
            hg_err_set(err, HG_E_USAGE, "no cell has \"%s\"", part->key);
            return suggest(s->seen, part->key, err);
        }
        if (!wants_value(part) || any_fits(part, values))
            continue;
        hg_err_set(err, HG_E_USAGE, "no cell has %s%s%s%s", part->key,
                   part->compare ? part->compare : "=", part->items[0].text,
                   part->n > 1 ? ", or another value of these" : "");
        return suggest(values, part->items[0].text, err);
    }
    return 0;
}

static int see_cell(const struct hg_cell *cell, void *context)
{
    hg_selector_see(context, cell->members);
    return 0;
}

int hg_selector_refuse(const struct hg_selector *s, const struct hg_matrix *m, unsigned flags,
                       struct hg_errs *errs)
{
    struct hg_err *err;

    if (hg_cells_walk(m, flags | HG_CELLS_MEMBERS, see_cell, (void *)(uintptr_t)s, NULL, errs) < 0)
        return -1;
    err = hg_errs_next(errs);
    if (hg_selector_check_seen(s, err) == 0)
        hg_err_set(err, HG_E_USAGE, "no cell matches the selector");
    return -1;
}
