/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/print.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

#define WIDTH_MIN 40

static json_t *answer, *warnings;

void hg_print_json(json_t *value)
{
    json_decref(answer);
    answer = value;
}

void hg_print_warning(const char *text)
{
    if (!warnings)
        warnings = json_array();
    json_array_append_new(warnings, hg_json_text(text));
}

static json_t *error_json(const struct hg_err *err)
{
    static const char *const kinds[] = {
        [HG_E_NONE] = "bug",        [HG_E_USAGE] = "usage",        [HG_E_INPUT] = "input",
        [HG_E_ENV] = "environment", [HG_E_AGAIN] = "again",        [HG_E_AMBIGUOUS] = "ambiguous",
        [HG_E_REFUSED] = "refused", [HG_E_NOTFOUND] = "not_found", [HG_E_BUG] = "bug",
    };
    json_t *o =
        json_pack("{s:s, s:o}", "kind", kinds[err->code], "message", hg_json_text(err->text));

    if (*err->file)
        json_object_set_new(o, "file", hg_json_text(err->file));
    if (*err->pointer)
        json_object_set_new(o, "pointer", hg_json_text(err->pointer));
    if (err->line) {
        json_object_set_new(o, "line", json_integer(err->line));
        json_object_set_new(o, "column", json_integer(err->column));
    }
    if (*err->hint)
        json_object_set_new(o, "suggestion", hg_json_text(err->hint));
    return o;
}

void hg_print_finish(const struct hg_errs *errs, bool asked)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *list = errs->n ? json_array() : NULL;

    if (!answer && !(asked && list))
        return;
    if (!answer)
        answer = json_object();
    if (warnings && json_array_extend(json_object_get(answer, "warnings"), warnings) < 0)
        json_object_set(answer, "warnings", warnings);
    for (size_t i = 0; i < errs->n; i++)
        json_array_append_new(list, error_json(&errs->items[i]));
    if (list)
        json_object_set_new(answer, "errors", list);
    hg_json_dump(answer, HG_JSON_INDENT, &text);
    puts(hg_buf_str(&text));
    hg_buf_done(&text);
    hg_print_json(NULL);
    json_decref(warnings);
    warnings = NULL;
}

void hg_print_raw(const char *text, size_t n)
{
    struct hg_buf shown = HG_BUF_INIT;

    if (isatty(STDOUT_FILENO)) {
        hg_text_escape_lines(text, n, &shown);
        text = hg_buf_str(&shown);
        n = shown.len;
    }
    fwrite(text, 1, n, stdout);
    hg_buf_done(&shown);
}

size_t hg_print_width(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MIN ? size.ws_col : 0;
}
