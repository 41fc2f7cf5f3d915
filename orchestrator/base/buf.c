/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hg_buf_reserve(struct hg_buf *b, size_t n)
{
    size_t want = b->len + n + 1;
    size_t cap = b->cap ? b->cap : 64;
    char *grown;

    if (b->failed)
        return -1;
    if (want <= b->cap)
        return 0;
    while (cap < want)
        cap *= 2;
    grown = realloc(b->data, cap);
    if (!grown) {
        b->failed = true;
        return -1;
    }
    b->data = grown;
    b->cap = cap;
    b->data[b->len] = '\0';
    return 0;
}

void hg_buf_append(struct hg_buf *b, const void *bytes, size_t n)
{
    if (hg_buf_reserve(b, n) < 0)
        return;
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
    size_t room = hg_buf_reserve(b, 0) < 0 ? 0 : b->cap - b->len;
    va_list again;
    int n;

    if (room == 0)
        return;
    va_copy(again, ap);
    n = vsnprintf(b->data + b->len, room, fmt, again);
    va_end(again);
    if (n >= 0 && (size_t)n >= room && hg_buf_reserve(b, (size_t)n) == 0)
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    if (n < 0 || b->failed) {
        b->failed = true;
        b->data[b->len] = '\0';
    } else {
        b->len += (size_t)n;
    }
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
    char *text = NULL;

    if (!b->failed && hg_buf_reserve(b, 0) == 0) {
        text = b->data;
        b->data = NULL;
    }
    hg_buf_done(b);
    return text;
}

void hg_buf_clear(struct hg_buf *b)
{
    b->len = 0;
    b->failed = false;
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
