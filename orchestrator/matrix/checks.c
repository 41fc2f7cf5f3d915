/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/checks.h"

#include "matrix/pointer.h"

void hg_check_object(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                     struct hg_errs *errs)
{
    if (!json_is_object(value))
        hg_json_error(doc, pointer, errs, "expected an object, found %s", hg_json_type_name(value));
}

void hg_check_texts(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                    struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *text;

    hg_check_object(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        if (!json_is_string(text))
            hg_json_error(doc, hg_member_pointer(&path, pointer, key), errs,
                          "expected a string, found %s", hg_json_type_name(text));
    }
    hg_buf_done(&path);
}
