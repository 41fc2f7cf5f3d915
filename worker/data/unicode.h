/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode as the reference programs (written in Python) see it, over UTF-8. Bytes that are not UTF-8
 * count as one character each and belong to no class. */
#ifndef WK_DATA_UNICODE_H
#define WK_DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The code point at p and its length in bytes (1 to 4); -1 with length 1 for bytes that are not
 * UTF-8. len > 0. */
int32_t wk_utf8_next(const char *p, size_t len, size_t *step);

/* Code points in valid UTF-8. */
size_t wk_utf8_count(const char *text, size_t len);

/* White space as str.split() and str.isspace() have it. */
bool wk_unicode_is_space(int32_t code);

/* \w of a regular expression: letters, numbers of every kind, "_". */
bool wk_unicode_is_word(int32_t code);

/* Is a capital sigma at byte `at` the last letter of a word, so that it becomes the final form?
 * (Unicode's Final_Sigma: a cased letter before it and none after it, marks and the like passed
 * over.) cleaned: as if the text's control characters and U+FFFD were gone already. */
bool wk_unicode_final_sigma(const char *text, size_t len, size_t at, bool cleaned);

/* Append text as str.lower() gives it. */
void wk_unicode_lower(const char *text, size_t len, struct hg_buf *out);

#endif
