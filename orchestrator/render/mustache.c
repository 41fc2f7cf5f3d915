/* SPDX-License-Identifier: Apache-2.0 */
#include "render/mustache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"

#define DELIMITER_MAX 16
#define STEPS_MAX 20000000 /* nodes rendered and items visited: loops in loops end, too */

enum kind { TEXT, VALUE, RAW, SECTION, INVERTED };

/* Nodes stand in the order of the template; a section is followed by its body. */
struct node {
    enum kind kind;
    const char *text; /* TEXT: into the copy; else the name, own */
    size_t n;         /* TEXT: bytes; a section: nodes of its body */
    int line, column;
};

struct hg_mustache {
    char *file, *text;
    struct {
        struct node *items;
        size_t n, cap;
    } nodes;
};

/* ---- Parsing ---- */

struct parser {
    struct hg_mustache *m;
    const char *at, *end;
    const char *line_start;
    int line;
    char open[DELIMITER_MAX], close[DELIMITER_MAX];
    size_t stack[HG_MUSTACHE_DEPTH_MAX], depth; /* open sections: indices of nodes */
    struct hg_errs *errs;
};

/* An error at a line and column of the template. */
static struct hg_err *place(struct hg_errs *errs, const char *file, int line, int column)
{
    struct hg_err *err = hg_errs_next(errs);

    hg_err_at(err, file, "");
    err->line = line;
    err->column = column;
    return err;
}

static int column_of(const struct parser *p, const char *at)
{
    int column = 1;

    for (const char *q = p->line_start; q < at; q++)
        column += ((unsigned char)*q & 0xc0) != 0x80; /* characters, not bytes */
    return column;
}

static void push_text(struct parser *p, const char *from, const char *to)
{
    if (to > from)
        *HG_VEC_PUSH(&p->m->nodes) =
            (struct node){ .kind = TEXT, .text = from, .n = (size_t)(to - from) };
}

static void count_lines(struct parser *p, const char *from, const char *to)
{
    for (; from < to; from++)
        if (*from == '\n') {
            p->line++;
            p->line_start = from + 1;
        }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* A tag that prints nothing and stands alone on its line takes the line with it. */
static bool is_alone(const struct parser *p, const char *tag, const char *behind)
{
    const char *from = tag, *to = behind;

    while (from > p->m->text && is_blank(from[-1]))
        from--;
    while (to < p->end && is_blank(*to))
        to++;
    return (from == p->m->text || from[-1] == '\n') &&
           (to == p->end || *to == '\n' || (*to == '\r' && to + 1 < p->end && to[1] == '\n'));
}

static const char *line_end(const struct parser *p, const char *at)
{
    while (at < p->end && *at != '\n')
        at++;
    return at < p->end ? at + 1 : at;
}

static void set_delimiters(struct parser *p, const char *text, size_t n, int column)
{
    char first[DELIMITER_MAX], second[DELIMITER_MAX], copy[3 * DELIMITER_MAX];
    char extra;

    if (n < sizeof copy) {
        memcpy(copy, text, n);
        copy[n] = '\0';
        if (sscanf(copy, "%15s %15s %c", first, second, &extra) == 2 && !strchr(first, '=') &&
            !strchr(second, '=')) {
            snprintf(p->open, sizeof p->open, "%s", first);
            snprintf(p->close, sizeof p->close, "%s", second);
            return;
        }
    }
    hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
               "new delimiters are written {{=<%% %%>=}}: two words without =");
}

static void open_section(struct parser *p, enum kind kind, char *name, int column)
{
    if (p->depth == HG_MUSTACHE_DEPTH_MAX) {
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "sections are nested deeper than %d", HG_MUSTACHE_DEPTH_MAX);
        free(name);
        return;
    }
    p->stack[p->depth++] = p->m->nodes.n;
    *HG_VEC_PUSH(&p->m->nodes) =
        (struct node){ .kind = kind, .text = name, .line = p->line, .column = column };
}

static void close_section(struct parser *p, const char *name, int column)
{
    struct node *open;

    if (p->depth == 0) {
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "{{/%s}} closes a section that is not open", name);
        return;
    }
    open = &p->m->nodes.items[p->stack[--p->depth]];
    open->n = p->m->nodes.n - p->stack[p->depth] - 1;
    if (strcmp(open->text, name) != 0)
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "{{/%s}} closes {{%c%s}} of line %d", name, open->kind == SECTION ? '#' : '^',
                   open->text, open->line);
}

/* What stands between the delimiters. */
static void take_tag(struct parser *p, char sigil, const char *inside, size_t n, int column)
{
    char *name;

    while (n && (is_blank(*inside) || *inside == '\n' || *inside == '\r')) {
        inside++;
        n--;
    }
    while (n && (is_blank(inside[n - 1]) || inside[n - 1] == '\n' || inside[n - 1] == '\r'))
        n--;
    if (sigil == '!')
        return;
    if (sigil == '=') {
        set_delimiters(p, inside, n && inside[n - 1] == '=' ? n - 1 : n, column);
        return;
    }
    if (sigil == '>' || sigil == '<' || sigil == '$') {
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "{{%c%.*s}}: a template is one file, without partials", sigil,
                   (int)(n > 40 ? 40 : n), inside);
        return;
    }
    name = hg_strndup(inside, n);
    if (n == 0 || strpbrk(name, " \t\r\n{}")) {
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "\"%.60s\" is not a name", name);
        free(name);
    } else if (sigil == '#' || sigil == '^') {
        open_section(p, sigil == '#' ? SECTION : INVERTED, name, column);
    } else if (sigil == '/') {
        close_section(p, name, column);
        free(name);
    } else {
        *HG_VEC_PUSH(&p->m->nodes) = (struct node){
            .kind = sigil ? RAW : VALUE, .text = name, .line = p->line, .column = column
        };
    }
}

/* The tag at p->at; what stood before it since `from` becomes text. False: it does not end. */
static bool parse_tag(struct parser *p, const char *from)
{
    const char *tag = p->at, *inside = tag + strlen(p->open), *close, *behind;
    bool triple = inside < p->end && *inside == '{' && strcmp(p->open, "{{") == 0;
    char sigil = inside < p->end && strchr("#^/!=>&<$", *inside) ? *inside : '\0';
    const char *ending = triple ? "}}}" : p->close;
    int column = column_of(p, tag);

    inside += triple || sigil;
    close = memmem(inside, (size_t)(p->end - inside), ending, strlen(ending));
    if (!close) {
        hg_err_set(place(p->errs, p->m->file, p->line, column), HG_E_INPUT,
                   "the tag is not closed: %s is missing", ending);
        return false;
    }
    behind = close + strlen(ending);
    if (sigil && sigil != '&' && is_alone(p, tag, behind)) {
        while (tag > from && is_blank(tag[-1]))
            tag--;
        behind = line_end(p, behind);
    }
    push_text(p, from, tag);
    take_tag(p, triple ? '&' : sigil, inside, (size_t)(close - inside), column);
    count_lines(p, p->at, behind);
    p->at = behind;
    return true;
}

static void parse(struct parser *p)
{
    while (p->at < p->end) {
        const char *from = p->at;
        const char *tag = memmem(p->at, (size_t)(p->end - p->at), p->open, strlen(p->open));

        if (!tag) {
            push_text(p, from, p->end);
            break;
        }
        count_lines(p, p->at, tag);
        p->at = tag;
        if (!parse_tag(p, from))
            break;
    }
    while (p->depth > 0) {
        const struct node *open = &p->m->nodes.items[p->stack[--p->depth]];

        hg_err_set(place(p->errs, p->m->file, open->line, open->column), HG_E_INPUT,
                   "{{%c%s}} is never closed", open->kind == SECTION ? '#' : '^', open->text);
    }
}

/* ---- Names ---- */

/* Where one is: values from the outermost in, and the place in the innermost list. */
struct scope {
    const json_t *stack[HG_MUSTACHE_DEPTH_MAX + 1];
    size_t depth;
    size_t index, count; /* count 0: in no list */
    bool in_list;
};

static const json_t *member(const json_t *object, const char *name, size_t n)
{
    char key[128];

    if (!json_is_object(object) || n >= sizeof key)
        return NULL;
    memcpy(key, name, n);
    key[n] = '\0';
    return json_object_get(object, key);
}

static const json_t *any_member(const json_t *shape)
{
    return json_object_get(shape, "*");
}

/* The value of a name; NULL: there is none. With `shapes`, "*" stands for every name. */
static const json_t *look_up(const struct scope *s, const char *name, bool shapes)
{
    const json_t *value = NULL;
    size_t n = strcspn(name, ".");

    if (strcmp(name, ".") == 0)
        return s->stack[s->depth - 1];
    for (size_t i = s->depth; i-- > 0 && !value;)
        value = member(s->stack[i], name, n);
    while (value && name[n]) {
        const json_t *object = value;

        name += n + 1;
        n = strcspn(name, ".");
        value = member(object, name, n);
        if (!value && shapes && n)
            value = any_member(object);
    }
    return value;
}

static bool is_place(const char *name)
{
    return strcmp(name, "@first") == 0 || strcmp(name, "@last") == 0 || strcmp(name, "@index") == 0;
}

/* The names that would do here. */
static void suggest(const struct scope *s, const char *name, struct hg_err *err)
{
    const char *names[128];
    size_t n = 0;

    for (size_t i = s->depth; i-- > 0;) {
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)s->stack[i], key, value) {
            if (n < sizeof names / sizeof *names)
                names[n++] = key;
        }
    }
    if (n)
        hg_text_suggest(err, name, names, n);
}

static void check_value(const struct hg_mustache *m, const struct node *node, const struct scope *s,
                        struct hg_errs *errs)
{
    const json_t *value = look_up(s, node->text, true);

    if (is_place(node->text)) {
        if (!s->in_list)
            hg_err_set(place(errs, m->file, node->line, node->column), HG_E_INPUT,
                       "%s is only valid in a list", node->text);
    } else if (!value) {
        struct hg_err *err = place(errs, m->file, node->line, node->column);

        hg_err_set(err, HG_E_INPUT, "there is no \"%.100s\" here", node->text);
        suggest(s, node->text, err);
    } else if ((json_is_array(value) || json_is_object(value)) && node->kind <= RAW) {
        hg_err_set(place(errs, m->file, node->line, node->column), HG_E_INPUT,
                   "\"%.100s\" is %s: {{#%.100s}} opens it", node->text,
                   json_is_array(value) ? "a list" : "an object", node->text);
    }
}

/* Every name of nodes from..to, in whatever sections they stand. */
static void check_names(const struct hg_mustache *m, size_t from, size_t to, struct scope *s,
                        struct hg_errs *errs)
{
    for (size_t i = from; i < to; i++) {
        const struct node *node = &m->nodes.items[i];
        const json_t *value;
        struct scope inner = *s;

        if (node->kind == TEXT)
            continue;
        check_value(m, node, s, errs);
        if (node->kind < SECTION)
            continue;
        value = look_up(s, node->text, true);
        if (json_is_array(value) && node->kind == SECTION) {
            value = json_array_get(value, 0);
            inner.in_list = true;
        }
        if (value && node->kind == SECTION)
            inner.stack[inner.depth++] = value;
        check_names(m, i + 1, i + 1 + node->n, &inner, errs);
        i += node->n;
    }
}

struct hg_mustache *hg_mustache_parse(const char *file, const char *text, size_t len,
                                      const json_t *shape, struct hg_errs *errs)
{
    struct hg_mustache *m = hg_alloc_zeroed(1, sizeof *m);
    struct parser p = { .m = m, .line = 1, .open = "{{", .close = "}}", .errs = errs };
    struct scope scope = { .stack = { shape }, .depth = 1 };
    size_t before = errs->n + errs->dropped;

    m->file = hg_strdup(file);
    m->text = hg_alloc(len + 1);
    memcpy(m->text, text, len);
    m->text[len] = '\0';
    p.at = p.line_start = m->text;
    p.end = m->text + len;
    if (memchr(text, '\0', len))
        hg_err_set(place(errs, file, 0, 0), HG_E_INPUT, "not text: it has NUL bytes");
    else
        parse(&p);
    if (errs->n + errs->dropped == before)
        check_names(m, 0, m->nodes.n, &scope, errs);
    if (errs->n + errs->dropped == before)
        return m;
    hg_mustache_free(m);
    return NULL;
}

void hg_mustache_free(struct hg_mustache *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->nodes.n; i++)
        if (m->nodes.items[i].kind != TEXT)
            free((char *)m->nodes.items[i].text);
    HG_VEC_DONE(&m->nodes);
    free(m->text);
    free(m->file);
    free(m);
}

/* ---- Rendering ---- */

struct render {
    const struct hg_mustache *m;
    hg_mustache_escape_fn *escape;
    struct hg_buf *out;
    size_t start, steps;
    struct hg_err *err;
};

static bool is_true(const json_t *v)
{
    return v && !json_is_null(v) && !json_is_false(v) &&
           !(json_is_array(v) && json_array_size(v) == 0) &&
           !(json_is_string(v) && json_string_length(v) == 0) &&
           !(json_is_number(v) && json_number_value(v) == 0);
}

static int fail(struct render *r, const struct node *node, const char *what)
{
    hg_err_set(r->err, HG_E_INPUT, "%s", what);
    hg_err_at(r->err, r->m->file, "");
    r->err->line = node->line;
    r->err->column = node->column;
    return -1;
}

/* A place in a list as a value of its own, which the caller releases. */
static json_t *place_value(const struct scope *s, const char *name)
{
    return strcmp(name, "@index") == 0   ? json_integer((json_int_t)s->index + 1)
           : strcmp(name, "@first") == 0 ? json_boolean(s->index == 0)
                                         : json_boolean(s->index + 1 == s->count);
}

static int render_value(struct render *r, const struct node *node, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;

    if (!value) {
        char what[160];

        snprintf(what, sizeof what, "there is no \"%.100s\" here", node->text);
        return fail(r, node, what);
    }
    if (json_is_string(value))
        hg_buf_append(&text, json_string_value(value), json_string_length(value));
    else if (!json_is_null(value))
        hg_json_dump(value, HG_JSON_COMPACT, &text);
    if (node->kind == RAW)
        hg_buf_append(r->out, text.data, text.len);
    else
        r->escape(hg_buf_str(&text), r->out);
    hg_buf_done(&text);
    return 0;
}

static int render_nodes(struct render *r, size_t from, size_t to, const struct scope *s);

static int render_section(struct render *r, size_t at, const struct scope *s, const json_t *value)
{
    const struct node *node = &r->m->nodes.items[at];
    struct scope inner = *s;
    size_t i;
    json_t *item;

    if (!value)
        return render_value(r, node, NULL); /* the error that says so */
    if (node->kind == INVERTED)
        return is_true(value) ? 0 : render_nodes(r, at + 1, at + 1 + node->n, s);
    if (!is_true(value))
        return 0;
    inner.depth++;
    if (!json_is_array(value)) {
        inner.stack[inner.depth - 1] = value;
        return render_nodes(r, at + 1, at + 1 + node->n, &inner);
    }
    inner.count = json_array_size(value);
    json_array_foreach((json_t *)value, i, item) {
        inner.stack[inner.depth - 1] = item;
        inner.index = i;
        r->steps++; /* of an empty section, too */
        if (render_nodes(r, at + 1, at + 1 + node->n, &inner) < 0)
            return -1;
    }
    return 0;
}

static int render_nodes(struct render *r, size_t from, size_t to, const struct scope *s)
{
    for (size_t i = from; i < to; i++) {
        const struct node *node = &r->m->nodes.items[i];
        json_t *own = NULL;
        const json_t *value;
        int rc;

        if (r->out->len - r->start > HG_MUSTACHE_OUTPUT_MAX || ++r->steps > STEPS_MAX)
            return fail(r, node, "too much output: more than 64 MiB, or 20 million tags");
        if (node->kind == TEXT) {
            hg_buf_append(r->out, node->text, node->n);
            continue;
        }
        if (is_place(node->text))
            own = place_value(s, node->text);
        value = own ? own : look_up(s, node->text, false);
        rc = node->kind < SECTION ? render_value(r, node, value) : render_section(r, i, s, value);
        json_decref(own);
        if (rc < 0)
            return -1;
        i += node->kind < SECTION ? 0 : node->n;
    }
    return 0;
}

int hg_mustache_render(const struct hg_mustache *m, const json_t *data,
                       hg_mustache_escape_fn *escape, struct hg_buf *out, struct hg_err *err)
{
    struct render r = { .m = m, .escape = escape, .out = out, .start = out->len, .err = err };
    const struct scope scope = { .stack = { data }, .depth = 1 };

    return render_nodes(&r, 0, m->nodes.n, &scope);
}
