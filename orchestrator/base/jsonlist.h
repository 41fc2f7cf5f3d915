/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONLIST_H
#define HG_BASE_JSONLIST_H

#include <jansson.h>
#include <stdio.h>

#include "base/json.h"

/* Read a file that is one object with a long list in it, item by item: the list may be larger than the memory. take gets each item as a
 * tree that it may keep (json_incref) and change, but not the texts and numbers in it, which items share; it returns 0 to go on. *rest gets
 * all other members; it is an object already. Returns 0, or -1: take returned something else, or the text is not that simple or not JSON,
 * and has to be read as a whole to know. */
int hg_json_each_item(FILE *file, const char *list, json_t *rest,
                      int (*take)(void *context, json_t *item), void *context);

/* hg_json_load of a file of at most max bytes with such a list: doc->root gets all but the list. The text is there for the places of errors
 * while items are taken. Returns 0; HG_JSON_WHOLE: the text is not that simple, the items are to be forgotten and the document has all;
 * or -1 with err set. */
#define HG_JSON_WHOLE 1
int hg_json_load_items(const char *path, size_t max, const char *list, struct hg_json_doc *doc,
                       int (*take)(void *context, json_t *item), void *context, struct hg_err *err);

#endif
