/* SPDX-License-Identifier: Apache-2.0 */
#include "report/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "report/figures.h"

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

void hg_csv_append(const char *text, struct hg_buf *out)
{
    char *end;
    bool number = (strtod(text, &end), *text && !*end);
    bool formula = *text && strchr("=+-@\t\r\n", *text) && !number;
    bool quoted = formula || strpbrk(text, ",\"\r\n") || *text == ' ';

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
