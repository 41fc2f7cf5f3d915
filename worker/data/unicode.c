/* SPDX-License-Identifier: Apache-2.0 */
#include "data/unicode.h"

#include <string.h>
#include <utf8proc.h>

#define SIGMA 0x3a3       /* capital */
#define FINAL_SIGMA 0x3c2 /* small, at the end of a word */
#define I_WITH_DOT 0x130  /* the one capital whose small form is two code points */

int32_t wk_utf8_next(const char *p, size_t len, size_t *step)
{
    utf8proc_int32_t code;
    utf8proc_ssize_t n;

    if ((unsigned char)*p < 0x80) {
        *step = 1;
        return *p;
    }
    n = utf8proc_iterate((const utf8proc_uint8_t *)p, (utf8proc_ssize_t)len, &code);
    *step = n > 0 ? (size_t)n : 1;
    return n > 0 ? code : -1;
}

static void append_utf8(struct hg_buf *out, int32_t code)
{
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t n = utf8proc_encode_char(code, bytes);

    hg_buf_append(out, bytes, (size_t)n);
}

size_t wk_utf8_count(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

bool wk_unicode_is_space(int32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f);
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return true;
    default:
        return code == 0x85;
    }
}

bool wk_unicode_is_word(int32_t code)
{
    utf8proc_category_t category;

    if (code < 0)
        return false;
    category = utf8proc_category(code);
    return code == '_' || (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
           (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_cased(int32_t code)
{
    utf8proc_category_t c = code < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(code);

    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT ||
           code == 0xaa || code == 0xba || (code >= 0x2160 && code <= 0x217f) ||
           (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
           (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
}

/* Case_Ignorable: marks, format characters, modifiers, and punctuation inside words. */
static bool is_case_ignorable(int32_t code)
{
    static const int32_t inside_words[] = { '\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                            0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                            0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a };

    for (size_t i = 0; i < sizeof inside_words / sizeof *inside_words; i++)
        if (code == inside_words[i])
            return true;
    switch (code < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

/* What cleaning takes out of a text, besides format characters. */
static bool is_cleaned_away(int32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r')
        return false;
    return code == 0xfffd || (code >= 0 && utf8proc_category(code) == UTF8PROC_CATEGORY_CC);
}

bool wk_unicode_final_sigma(const char *text, size_t len, size_t at, bool cleaned)
{
    bool before = false;
    size_t step;

    for (size_t i = at; i > 0 && !before;) {
        int32_t code;

        do
            i--;
        while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80);
        code = wk_utf8_next(text + i, len - i, &step);
        if (is_case_ignorable(code) || (cleaned && is_cleaned_away(code)))
            continue;
        if (!is_cased(code))
            return false;
        before = true;
    }
    if (!before)
        return false;
    for (size_t i = at + 2; i < len; i += step) {
        int32_t code = wk_utf8_next(text + i, len - i, &step);

        if (!is_case_ignorable(code) && !(cleaned && is_cleaned_away(code)))
            return !is_cased(code);
    }
    return true;
}

void wk_unicode_lower(const char *text, size_t len, struct hg_buf *out)
{
    size_t step;

    for (size_t i = 0; i < len; i += step) {
        int32_t code = wk_utf8_next(text + i, len - i, &step);

        if (code < 0) {
            hg_buf_append(out, text + i, 1);
        } else if (code < 0x80) {
            char c = code >= 'A' && code <= 'Z' ? (char)(code + 32) : (char)code;

            hg_buf_append(out, &c, 1);
        } else if (code == I_WITH_DOT) {
            hg_buf_puts(out, "i\xcc\x87");
        } else if (code == SIGMA && wk_unicode_final_sigma(text, len, i, false)) {
            append_utf8(out, FINAL_SIGMA);
        } else {
            append_utf8(out, utf8proc_tolower(code));
        }
    }
}
