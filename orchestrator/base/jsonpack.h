/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_JSONPACK_H
#define HG_BASE_JSONPACK_H

#include <jansson.h>
#include <stddef.h>

/* Very many JSON objects that are much alike, in little memory: a hundred thousand results of 3 KB of text take some 100 MB instead of
 * 1 GB. Texts, names and small objects that come again are there once. Numbers keep all their bits, members their order. */
struct hg_jsonpack;

/* NULL when memory is gone. */
struct hg_jsonpack *hg_jsonpack_create(void);
void hg_jsonpack_free(struct hg_jsonpack *p);

/* Keep a value. Returns its handle, HG_MAP_NONE when memory is gone. */
size_t hg_jsonpack_add(struct hg_jsonpack *p, const json_t *value);

/* Keep an object with the members of `first` and, behind them, those of the object that is the text. Only for text that
 * hg_json_canonical_read took: its syntax is not looked at again. */
size_t hg_jsonpack_add_text(struct hg_jsonpack *p, const json_t *first, const char *text);

/* The value again; a new reference, NULL when memory is gone. Parts of it may be shared: do not change it. */
json_t *hg_jsonpack_load(const struct hg_jsonpack *p, size_t handle);

/* A member of it; a new reference, NULL if it is no object or has none of this name. */
json_t *hg_jsonpack_member(const struct hg_jsonpack *p, size_t handle, const char *name);

/* The first item of a member that is a list; a new reference, NULL if there is none. */
json_t *hg_jsonpack_first(const struct hg_jsonpack *p, size_t handle, const char *name);

/* The one value that stands for all that are equal to this one; lent until the pack is freed. NULL when memory is gone. */
const json_t *hg_jsonpack_share(struct hg_jsonpack *p, const json_t *value);

#endif
