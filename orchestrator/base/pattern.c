/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pattern.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/alloc.h"

struct hg_pattern {
    regex_t re;
};

/* "\d" as POSIX says it; inside brackets without the brackets. NULL: not one of ours. */
static const char *escape_meaning(char c, bool bracket)
{
    switch (c) {
    case 'd':
        return bracket ? "0-9" : "[0-9]";
    case 'D':
        return bracket ? NULL : "[^0-9]";
    case 'w':
        return bracket ? "A-Za-z0-9_" : "[A-Za-z0-9_]";
    case 's':
        return bracket ? " \t" : "[ \t]";
    case 'S':
        return bracket ? NULL : "[^ \t]";
    case 't':
        return "\t";
    default:
        return NULL;
    }
}

/* The escape at s[0] = '\\'. Returns how many characters it took. */
static size_t translate_escape(const char *s, bool bracket, struct hg_buf *out)
{
    const char *meaning = s[1] ? escape_meaning(s[1], bracket) : NULL;

    if (meaning)
        hg_buf_puts(out, meaning);
    else if (bracket && s[1] && s[1] != ']') /* POSIX brackets know no escapes */
        hg_buf_append(out, s + 1, 1);
    else
        hg_buf_append(out, s, s[1] ? 2 : 1);
    return s[1] ? 2 : 1;
}

/* A bracket expression from "[" to its "]" (one that comes first is a member). */
static size_t translate_bracket(const char *s, struct hg_buf *out)
{
    size_t i = 1;

    hg_buf_append(out, s, 1);
    if (s[i] == '^')
        hg_buf_append(out, &s[i++], 1);
    if (s[i] == ']')
        hg_buf_append(out, &s[i++], 1);
    while (s[i] && s[i] != ']') {
        const char *end = NULL;

        if (s[i] == '[' && s[i + 1] == ':')
            end = strstr(s + i + 2, ":]");
        if (end) {
            hg_buf_append(out, s + i, (size_t)(end + 2 - (s + i)));
            i = (size_t)(end + 2 - s);
        } else if (s[i] == '\\') {
            i += translate_escape(s + i, true, out);
        } else {
            hg_buf_append(out, &s[i++], 1);
        }
    }
    if (s[i])
        hg_buf_append(out, &s[i++], 1);
    return i;
}

static int translate(const char *s, struct hg_buf *out, struct hg_err *err)
{
    for (size_t i = 0; s[i];) {
        if (s[i] == '\\') {
            i += translate_escape(s + i, false, out);
        } else if (s[i] == '[') {
            i += translate_bracket(s + i, out);
        } else if (s[i] == '(' && s[i + 1] == '?') {
            hg_err_set(err, HG_E_INPUT, "\"%s\": \"(?\" is not supported", s);
            return hg_err_hint(err, "write a plain group; group 1 is the number");
        } else if (i && strchr("*+?}", s[i - 1]) && s[i] == '?' && (i < 2 || s[i - 2] != '\\')) {
            hg_err_set(err, HG_E_INPUT, "\"%s\": lazy quantifiers (\"%.2s\") are not supported", s,
                       s + i - 1);
            return hg_err_hint(err, "name the characters allowed there, such as [^ ]+");
        } else {
            hg_buf_append(out, &s[i++], 1);
        }
    }
    return 0;
}

static int compile(struct hg_pattern *p, const char *text, struct hg_err *err)
{
    struct hg_buf posix = HG_BUF_INIT;
    char why[128];
    int rc = -1;
    int bad;

    if (translate(text, &posix, err) < 0)
        goto out;
    bad = regcomp(&p->re, hg_buf_str(&posix), REG_EXTENDED);
    if (bad) {
        regerror(bad, &p->re, why, sizeof why);
        hg_err_set(err, HG_E_INPUT, "\"%s\" is not a regular expression: %s", text, why);
        goto out;
    }
    if (p->re.re_nsub < 1) {
        regfree(&p->re);
        hg_err_set(err, HG_E_INPUT, "\"%s\" has no group", text);
        hg_err_hint(err, "put parentheses around the number: loss=([0-9.]+)");
        goto out;
    }
    rc = 0;
out:
    hg_buf_done(&posix);
    return rc;
}

struct hg_pattern *hg_pattern_compile(const char *text, struct hg_err *err)
{
    struct hg_pattern *p = hg_alloc_zeroed(1, sizeof *p);

    if (compile(p, text, err) < 0) {
        free(p);
        return NULL;
    }
    return p;
}

void hg_pattern_free(struct hg_pattern *p)
{
    if (!p)
        return;
    regfree(&p->re);
    free(p);
}

/* The last match in one line that has a group 1. */
static bool last_in_line(const struct hg_pattern *p, const char *line, size_t len,
                         const char **group, size_t *n)
{
    bool found = false;
    size_t at = 0;

    while (at <= len) {
        regmatch_t m[2] = { { .rm_so = (regoff_t)at, .rm_eo = (regoff_t)len } };
        int flags = REG_STARTEND | (at ? REG_NOTBOL : 0);

        if (regexec(&p->re, line, 2, m, flags) != 0)
            break;
        if (m[1].rm_so >= 0) {
            *group = line + m[1].rm_so;
            *n = (size_t)(m[1].rm_eo - m[1].rm_so);
            found = true;
        }
        at = (size_t)m[0].rm_eo + (m[0].rm_eo == m[0].rm_so);
    }
    return found;
}

static bool ends_line(char c)
{
    return c == '\n' || c == '\r';
}

bool hg_pattern_last(const struct hg_pattern *p, const char *text, size_t len, const char **group,
                     size_t *n)
{
    for (size_t end = len;;) {
        size_t start = end;

        while (start && !ends_line(text[start - 1]))
            start--;
        if (end > start && last_in_line(p, text + start, end - start, group, n))
            return true;
        if (start == 0)
            return false;
        end = start - 1;
    }
}
