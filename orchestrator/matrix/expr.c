/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/expr.h"

#include <jq.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/vec.h"
#include "base/text.h"

struct expr {
    char *text;
    char *endless, *memory; /* what the process says when it must give up on this expression */
    struct hg_expr_uses uses;
    bool closed;   /* brackets and strings end where they began: it can stand beside others */
    bool dropped;  /* did not compile */
    jq_state *own; /* compiled alone; NULL: part of the joint program */
};

struct hg_exprs {
    struct expr *items;
    size_t n, cap;
    jq_state *joint;
    struct hg_buf messages; /* of jq's compiler */
    void (*describe)(const void *context, char *out, size_t size);
    const void *context;
};

/* ---- The watchdog: a timer of processor time that ticks while expressions exist ---- */

#define TICK_US 50000
#define GROWTH_MAX_KB (256 << 10) /* jq aborts when its stack passes 1 GiB: stop well before */
#define TICKS_MAX (HG_EXPR_LIMIT_S * 1000000 / TICK_US)

static const struct expr *volatile running; /* being evaluated now */
static const struct hg_exprs *volatile running_set;
static volatile sig_atomic_t ticks; /* since that evaluation began */
static long peak_at_first_tick_kb;
static unsigned n_sets;

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

static void say_and_exit(const char *text)
{
    const struct hg_exprs *x = running_set;
    char cell[400] = "";

    say(text);
    if (x && x->describe)
        x->describe(x->context, cell, sizeof cell);
    if (cell[0]) {
        say("\n  in the cell with ");
        say(cell);
    }
    say("\n");
    _exit(3);
}

static long peak_kb(void)
{
    struct rusage usage = { 0 };

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void on_tick(int signal_number)
{
    const struct expr *e = running;

    (void)signal_number;
    if (!e)
        return;
    if (++ticks > TICKS_MAX)
        say_and_exit(e->endless);
    if (ticks == 1)
        peak_at_first_tick_kb = peak_kb();
    else if (peak_kb() - peak_at_first_tick_kb > GROWTH_MAX_KB)
        say_and_exit(e->memory);
}

static void on_no_memory(void *data)
{
    const struct expr *e = running;

    (void)data;
    if (e)
        say_and_exit(e->memory);
}

static void watch(bool on)
{
    struct itimerval timer = { 0 };
    struct sigaction action = { .sa_handler = on ? on_tick : SIG_IGN, .sa_flags = SA_RESTART };

    if (on)
        timer.it_interval.tv_usec = timer.it_value.tv_usec = TICK_US;
    sigemptyset(&action.sa_mask);
    if (on) {
        sigaction(SIGVTALRM, &action, NULL);
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
    } else {
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
        sigaction(SIGVTALRM, &action, NULL);
    }
}

/* ---- A scan of jq text: which members it reads, and whether it may be used at all ----
 *
 * It need not understand jq. Whatever it does not know to be harmless makes the expression one that
 * reads every member, which costs time and nothing else.
 */

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
    struct expr *e;
    enum token last;
    char open[DEPTH_MAX]; /* ( [ { and " for \( in a string */
    int depth;
    bool piped; /* a | has been seen: a later .name may belong to something else */
    struct hg_err *err;
};

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *p)
{
    return strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static void add_name(struct scan *s, const char *p, size_t n)
{
    struct hg_expr_uses *u = &s->e->uses;

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
    if (!is_name_start(*s->p)) {
        if (s->last != T_TERM || *s->p == '.')
            s->e->uses.all = true; /* ".", "..", ".[" and ."name" */
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
        s->e->uses.hw = true;
    else
        s->e->uses.all = true; /* bound by "as", whose | does not change the input */
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
        s->e->uses.all = true;
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
        s->e->closed = false;
    s->last = T_TERM;
}

static void scan_open(struct scan *s)
{
    if (s->depth < DEPTH_MAX)
        s->open[s->depth++] = *s->p;
    else
        s->e->closed = false;
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
        s->e->closed = false;
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
        s->e->uses.all = true;
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
    } else if (is_name_start(c)) {
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

static int scan(struct expr *e, struct hg_err *err)
{
    struct scan s = { .p = e->text, .e = e, .last = T_START, .err = err };

    e->closed = true;
    for (;;) {
        s.p += strspn(s.p, " \t\r\n");
        if (!*s.p)
            break;
        if (scan_token(&s) < 0)
            return -1;
    }
    if (s.depth)
        e->closed = false;
    return 0;
}

/* ---- Sets ---- */

struct hg_exprs *hg_exprs_create(void)
{
    struct hg_exprs *x = hg_alloc_zeroed(1, sizeof *x);

    if (n_sets++ == 0)
        watch(true);
    return x;
}

static void free_uses(struct hg_expr_uses *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->names[i]);
    free(u->names);
    free(u->certain);
}

static void free_expr(struct expr *e)
{
    if (e->own)
        jq_teardown(&e->own);
    free_uses(&e->uses);
    free(e->text);
    free(e->endless);
    free(e->memory);
}

void hg_exprs_free(struct hg_exprs *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        free_expr(&x->items[i]);
    HG_VEC_DONE(x);
    if (x->joint)
        jq_teardown(&x->joint);
    hg_buf_done(&x->messages);
    free(x);
    if (--n_sets == 0)
        watch(false);
}

int hg_exprs_add(struct hg_exprs *x, const char *text, const char *place, struct hg_err *err)
{
    struct expr *e = HG_VEC_PUSH(x);

    *e = (struct expr){ 0 };
    e->text = hg_strdup(text);
    e->endless = hg_str_printf("%s: the expression does not end; stopped after %d s", place,
                               HG_EXPR_LIMIT_S);
    e->memory = hg_str_printf("%s: the expression needs too much memory; stopped", place);
    if (scan(e, err) == 0)
        return (int)(x->n - 1);
    free_expr(e);
    x->n--;
    return -1;
}

size_t hg_exprs_count(const struct hg_exprs *x)
{
    return x->n;
}

const struct hg_expr_uses *hg_exprs_uses(const struct hg_exprs *x, int i)
{
    return &x->items[i].uses;
}

const char *hg_exprs_text(const struct hg_exprs *x, int i)
{
    return x->items[i].text;
}

void hg_exprs_describe(struct hg_exprs *x, void (*fn)(const void *context, char *out, size_t size),
                       const void *context)
{
    x->describe = fn;
    x->context = context;
}

void hg_exprs_drop(struct hg_exprs *x, int i)
{
    x->items[i].dropped = true;
}

/* ---- Compiling ---- */

static void keep_message(void *data, jv message)
{
    struct hg_buf *out = data;
    jv text = jv_get_kind(message) == JV_KIND_STRING ? message : jv_dump_string(message, 0);

    hg_buf_printf(out, "%s\n", jv_string_value(text));
    jv_free(text);
}

/* jq reads ~/.jq before every program; the same matrix must mean the same for everybody. */
static bool compile_program(jq_state *jq, const char *program)
{
    char *home = getenv("HOME") ? hg_strdup(getenv("HOME")) : NULL;
    bool ok;

    unsetenv("HOME");
    ok = jq_compile(jq, program);
    if (home)
        setenv("HOME", home, 1);
    free(home);
    return ok;
}

static jq_state *compile(struct hg_exprs *x, const char *program)
{
    jq_state *jq = jq_init();

    if (!jq)
        hg_alloc_failed();
    hg_buf_clear(&x->messages);
    jq_set_error_cb(jq, keep_message, &x->messages);
    if (!compile_program(jq, program))
        jq_teardown(&jq);
    return jq;
}

static const char program_head[] = ".[0] as $__hpcgrid | .[1] as $hw | .[2] | ";

/* What the expression's end is called depends on jq's release. */
static const char *end_of_jq(const char *text, size_t n)
{
    static const char *const names[] = { "unexpected $end", "unexpected end of file" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (n >= strlen(names[i]) &&
            memcmp(text + n - strlen(names[i]), names[i], strlen(names[i])) == 0)
            return names[i];
    return NULL;
}

/* The first of jq's messages, without its own decoration. */
static void describe(const struct hg_exprs *x, const struct expr *e, struct hg_err *err)
{
    const char *text = hg_buf_str(&x->messages);
    const char *end, *own;
    size_t n;

    if (strncmp(text, "jq: error: ", 11) == 0)
        text += 11;
    end = strstr(text, " (Unix shell");
    if (!end)
        end = strstr(text, " at <top-level>");
    if (!end)
        end = text + strcspn(text, "\n");
    n = (size_t)(end - text);
    own = end_of_jq(text, n);
    hg_err_set(err, HG_E_INPUT, "the expression does not compile: %.*s%s",
               (int)(n - (own ? strlen(own) : 0)), text, own ? "it ends too soon" : "");
    if (is_name_start(*e->text) && strchr(e->text, '=') && !strstr(e->text, "==") &&
        !strchr(e->text, ' '))
        hg_err_hint(err, "this looks like a selector of the command line; here write jq: "
                         ".strategy == \"ddp\"");
    else
        hg_err_hint(err, "in: %.200s", e->text);
}

static jq_state *compile_closed(struct hg_exprs *x, const struct expr *e)
{
    char *closed = hg_str_printf("%s(%s\n)", program_head, e->text);
    jq_state *jq = compile(x, closed);

    free(closed);
    return jq;
}

/* Compile one expression: bare first, for the message that belongs to the text as written, then in
 * brackets, as it would stand beside others. */
static int compile_alone(struct hg_exprs *x, struct expr *e, struct hg_err *err)
{
    char *bare = hg_str_printf("%s%s", program_head, e->text);
    jq_state *jq = NULL;

    if (!e->closed)
        hg_err_set(err, HG_E_INPUT,
                   "the expression does not compile: a bracket or a string is open at its end, or "
                   "closed once too often");
    else if (!(jq = compile(x, bare)) || !(e->own = compile_closed(x, e)))
        describe(x, e, err);
    if (jq)
        jq_teardown(&jq);
    free(bare);
    return e->own ? 0 : -1;
}

static jq_state *compile_joint(struct hg_exprs *x)
{
    struct hg_buf program = HG_BUF_INIT;
    jq_state *jq;

    hg_buf_puts(&program, program_head);
    for (size_t i = 0; i < x->n; i++)
        if (!x->items[i].dropped)
            hg_buf_printf(&program, "if $__hpcgrid == %zu then (%s\n) else ", i, x->items[i].text);
    hg_buf_puts(&program, "null");
    for (size_t i = 0; i < x->n; i++)
        if (!x->items[i].dropped)
            hg_buf_puts(&program, " end");
    jq = compile(x, program.data);
    hg_buf_done(&program);
    return jq;
}

int hg_exprs_compile(struct hg_exprs *x, int *bad, struct hg_err *err)
{
    bool closed = true;
    size_t left = 0;

    for (size_t i = 0; i < x->n; i++) {
        closed = closed && (x->items[i].closed || x->items[i].dropped);
        left += !x->items[i].dropped;
    }
    if (!left)
        return 0;
    jv_nomem_handler(on_no_memory, NULL);
    if (closed && (x->joint = compile_joint(x)))
        return 0;
    for (size_t i = 0; i < x->n; i++) {
        struct expr *e = &x->items[i];

        if (!e->dropped && !e->own && compile_alone(x, e, err) < 0) {
            *bad = (int)i;
            return -1;
        }
    }
    return 0;
}

/* ---- Evaluating ---- */

void hg_expr_show(jv v, char out[static 64])
{
    jv text = jv_dump_string(v, 0);
    const char *s = jv_string_value(text);

    snprintf(out, 64, strlen(s) > 60 ? "%.57s..." : "%.60s", s);
    jv_free(text);
}

static int failed(jv invalid, struct hg_err *err)
{
    jv message = jv_invalid_get_msg(invalid);
    jv text = jv_get_kind(message) == JV_KIND_STRING ? message : jv_dump_string(message, 0);

    hg_err_set(err, HG_E_INPUT, "%.300s", jv_string_value(text));
    jv_free(text);
    return -1;
}

/* *many: it has more to give, so that jq stands in the middle of the program. */
static int collect(jq_state *jq, jv *out, bool *many, struct hg_err *err)
{
    jv first = jq_next(jq), second;

    if (!jv_is_valid(first)) {
        if (jv_invalid_has_msg(jv_copy(first)))
            return failed(first, err);
        jv_free(first);
        return 0;
    }
    second = jq_next(jq);
    if (jv_is_valid(second) || jv_invalid_has_msg(jv_copy(second))) {
        jv_free(first);
        if (!jv_is_valid(second))
            return failed(second, err);
        jv_free(second);
        *many = true;
        hg_err_set(err, HG_E_INPUT, "the expression gives more than one value");
        return hg_err_hint(err, "is there a stray comma?");
    }
    jv_free(second);
    *out = first;
    return 1;
}

/* jq 1.6 aborts when a program is ended or begun anew inside path(): the old state is left alone,
 * which loses some memory once for each expression that is wrong in this way. */
static void abandon(struct hg_exprs *x, struct expr *e)
{
    if (e->own)
        e->own = compile_closed(x, e);
    else
        x->joint = compile_joint(x);
}

int hg_exprs_eval(struct hg_exprs *x, int i, jv cell, jv hw, jv *out, struct hg_err *err)
{
    struct expr *e = &x->items[i];
    jq_state *jq = e->own ? e->own : x->joint;
    bool many = false;
    jv input = jv_array_set(jv_array_sized(3), 0, jv_number(i));
    int rc;

    input = jv_array_set(input, 1, hw);
    input = jv_array_set(input, 2, cell);
    ticks = 0;
    running_set = x;
    running = e;
    jq_start(jq, input, 0);
    rc = collect(jq, out, &many, err);
    running = NULL;
    if (many)
        abandon(x, e);
    return rc;
}
