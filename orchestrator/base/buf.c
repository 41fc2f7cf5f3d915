/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void hg_buf_reserve(struct hg_buf *b, size_t n)
{
    size_t want = b->len + n + 1;
    size_t cap = b->cap ? b->cap : 64;

    if (want <= b->cap)
        return;
    while (cap < want)
        cap *= 2;
    b->data = hg_realloc(b->data, cap);
    b->cap = cap;
    b->data[b->len] = '\0';
}

void hg_buf_append(struct hg_buf *b, const void *bytes, size_t n)
{
    hg_buf_reserve(b, n);
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void hg_buf_puts(struct hg_buf *b, const char *s)
{
    hg_buf_append(b, s, strlen(s));
}

void hg_buf_vprintf(struct hg_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    hg_buf_reserve(b, 0);
    va_copy(again, ap);
    n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    va_end(again);
    if (n < 0) /* the format itself is wrong */
        abort();
    if ((size_t)n >= b->cap - b->len) {
        hg_buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    }
    b->len += (size_t)n;
}

void hg_buf_printf(struct hg_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *hg_buf_str(const struct hg_buf *b)
{
    return b->data ? b->data : "";
}

char *hg_buf_detach(struct hg_buf *b)
{
    char *text;

    hg_buf_reserve(b, 0);
    text = b->data;
    *b = (struct hg_buf)HG_BUF_INIT;
    return text;
}

void hg_buf_clear(struct hg_buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void hg_buf_done(struct hg_buf *b)
{
    free(b->data);
    *b = (struct hg_buf)HG_BUF_INIT;
}

char *hg_str_printf(const char *fmt, ...)
{
    struct hg_buf b = HG_BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return hg_buf_detach(&b);
}
