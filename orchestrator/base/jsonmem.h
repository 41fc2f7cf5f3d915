/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONMEM_H
#define HG_BASE_JSONMEM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Jansson's memory. Where it is short, Jansson mostly says that the text is no JSON, and whoever puts a value into an object without looking
 * at the answer loses it. Here both come out. */

/* How often this thread has asked for memory for JSON and got none. Compare before and after: values made between may lack members. */
size_t hg_json_shortages(void);

/* As json_loadb; NULL with *short_of_memory set when nothing is known of the text. je may be NULL. */
json_t *hg_json_read(const char *text, size_t len, size_t flags, json_error_t *je,
                     bool *short_of_memory);

#endif
