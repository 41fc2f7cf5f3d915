/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum token {
    T_START,
    T_TERM, /* something that a following .name or [..] belongs to */
    T_PIPE,
    T_OPEN,  /* ( [ { */
    T_COMMA, /* , and ; and : */
    T_WORD,  /* a keyword: a new term may begin */
    T_OPERATOR,
};

#define DEPTH_MAX 64

struct scan {
    const char *p;
    struct hg_expr_uses *uses;
    enum token last;
    char open[DEPTH_MAX]; /* ( [ { and " for \( in a string */
    int depth;
    bool piped; /* a | has been seen: a later .name may belong to something else */
    struct hg_err *err;
};

bool hg_scan_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *p)
{
    return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static void add_name(struct scan *s, const char *p, size_t n)
{
    struct hg_expr_uses *u = s->uses;

    for (size_t i = 0; i < u->n; i++)
        if (strlen(u->names[i]) == n && memcmp(u->names[i], p, n) == 0)
            return;
    u->names = hg_realloc(u->names, (u->n + 1) * sizeof *u->names);
    u->certain = hg_realloc(u->certain, (u->n + 1) * sizeof *u->certain);
    u->names[u->n] = hg_strndup(p, n);
    u->certain[u->n++] = !s->piped;
}

static void scan_dot(struct scan *s)
{
    size_t n;

    s->p++;
    if (!hg_scan_is_name_start(*s->p)) {
        if (s->last != T_TERM || *s->p == '.')
            s->uses->all = true; /* ".", "..", ".[" and ."name" */
        while (*s->p == '.')
            s->p++;
        s->last = T_TERM;
        return;
    }
    n = name_length(s->p);
    if (s->last != T_TERM)
        add_name(s, s->p, n);
    s->p += n;
    s->last = T_TERM;
}

static int forbid(struct scan *s, const char *p, size_t n)
{
    hg_err_set(s->err, HG_E_INPUT, "\"%.*s\" is not allowed in an expression", (int)n, p);
    return hg_err_hint(s->err, "the same cell must give the same value every time; use members of "
                               "the cell and $hw");
}

static int scan_variable(struct scan *s)
{
    size_t n = name_length(++s->p);

    if (n == 3 && memcmp(s->p, "ENV", 3) == 0)
        return forbid(s, s->p - 1, 4);
    if (n == 2 && memcmp(s->p, "hw", 2) == 0)
        s->uses->hw = true;
    else
        s->uses->all = true; /* bound by "as", whose | does not change the input */
    s->p += n;
    s->last = T_TERM;
    return 0;
}

/* What gives another value, or stops, from one time to the next. */
static const char *const forbidden_words[] = {
    "now",
    "env",
    "input",
    "inputs",
    "debug",
    "stderr",
    "halt",
    "halt_error",
    "localtime",
    "strflocaltime",
    "import",
    "include",
    "modulemeta",
    "get_search_list",
    "input_filename",
    "input_line_number",
    "$__prog_args",
    NULL,
};

static const char *const keywords[] = { "and", "or",   "if",  "then", "elif",  "else",
                                        "end", "true", "not", "null", "false", NULL };

/* Keywords that end a term. */
static const char *const value_words[] = { "end", "true", "false", "null", "not", NULL };

/* Functions that look at their arguments only. */
static const char *const blind_words[] = { "pow",   "range", "infinite", "nan",
                                           "empty", "fmin",  "fmax",     NULL };

/* Functions that look at their input only: behind a | that is no cell. */
static const char *const piped_words[] = {
    "floor",    "ceil",     "round",  "sqrt",     "fabs",     "log",          "log2",
    "log10",    "exp",      "exp2",   "exp10",    "tostring", "min",          "max",
    "add",      "any",      "all",    "tonumber", "sort",     "unique",       "first",
    "last",     "reverse",  "length", "test",     "contains", "startswith",   "endswith",
    "ltrimstr", "rtrimstr", "join",   "split",    "inside",   "ascii_upcase", "ascii_downcase",
    "IN",       "index",    NULL,
};

/* The name of an object's member? after: what follows it. */
static bool is_object_key(const struct scan *s, char after)
{
    return s->depth && s->open[s->depth - 1] == '{' && (s->last == T_OPEN || s->last == T_COMMA) &&
           (after == ':' || after == ',' || after == '}');
}

static int scan_word(struct scan *s)
{
    const char *word = s->p;
    size_t n = name_length(word);
    char after = word[n + strspn(word + n, " \t\r\n")];

    s->p += n;
    if (is_object_key(s, after)) {
        s->last = T_TERM;
        if (after != ':')
            add_name(s, word, n); /* {nodes} is {nodes: .nodes} */
        return 0;
    }
    if (hg_text_is_one_of(word, n, forbidden_words))
        return forbid(s, word, n);
    if (hg_text_is_one_of(word, n, keywords)) {
        s->last = hg_text_is_one_of(word, n, value_words) ? T_TERM : T_WORD;
        return 0;
    }
    if (!hg_text_is_one_of(word, n, blind_words) &&
        !(s->last == T_PIPE && hg_text_is_one_of(word, n, piped_words)))
        s->uses->all = true;
    s->last = T_TERM;
    return 0;
}

/* Inside a string, up to its end or to a \( that begins code. */
static void scan_string(struct scan *s)
{
    while (*s->p && *s->p != '"') {
        if (*s->p == '\\' && s->p[1] == '(') {
            s->p += 2;
            if (s->depth < DEPTH_MAX)
                s->open[s->depth++] = '"';
            s->last = T_OPEN;
            return;
        }
        s->p += *s->p == '\\' && s->p[1] ? 2 : 1;
    }
    if (*s->p)
        s->p++;
    else
        s->uses->closed = false;
    s->last = T_TERM;
}

static void scan_open(struct scan *s)
{
    if (s->depth < DEPTH_MAX)
        s->open[s->depth++] = *s->p;
    else
        s->uses->closed = false;
    s->p++;
    s->last = T_OPEN;
}

static void scan_close(struct scan *s)
{
    char c = *s->p++;
    char open = s->depth ? s->open[--s->depth] : '\0';

    s->last = T_TERM;
    if (c == ')' && open == '"')
        scan_string(s);
    else if (!(open == '(' && c == ')') && !(open == '[' && c == ']') && !(open == '{' && c == '}'))
        s->uses->closed = false;
}

static void scan_operator(struct scan *s)
{
    static const char *const compare[] = { "==", "!=", "<=", ">=", "//", NULL };
    char c = *s->p;

    if (hg_text_is_one_of(s->p, 2, compare) && s->p[2] != '=') {
        s->p += 2;
        s->last = T_OPERATOR;
        return;
    }
    s->p++;
    if (c == '|' && *s->p != '=') {
        s->last = T_PIPE;
        s->piped = true;
        return;
    }
    if (c == '=' || *s->p == '=' || c == '@') /* assignments give the whole cell back */
        s->uses->all = true;
    if (c == '?')
        return;
    s->last = c == ',' || c == ';' || c == ':' ? T_COMMA : T_OPERATOR;
}

static int scan_token(struct scan *s)
{
    char c = *s->p;

    if (c == '#') {
        s->p += strcspn(s->p, "\n");
    } else if (c == '"') {
        s->p++;
        scan_string(s);
    } else if (c == '.' && s->p[1] >= '0' && s->p[1] <= '9') {
        s->p += strspn(s->p, ".0123456789eE");
        s->last = T_TERM;
    } else if (c == '.') {
        scan_dot(s);
    } else if (c == '$') {
        return scan_variable(s);
    } else if (hg_scan_is_name_start(c)) {
        return scan_word(s);
    } else if (c >= '0' && c <= '9') {
        s->p += strspn(s->p, "0123456789.eE");
        s->last = T_TERM;
    } else if (strchr("([{", c)) {
        scan_open(s);
    } else if (strchr(")]}", c)) {
        scan_close(s);
    } else {
        scan_operator(s);
    }
    return 0;
}

int hg_scan(const char *text, struct hg_expr_uses *uses, struct hg_err *err)
{
    struct scan s = { .p = text, .uses = uses, .last = T_START, .err = err };

    uses->closed = true;
    for (;;) {
        s.p += strspn(s.p, " \t\r\n");
        if (!*s.p)
            break;
        if (scan_token(&s) < 0)
            return -1;
    }
    if (s.depth)
        uses->closed = false;
    return 0;
}

void hg_scan_done(struct hg_expr_uses *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->names[i]);
    free(u->names);
    free(u->certain);
}
