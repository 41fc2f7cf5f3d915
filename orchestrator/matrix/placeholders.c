/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/placeholders.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "matrix/grid.h"
#include "matrix/keys.h"
#include "matrix/pointer.h"

static void check_placeholder(const struct hg_matrix *m, const char *name, size_t n,
                              const char *pointer, struct hg_errs *errs)
{
    char *key = hg_strndup(name, n);

    if (key[0] == '_')
        hg_json_error(&m->doc, pointer, errs, "{{%s}}: a note does not reach the workload", key);
    else if (!hg_key_is_reserved(key) && !hg_grid_has_key(m->grid, key))
        hg_grid_suggest(
            m->grid, key,
            hg_json_error(&m->doc, pointer, errs, "{{%s}}: no cell has \"%s\"", key, key));
    free(key);
}

static void check_template(const struct hg_matrix *m, const json_t *text, const char *pointer,
                           struct hg_errs *errs)
{
    const char *p = json_string_value(text), *end;

    while (p && (p = strstr(p, "{{"))) {
        end = strstr(p, "}}");
        if (!end) {
            hg_json_error(&m->doc, pointer, errs, "{{ without }}");
            return;
        }
        check_placeholder(m, p + 2, (size_t)(end - p - 2), pointer, errs);
        p = end + 2;
    }
}

/* Every string in a value, however deep. */
static void check_templates(const struct hg_matrix *m, const json_t *value, const char *pointer,
                            struct hg_errs *errs)
{
    struct hg_buf path = HG_BUF_INIT;
    const char *key;
    json_t *inner;
    size_t i;

    if (json_is_string(value))
        check_template(m, value, pointer, errs);
    json_array_foreach((json_t *)value, i, inner) {
        check_templates(m, inner, hg_item_pointer(&path, pointer, i), errs);
    }
    json_object_foreach((json_t *)value, key, inner) {
        check_templates(m, inner, hg_member_pointer(&path, pointer, key), errs);
    }
    hg_buf_done(&path);
}

void hg_placeholders_check(const struct hg_matrix *m, struct hg_errs *errs)
{
    const struct hg_workload *w = &m->workload;

    check_templates(m, w->words, "/workload/command", errs);
    check_templates(m, w->launch, "/workload/launch", errs);
    check_templates(m, w->env, "/workload/env", errs);
    check_templates(m, w->files, "/workload/files", errs);
}
