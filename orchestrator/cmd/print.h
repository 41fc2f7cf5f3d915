/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_PRINT_H
#define HG_CMD_PRINT_H

#include <jansson.h>
#include <stddef.h>

/* Print a JSON value, indented, and a newline on stdout. Takes the reference. */
void hg_print_json(json_t *value);

/* Columns of the terminal at a descriptor; 0: not a terminal, or narrower than 40. */
size_t hg_print_width(int fd);

#endif
