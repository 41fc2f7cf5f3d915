/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/expr.h"

#include <jansson.h>
#include <jq.h>
#include <jv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/vec.h"
#include "matrix/value.h"
#include "matrix/watchdog.h"

struct expr {
    char *text;
    char *place; /* for the watchdog */
    struct hg_expr_uses uses;
    bool dropped;  /* did not compile */
    jq_state *own; /* compiled alone; NULL: part of the joint program */
};

struct hg_exprs {
    struct expr *items;
    size_t n, cap;
    jq_state *joint;
    struct hg_buf messages; /* of jq's compiler */
    struct hg_watched watched;
};

struct hg_exprs *hg_exprs_create(void)
{
    struct hg_exprs *x = hg_alloc_zeroed(1, sizeof *x);

    hg_watchdog_hold();
    return x;
}

static void free_expr(struct expr *e)
{
    if (e->own)
        jq_teardown(&e->own);
    hg_scan_done(&e->uses);
    free(e->text);
    free(e->place);
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
    hg_watchdog_release();
}

int hg_exprs_add(struct hg_exprs *x, const char *text, const char *place, struct hg_err *err)
{
    struct expr *e = HG_VEC_PUSH(x);

    *e = (struct expr){ .text = hg_strdup(text), .place = hg_strdup(place) };
    if (hg_scan(text, &e->uses, err) == 0)
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
    x->watched.describe = fn;
    x->watched.context = context;
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
    if (hg_scan_is_name_start(*e->text) && strchr(e->text, '=') && !strstr(e->text, "==") &&
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
 * brackets, as it would be next to others. */
static int compile_alone(struct hg_exprs *x, struct expr *e, struct hg_err *err)
{
    char *bare = hg_str_printf("%s%s", program_head, e->text);
    jq_state *jq = NULL;

    if (!e->uses.closed)
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
        closed = closed && (x->items[i].uses.closed || x->items[i].dropped);
        left += !x->items[i].dropped;
    }
    if (!left)
        return 0;
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

/* jq 1.6 aborts when a program is ended or restarted inside path(): the old state is left alone,
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
    x->watched.place = e->place;
    hg_watchdog_begin(&x->watched);
    jq_start(jq, input, 0);
    rc = collect(jq, out, &many, err);
    hg_watchdog_end();
    if (many)
        abandon(x, e);
    return rc;
}

jv hg_jv_of_json(const json_t *json)
{
    const char *key;
    json_t *inner;
    size_t i;
    jv v;

    switch (json_typeof(json)) {
    case JSON_OBJECT:
        v = jv_object();
        json_object_foreach((json_t *)json, key, inner)
            v = jv_object_set(v, jv_string(key), hg_jv_of_json(inner));
        return v;
    case JSON_ARRAY:
        v = jv_array();
        json_array_foreach((json_t *)json, i, inner)
            v = jv_array_append(v, hg_jv_of_json(inner));
        return v;
    case JSON_STRING:
        return jv_string_sized(json_string_value(json), (int)json_string_length(json));
    case JSON_INTEGER:
    case JSON_REAL:
        return jv_number(json_number_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return jv_bool(json_is_true(json));
    default:
        return jv_null();
    }
}

static json_t *json_of_jv_inner(jv v)
{
    json_t *json;

    if (jv_get_kind(v) == JV_KIND_ARRAY) {
        json = json_array();
        jv_array_foreach(v, i, x)
        {
            if (json_array_append_new(json, hg_json_of_jv(x)) < 0) {
                json_decref(json);
                return NULL;
            }
        }
        return json;
    }
    json = json_object();
    jv_object_foreach(v, key, x)
    {
        int rc = json_object_set_new(json, jv_string_value(key), hg_json_of_jv(x));

        jv_free(key);
        if (rc < 0) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

/* A string that no variable and no file of ours could hold. */
static bool has_nul(jv v)
{
    return (size_t)jv_string_length_bytes(jv_copy(v)) != strlen(jv_string_value(v));
}

json_t *hg_json_of_jv(jv v)
{
    json_t *json = NULL;

    switch (jv_get_kind(v)) {
    case JV_KIND_NUMBER:
        if (isfinite(jv_number_value(v)) && fabs(jv_number_value(v)) < 1e300)
            json = hg_json_number(hg_value_round(jv_number_value(v)));
        break;
    case JV_KIND_STRING:
        if (!has_nul(v))
            json = json_stringn(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)));
        break;
    case JV_KIND_TRUE:
    case JV_KIND_FALSE:
        json = json_boolean(jv_get_kind(v) == JV_KIND_TRUE);
        break;
    case JV_KIND_ARRAY:
    case JV_KIND_OBJECT:
        json = json_of_jv_inner(v);
        break;
    default:
        json = json_null();
    }
    jv_free(v);
    return json;
}
