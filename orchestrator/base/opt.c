/* SPDX-License-Identifier: Apache-2.0 */
#include "base/opt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define OPTS_MAX 64

static const struct hg_opt *find_long(const struct hg_opt *opts, const char *name, size_t n)
{
    for (; opts->kind != HG_OPT_END; opts++)
        if (strlen(opts->name) == n && memcmp(opts->name, name, n) == 0)
            return opts;
    return NULL;
}

static const struct hg_opt *find_short(const struct hg_opt *opts, char letter)
{
    for (; opts->kind != HG_OPT_END; opts++)
        if (opts->letter == letter && letter != HG_OPT_RARE)
            return opts;
    return NULL;
}

static int unknown_option(const struct hg_opt *opts, const char *word, struct hg_err *err)
{
    const char *names[OPTS_MAX];
    char bare[64];
    const char *near;
    size_t n = 0;

    for (; opts->kind != HG_OPT_END && n < OPTS_MAX; opts++)
        names[n++] = opts->name;
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    hg_err_set(err, HG_E_USAGE, "unknown option %s", word);
    near = hg_text_nearest(bare, names, n);
    if (near)
        hg_err_hint(err, "did you mean --%s?", near);
    return -1;
}

static int set_number(const struct hg_opt *o, const char *value, struct hg_err *err)
{
    char *end;
    double v = o->kind == HG_OPT_INT ? (double)strtol(value, &end, 10) : strtod(value, &end);

    if (end == value || *end || !isfinite(v))
        return hg_err_set(err, HG_E_USAGE, "--%s needs a %s, got \"%s\"", o->name,
                          o->kind == HG_OPT_INT ? "whole number" : "number", value);
    if ((o->min < o->max) && (v < o->min || v > o->max))
        return hg_err_set(err, HG_E_USAGE, "--%s must be from %g to %g, got %s", o->name, o->min,
                          o->max, value);
    if (o->kind == HG_OPT_INT)
        *(long *)o->target = (long)v;
    else
        *(double *)o->target = v;
    return 0;
}

static int add_to_list(const struct hg_opt *o, const char *value, struct hg_err *err)
{
    struct hg_opt_list *list = o->target;

    if (list->n == HG_OPT_LIST_MAX)
        return hg_err_set(err, HG_E_USAGE, "--%s is given more than %d times", o->name,
                          HG_OPT_LIST_MAX);
    list->items[list->n++] = value;
    return 0;
}

static int set_value(const struct hg_opt *o, const char *value, struct hg_err *err)
{
    if (o->kind == HG_OPT_STRING) {
        *(const char **)o->target = value;
        return 0;
    }
    if (o->kind == HG_OPT_LIST)
        return add_to_list(o, value, err);
    return set_number(o, value, err);
}

/* --name, --no-name, --name=value, --name value; *i may move on by one. */
static int parse_long(const struct hg_opt *opts, int argc, char **argv, int *i, struct hg_err *err)
{
    const char *word = argv[*i];
    const char *name = word + 2;
    size_t n = strcspn(name, "=");
    const struct hg_opt *o = find_long(opts, name, n);

    if (!o && strncmp(name, "no-", 3) == 0 && (o = find_long(opts, name + 3, n - 3)) &&
        o->kind == HG_OPT_FLAG && !name[n]) {
        *(bool *)o->target = false;
        return 0;
    }
    if (!o)
        return unknown_option(opts, word, err);
    if (o->kind == HG_OPT_FLAG) {
        if (name[n])
            return hg_err_set(err, HG_E_USAGE, "--%s does not take a value", o->name);
        *(bool *)o->target = true;
        return 0;
    }
    if (name[n])
        return set_value(o, name + n + 1, err);
    if (*i + 1 >= argc)
        return hg_err_set(err, HG_E_USAGE, "--%s needs a value: --%s %s", o->name, o->name, o->arg);
    return set_value(o, argv[++*i], err);
}

/* -j, -n 3, -n3; flags may stand together: -jv. */
static int parse_short(const struct hg_opt *opts, int argc, char **argv, int *i, struct hg_err *err)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct hg_opt *o = find_short(opts, *p);

        if (!o)
            return hg_err_set(err, HG_E_USAGE, "unknown option -%c", *p);
        if (o->kind == HG_OPT_FLAG) {
            *(bool *)o->target = true;
            continue;
        }
        if (p[1])
            return set_value(o, p + 1, err);
        if (*i + 1 >= argc)
            return hg_err_set(err, HG_E_USAGE, "-%c needs a value: -%c %s", *p, *p, o->arg);
        return set_value(o, argv[++*i], err);
    }
    return 0;
}

int hg_opt_parse(const struct hg_opt *opts, int *argc, char **argv, struct hg_err *err)
{
    bool only_operands = false;
    int kept = 0;

    for (int i = 0; i < *argc; i++) {
        char *word = argv[i];

        if (only_operands || word[0] != '-' || !word[1]) {
            argv[kept++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_operands = true;
            continue;
        }
        if ((word[1] == '-' ? parse_long : parse_short)(opts, *argc, argv, &i, err) < 0)
            return -1;
    }
    *argc = kept;
    return 0;
}

static bool is_rare(const struct hg_opt *o)
{
    return o->letter == HG_OPT_RARE || !o->help;
}

/* The rare ones share lines: names only. */
static void append_rare(const struct hg_opt *opts, struct hg_buf *out)
{
    size_t at = 0;

    for (; opts->kind != HG_OPT_END; opts++) {
        size_t n = strlen(opts->name) + (opts->arg ? strlen(opts->arg) + 1 : 0) + 2;

        if (!is_rare(opts))
            continue;
        if (at == 0)
            hg_buf_puts(out, "  also: ");
        else if (at + n + 2 > 78)
            hg_buf_puts(out, ",\n        ");
        else
            hg_buf_puts(out, ", ");
        at = at == 0 || at + n + 2 > 78 ? 8 + n : at + 2 + n;
        hg_buf_printf(out, "--%s%s%s", opts->name, opts->arg ? " " : "",
                      opts->arg ? opts->arg : "");
    }
    hg_buf_puts(out, at ? "\n" : "");
}

void hg_opt_help(const struct hg_opt *opts, struct hg_buf *out)
{
    const struct hg_opt *all = opts;

    for (; opts->kind != HG_OPT_END; opts++) {
        struct hg_buf left = HG_BUF_INIT;

        if (is_rare(opts))
            continue;
        if (opts->letter)
            hg_buf_printf(&left, "-%c, ", opts->letter);
        else
            hg_buf_puts(&left, "    ");
        hg_buf_printf(&left, "--%s%s%s", opts->name, opts->arg ? " " : "",
                      opts->arg ? opts->arg : "");
        hg_buf_printf(out, "  %-25s %s\n", hg_buf_str(&left), opts->help);
        hg_buf_done(&left);
    }
    append_rare(all, out);
}

void hg_opt_words(const struct hg_opt *o, struct hg_buf *out)
{
    static const char *const before[] = { "one of ", "some of ", "all or " };
    const char *p = NULL;

    for (size_t i = 0; o->help && i < sizeof before / sizeof *before; i++)
        if (strncmp(o->help, before[i], strlen(before[i])) == 0)
            p = o->help + (*o->help == 'a' ? 0 : strlen(before[i]));
    for (size_t n; p && *p && *p != ':' && *p != ';'; p += n) {
        n = strcspn(p, " ,:;");
        if (n && (n != 2 || memcmp(p, "or", 2) != 0)) {
            hg_buf_puts(out, " ");
            hg_buf_append(out, p, n);
        }
        n += strspn(p + n, " ,");
    }
}
