/* SPDX-License-Identifier: Apache-2.0 */
#include "results/check.h"

/* A value in a message: as written when it is short, else its type. */
static void show_value(const json_t *value, struct hg_buf *out)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_json_dump(value, HG_JSON_COMPACT, &text);
    hg_buf_puts(out, text.len <= 60 && !json_is_object(value) && !json_is_array(value)
                         ? hg_buf_str(&text)
                         : hg_json_type_name(value));
    hg_buf_done(&text);
}

void hg_check_leave(struct hg_check *c, size_t len)
{
    c->pointer.len = len;
    c->pointer.data[len] = '\0';
}

struct hg_err *hg_check_wrong(struct hg_check *c, const char *member, const char *expected,
                              const json_t *found)
{
    size_t keep = c->pointer.len;
    struct hg_buf shown = HG_BUF_INIT;
    struct hg_err *err;

    if (member)
        hg_json_pointer_push(&c->pointer, member);
    show_value(found, &shown);
    err = hg_json_error(c->doc, hg_buf_str(&c->pointer), c->errs, "expected %s, found %s", expected,
                        hg_buf_str(&shown));
    hg_buf_done(&shown);
    hg_check_leave(c, keep);
    return err;
}

bool hg_check_bool(struct hg_check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_boolean(value) && !json_is_null(value))
        hg_check_wrong(c, member, "true or false", value);
    return json_is_true(value);
}

const char *hg_check_string(struct hg_check *c, const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);

    if (value && !json_is_string(value) && !json_is_null(value))
        hg_check_wrong(c, member, "a string", value);
    return json_is_string(value) ? json_string_value(value) : "";
}
