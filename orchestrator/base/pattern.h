/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_PATTERN_H
#define HG_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Regular expressions that read numbers from a program's output: POSIX extended ones, and \d \w \s
 * (also inside brackets), which people are used to. What other dialects have besides, lazy
 * quantifiers and (?...), is refused with a hint: POSIX would read it as something else. A line
 * ends at \n or \r (progress bars), and a match lies within one line. */
struct hg_pattern;

/* NULL with err set (INPUT): it does not compile, or has no group. */
struct hg_pattern *hg_pattern_compile(const char *text, struct hg_err *err);
void hg_pattern_free(struct hg_pattern *p);

/* Group 1 of the last match in the text: *group points into it, *n bytes. False if there is none.
 */
bool hg_pattern_last(const struct hg_pattern *p, const char *text, size_t len, const char **group,
                     size_t *n);

#endif
