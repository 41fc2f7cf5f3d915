/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_PRINT_H
#define HG_CMD_PRINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A command's answer as JSON. Takes the reference. It is printed when the command has ended (hg_print_finish), once. */
void hg_print_json(json_t *value);

/* A member of the answer, added when it is printed: what a warning says. */
void hg_print_warning(const char *text);

/* Print the answer, indented, and a newline on stdout. If it is an object it gets the errors, and the warnings, if there are any.
 * asked: --json was given; then there is an object even if the command failed before it had an answer. */
void hg_print_finish(const struct hg_errs *errs, bool asked);

/* Print what is not made for people: CSV, a log. It arrives byte for byte, but on a terminal what could steer it is shown instead
 * (hg_text_escape_lines). text[n] is NUL. */
void hg_print_raw(const char *text, size_t n);

/* Columns of the terminal at a descriptor; 0: not a terminal, or narrower than 40. */
size_t hg_print_width(int fd);

#endif
