/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_BUF_H
#define HG_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

/* A growing byte string. data is always NUL-terminated once something was appended; before that it
 * is NULL and len 0 (hg_buf_str never gives NULL). */
struct hg_buf {
    char *data;
    size_t len, cap;
};
#define HG_BUF_INIT \
    {               \
        0           \
    }

void hg_buf_append(struct hg_buf *b, const void *bytes, size_t n);
void hg_buf_puts(struct hg_buf *b, const char *s);
void hg_buf_printf(struct hg_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hg_buf_vprintf(struct hg_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* Make room for n more bytes. */
void hg_buf_reserve(struct hg_buf *b, size_t n);

/* The text so far, "" when empty. Lent: dies with the next append. */
const char *hg_buf_str(const struct hg_buf *b);

/* Hand the text over (free() it); the buffer is empty again. */
char *hg_buf_detach(struct hg_buf *b);

/* Forget the content, keep the memory. */
void hg_buf_clear(struct hg_buf *b);

void hg_buf_done(struct hg_buf *b);

/* printf into a fresh string: yours to free. */
char *hg_str_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
