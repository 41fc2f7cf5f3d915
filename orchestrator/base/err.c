/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"

/* After writing n bytes at `used`: mark what was cut, which is never half a character. */
static void mark_cut(struct hg_err *err, size_t used, int n)
{
    size_t at = sizeof err->text - 4;

    if (n < 0 || used + (size_t)n < sizeof err->text)
        return;
    while (at > 0 && ((unsigned char)err->text[at] & 0xc0) == 0x80)
        at--;
    memcpy(err->text + at, "...", 4);
}

static void set_text(struct hg_err *err, const char *fmt, va_list ap)
{
    mark_cut(err, 0, vsnprintf(err->text, sizeof err->text, fmt, ap));
}

static void add_text(struct hg_err *err, const char *text)
{
    size_t used = strlen(err->text);

    mark_cut(err, used, snprintf(err->text + used, sizeof err->text - used, ": %s", text));
}

int hg_err_set(struct hg_err *err, enum hg_err_code code, const char *fmt, ...)
{
    va_list ap;

    if (!err || err->code)
        return -1;
    err->code = code;
    va_start(ap, fmt);
    set_text(err, fmt, ap);
    va_end(ap);
    return -1;
}

const char *hg_err_reason(int sys, char out[static HG_ERR_REASON_MAX])
{
    struct rlimit files;

    if (sys == EMFILE && getrlimit(RLIMIT_NOFILE, &files) == 0)
        snprintf(out, HG_ERR_REASON_MAX, "%s (ulimit -n: %llu)", strerror(sys),
                 (unsigned long long)files.rlim_cur);
    else
        snprintf(out, HG_ERR_REASON_MAX, "%s", strerror(sys));
    return out;
}

int hg_err_sys(struct hg_err *err, const char *fmt, ...)
{
    int sys = errno;
    char reason[HG_ERR_REASON_MAX];
    va_list ap;

    if (!err || err->code)
        return -1;
    err->code = HG_E_ENV;
    va_start(ap, fmt);
    set_text(err, fmt, ap);
    va_end(ap);
    add_text(err, hg_err_reason(sys, reason));
    errno = sys;
    return -1;
}

int hg_err_wrap(struct hg_err *err, const char *fmt, ...)
{
    char old[sizeof err->text];
    va_list ap;

    if (!err || !err->code)
        return -1;
    memcpy(old, err->text, sizeof old);
    va_start(ap, fmt);
    set_text(err, fmt, ap);
    va_end(ap);
    add_text(err, old);
    return -1;
}

int hg_err_hint(struct hg_err *err, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return -1;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
    return -1;
}

int hg_err_at(struct hg_err *err, const char *file, const char *pointer)
{
    if (!err)
        return -1;
    if (file)
        snprintf(err->file, sizeof err->file, "%s", file);
    if (pointer)
        snprintf(err->pointer, sizeof err->pointer, "%s", pointer);
    return -1;
}

int hg_err_exit_code(enum hg_err_code code)
{
    switch (code) {
    case HG_E_NONE:
        return 0;
    case HG_E_USAGE:
        return 2;
    case HG_E_INPUT:
        return 3;
    case HG_E_ENV:
    case HG_E_AGAIN:
    case HG_E_AMBIGUOUS:
    case HG_E_REFUSED:
    case HG_E_NOTFOUND:
        return 4;
    case HG_E_BUG:
        return 5;
    }
    return 5;
}

/* Names and values from outside reach a terminal through here: control bytes are shown, not sent.
 */
static void append_escaped(struct hg_buf *out, const char *s, const char *indent)
{
    for (const char *end; *(end = s + strcspn(s, "\n")); s = end + 1) {
        hg_text_escape(s, (size_t)(end - s), out);
        hg_buf_printf(out, "\n%s", indent);
    }
    hg_text_escape(s, strlen(s), out);
}

void hg_err_format(const struct hg_err *err, struct hg_buf *out)
{
    if (err->file[0]) {
        append_escaped(out, err->file, "");
        if (err->line)
            hg_buf_printf(out, ":%d:%d", err->line, err->column);
        hg_buf_puts(out, ": ");
    }
    hg_buf_puts(out, err->code == HG_E_BUG ? "internal error: " : "error: ");
    if (err->pointer[0]) {
        append_escaped(out, err->pointer, "");
        hg_buf_puts(out, ": ");
    }
    append_escaped(out, err->text, "  ");
    hg_buf_puts(out, "\n");
    if (err->hint[0]) {
        hg_buf_puts(out, "  ");
        append_escaped(out, err->hint, "  ");
        hg_buf_puts(out, "\n");
    }
}

struct hg_err *hg_errs_next(struct hg_errs *errs)
{
    static struct hg_err scratch;

    if (errs->n >= HG_ERRS_MAX) {
        errs->dropped++;
        scratch = (struct hg_err)HG_ERR_INIT;
        return &scratch;
    }
    hg_vec_grow((void **)&errs->items, errs->n, &errs->cap, sizeof *errs->items);
    errs->items[errs->n] = (struct hg_err)HG_ERR_INIT;
    return &errs->items[errs->n++];
}

int hg_errs_add(struct hg_errs *errs, const struct hg_err *err)
{
    if (!err->code)
        return 0;
    *hg_errs_next(errs) = *err;
    return -1;
}

void hg_errs_append(struct hg_errs *errs, const struct hg_errs *more)
{
    for (size_t i = 0; i < more->n; i++)
        hg_errs_add(errs, &more->items[i]);
    errs->dropped += more->dropped;
}

static int compare_place(const struct hg_err *a, const struct hg_err *b)
{
    int by_file = strcmp(a->file, b->file);

    if (by_file)
        return by_file;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

void hg_errs_sort(struct hg_errs *errs)
{
    for (size_t i = 1; i < errs->n; i++) { /* insertion sort: at most 50, stable */
        struct hg_err moving = errs->items[i];
        size_t j = i;

        for (; j > 0 && compare_place(&moving, &errs->items[j - 1]) < 0; j--)
            errs->items[j] = errs->items[j - 1];
        errs->items[j] = moving;
    }
}

void hg_errs_format(const struct hg_errs *errs, struct hg_buf *out)
{
    for (size_t i = 0; i < errs->n; i++)
        hg_err_format(&errs->items[i], out);
    if (errs->dropped)
        hg_buf_printf(out, "  and %zu more\n", errs->dropped);
}

void hg_errs_done(struct hg_errs *errs)
{
    free(errs->items);
    *errs = (struct hg_errs)HG_ERRS_INIT;
}
