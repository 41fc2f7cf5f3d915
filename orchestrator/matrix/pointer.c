/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/pointer.h"

#include "base/json.h"

const char *hg_member_pointer(struct hg_buf *scratch, const char *object, const char *member)
{
    hg_buf_clear(scratch);
    hg_buf_puts(scratch, object);
    hg_json_pointer_push(scratch, member);
    return scratch->data;
}

const char *hg_item_pointer(struct hg_buf *scratch, const char *list, size_t i)
{
    hg_buf_clear(scratch);
    hg_buf_printf(scratch, "%s/%zu", list, i);
    return scratch->data;
}

char *hg_pointer_place(const struct hg_json_doc *doc, const char *pointer, const char *severity)
{
    struct hg_errs errs = HG_ERRS_INIT;
    const struct hg_err *e = hg_json_error(doc, pointer, &errs, "x");
    char *place =
        hg_str_printf("%s:%d:%d: %s: %s", doc->file, e->line, e->column, severity, pointer);

    hg_errs_done(&errs);
    return place;
}

void hg_check_object(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                     struct hg_errs *errs)
{
    if (!json_is_object(value))
        hg_json_error(doc, pointer, errs, "expected an object, found %s", hg_json_type_name(value));
}

json_t *hg_number_text(const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;
    json_t *string = NULL;

    if (json_is_number(value)) {
        hg_json_dump(value, HG_JSON_COMPACT, &text);
        string = json_string(hg_buf_str(&text));
    }
    hg_buf_done(&text);
    return string;
}

void hg_check_texts(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                    struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *text;

    hg_check_object(doc, value, pointer, errs);
    json_object_foreach((json_t *)value, key, text) {
        json_t *number = hg_number_text(text);

        if (number)
            json_object_set_new((json_t *)value, key, number);
        else if (!json_is_string(text))
            hg_json_error(doc, hg_member_pointer(&path, pointer, key), errs,
                          "expected a string or a number, found %s", hg_json_type_name(text));
    }
    hg_buf_done(&path);
}
