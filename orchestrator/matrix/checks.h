/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_CHECKS_H
#define HG_MATRIX_CHECKS_H

#include "base/json.h"

/* Checks for field tables: is the value an object, an object of strings? Problems are added to errs. */
void hg_check_object(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                     struct hg_errs *errs);
void hg_check_texts(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                    struct hg_errs *errs);

#define HG_TEXTS_SCHEMA "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}"

#endif
