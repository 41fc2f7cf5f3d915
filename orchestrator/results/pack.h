/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_PACK_H
#define HG_RESULTS_PACK_H

#include <jansson.h>

#include "base/buf.h"
#include "base/map.h"

/* Very many JSON objects that are much alike, in little memory: a hundred thousand results of 3 KB of text take some 100 MB instead of
 * more than 1 GB. What is equal in many of them is kept once: the shape (names, their order, types), texts, and values that
 * are shared as a whole. Each object keeps its numbers and pointers to its texts. */

union hg_scalar {
    json_int_t integer;
    double real;
    const char *text;
};

struct hg_pack {
    const struct hg_shape *shape;
    union hg_scalar *scalars; /* free() it; the rest belongs to the store */
};

/* Begins as { 0 }. */
struct hg_store {
    struct hg_map shape_index, text_index, value_index;
    struct {
        struct hg_shape **items;
        size_t n, cap;
    } shapes;
    struct {
        char **items;
        size_t n, cap;
    } texts;
    struct {
        json_t **items;
        size_t n, cap;
    } values;
    struct hg_buf form, scalars; /* of the object that is being packed */
};
void hg_store_done(struct hg_store *s);

/* Keep an object. */
struct hg_pack hg_pack_make(struct hg_store *s, const json_t *object);

/* The object again, or the member of this name: a new reference; NULL if it has no such member. */
json_t *hg_pack_load(const struct hg_pack *p);
json_t *hg_pack_member(const struct hg_pack *p, const char *name);

/* The one copy of a text (NULL: NULL), of a value (NULL: NULL); lent by the store. Nobody may change the value. */
const char *hg_store_text(struct hg_store *s, const char *text);
const json_t *hg_store_value(struct hg_store *s, const json_t *value);

#endif
