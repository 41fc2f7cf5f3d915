/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/pointer.h"

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
