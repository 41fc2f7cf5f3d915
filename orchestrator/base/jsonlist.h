/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONLIST_H
#define HG_BASE_JSONLIST_H

#include <jansson.h>
#include <stdio.h>

/* Read a file that is one object with a long list in it, item by item: the list may be larger than the memory. take gets each item as a
 * tree that is lent; it returns 0 to go on. *rest gets all other members as they come; it is an object already. Returns 0, or -1: take
 * said so, or the text is not that simple or no JSON, and has to be read as a whole to know. */
int hg_json_each_item(FILE *file, const char *list, json_t *rest,
                      int (*take)(void *context, const json_t *item), void *context);

#endif
