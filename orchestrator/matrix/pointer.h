/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_POINTER_H
#define HG_MATRIX_POINTER_H

#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

/* Pointers into a matrix, for messages. */

/* Pointer of a member of the object at `object`, of an item of the list at `list`. In scratch: lent until its next use. */
const char *hg_member_pointer(struct hg_buf *scratch, const char *object, const char *member);
const char *hg_item_pointer(struct hg_buf *scratch, const char *list, size_t i);

/* "x.json:3:5: error: /exclude/0", for what is printed by itself. Yours. */
char *hg_pointer_place(const struct hg_json_doc *doc, const char *pointer, const char *severity);

/* Checks for field tables: is the value an object, an object of strings? Numbers become strings. Problems are added to errs. */
void hg_check_object(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                     struct hg_errs *errs);
void hg_check_texts(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                    struct hg_errs *errs);

#define HG_TEXTS_SCHEMA \
    "{\"type\": \"object\", \"additionalProperties\": {\"type\": [\"string\", \"number\"]}}"

/* A number as a string, as JSON writes it; NULL for anything else. A new reference. */
json_t *hg_number_text(const json_t *value);

#endif
