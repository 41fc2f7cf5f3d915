/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONPOOL_H
#define HG_BASE_JSONPOOL_H

#include <jansson.h>
#include <stddef.h>

/* Parse JSON text in which the same small values come again and again (a list of a hundred thousand
 * results), so that each of them is there once: the tree takes much less memory, and nobody may
 * change it. Takes what json_loadb with JSON_REJECT_DUPLICATES takes, or less: NULL means that
 * json_loadb has to say what is wrong, or can read what this cannot (names that are long or have
 * escapes, more than 64 levels). text ends with a NUL behind len bytes. */
json_t *hg_json_parse_shared(const char *text, size_t len);

/* The same with every value on its own, for whoever changes the tree or soon frees it: several times as fast as json_loadb. */
json_t *hg_json_parse_fresh(const char *text, size_t len);

/* The number, true, false or null at *at, which is moved behind it. NULL: it is none of them. */
json_t *hg_json_parse_word(const char **at);

#endif
