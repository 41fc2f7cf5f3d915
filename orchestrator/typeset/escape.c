/* SPDX-License-Identifier: Apache-2.0 */
#include "typeset/escape.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "typeset/plain.h"

void hg_md_append(const char *text, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;
    const char *start;

    hg_clean_append(text, 0, &clean);
    start = hg_buf_str(&clean);
    for (const char *p = start; *p; p++) {
        bool edge = p == start || p[1] == '\0' || p[-1] == ' ' || p[1] == ' ';

        if (*p == '<')
            hg_buf_puts(out, "&lt;");
        else if (*p == '&')
            hg_buf_puts(out, "&amp;");
        else if (strchr("\\`*[]|~", *p) || (*p == '_' && edge))
            hg_buf_printf(out, "\\%c", *p);
        else
            hg_buf_append(out, p, 1);
    }
    hg_buf_done(&clean);
}

void hg_html_append(const char *text, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;

    hg_clean_append(text, 0, &clean);
    for (const char *p = hg_buf_str(&clean); *p;) {
        size_t n = strcspn(p, "<>&\"'");

        hg_buf_append(out, p, n);
        p += n;
        if (*p)
            hg_buf_printf(out, "&#%d;", *p++);
    }
    hg_buf_done(&clean);
}

void hg_href_append(const char *path, struct hg_buf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-._~/";

    if (strncmp(path, "//", 2) == 0)
        hg_buf_puts(out, "/.");
    for (; *path; path++)
        if (strchr(plain, *path))
            hg_buf_append(out, path, 1);
        else
            hg_buf_printf(out, "%%%02X", (unsigned char)*path);
}

/* Special characters of LaTeX, and signs that not every font encoding has. */
static const struct {
    const char *text, *latex;
} signs[] = {
    { "\\", "\\textbackslash{}" },
    { "{", "\\{" },
    { "}", "\\}" },
    { "$", "\\$" },
    { "&", "\\&" },
    { "#", "\\#" },
    { "_", "\\_" },
    { "%", "\\%" },
    { "^", "\\textasciicircum{}" },
    { "~", "\\textasciitilde{}" },
    { "<", "\\textless{}" },
    { ">", "\\textgreater{}" },
    { "|", "\\textbar{}" },
    { "\"", "\\textquotedbl{}" },
    { "±", "$\\pm$" },
    { "–", "--" },
    { "→", "$\\to$" },
    { "∞", "$\\infty$" },
    { "·", "$\\cdot$" },
    { "…", "\\dots{}" },
};

void hg_latex_append(const char *text, struct hg_buf *out)
{
    struct hg_buf clean = HG_BUF_INIT;

    hg_clean_append(text, 0, &clean);
    for (const char *p = hg_buf_str(&clean); *p;) {
        size_t i = 0;

        while (i < sizeof signs / sizeof *signs &&
               strncmp(p, signs[i].text, strlen(signs[i].text)) != 0)
            i++;
        if (i < sizeof signs / sizeof *signs) {
            hg_buf_puts(out, signs[i].latex);
            p += strlen(signs[i].text);
        } else {
            hg_buf_append(out, p++, 1);
        }
    }
    hg_buf_done(&clean);
}

const char *hg_csv_separator(const struct hg_style *style)
{
    return style->comma ? ";" : ",";
}

/* Signs that begin a formula in some spreadsheet; the wide ones in East Asian settings. */
static bool is_formula(const char *text)
{
    static const char *const wide[] = { "＝", "＋", "－", "＠" };

    if (*text && strchr("=+-@\t\r\n", *text))
        return true;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strncmp(text, wide[i], strlen(wide[i])) == 0)
            return true;
    return false;
}

void hg_csv_append(const struct hg_style *style, const char *text, struct hg_buf *out)
{
    char *end;
    bool formula = is_formula(text) && (strtod(text, &end), *end);
    bool quoted =
        formula || strpbrk(text, "\"\r\n") || *text == ' ' || strstr(text, hg_csv_separator(style));

    if (!quoted) {
        hg_buf_puts(out, text);
        return;
    }
    hg_buf_puts(out, formula ? "\"'" : "\"");
    for (; *text; text++) {
        if (*text == '"')
            hg_buf_puts(out, "\"");
        hg_buf_append(out, text, 1);
    }
    hg_buf_puts(out, "\"");
}

/* What pandas or R would take for a number, a truth or nothing. */
static bool is_misread(const struct hg_style *style, const char *text)
{
    static const char *const words[] = { "NA",   "N/A",  "n/a",   "#N/A", "NULL",  "null", "None",
                                         "<NA>", "true", "false", "True", "False", "TRUE", "FALSE",
                                         "T",    "F",    "-nan",  "#NA",  NULL };
    char *copy, *end;
    const char *comma = style->comma ? strchr(text, ',') : NULL;
    bool misread = (strtod(text, &end), *text && !*end);

    if (comma) {
        copy = hg_strdup(text);
        copy[comma - text] = '.';
        misread = (strtod(copy, &end), !*end);
        free(copy);
    }
    return misread || hg_text_is_one_of(text, strlen(text), words);
}

void hg_csv_append_text(const struct hg_style *style, const char *text, struct hg_buf *out)
{
    char *marked = is_misread(style, text) ? hg_str_printf("'%s", text) : NULL;

    hg_csv_append(style, marked ? marked : text, out); /* the apostrophe within the quotes */
    free(marked);
}

void hg_csv_append_number(const struct hg_style *style, double v, struct hg_buf *out)
{
    char text[32], *point;

    if (!isfinite(v))
        return;
    text[hg_text_number_format(v, text)] = '\0';
    point = strchr(text, '.');
    if (point && style->comma)
        *point = ',';
    hg_buf_puts(out, text);
}

void hg_csv_append_seconds(const struct hg_style *style, double s, struct hg_buf *out)
{
    if (isfinite(s) && style->durations && !style->from_set)
        hg_seconds_append_exact(style, s, out);
    else
        hg_csv_append_number(style, s, out);
}
