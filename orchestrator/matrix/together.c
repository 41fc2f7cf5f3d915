/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/together.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/keys.h"
#include "matrix/grid.h"

bool hg_matrix_has_together(const struct hg_matrix *m)
{
    return json_is_array(m->together) || json_number_value(m->together) > 1;
}

static void check_keys(const struct hg_json_doc *doc, const json_t *list, const char *pointer,
                       struct hg_errs *errs)
{
    struct hg_buf place = HG_BUF_INIT;
    json_t *key;
    size_t i;

    if (!json_array_size(list))
        hg_json_error(doc, pointer, errs, "the list of keys is empty");
    json_array_foreach((json_t *)list, i, key) {
        if (json_is_string(key))
            continue;
        hg_buf_clear(&place);
        hg_buf_printf(&place, "%s/%zu", pointer, i);
        hg_json_error(doc, hg_buf_str(&place), errs, "expected a key, found %s",
                      hg_json_type_name(key));
    }
    hg_buf_done(&place);
}

void hg_together_check(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                       struct hg_errs *errs)
{
    double v = json_number_value(value);

    if (json_is_array(value))
        check_keys(doc, value, pointer, errs);
    else if (!json_is_number(value) || v != floor(v))
        hg_json_error(doc, pointer, errs, "expected a list of keys or an integer, found %s",
                      hg_json_type_name(value));
    else if (v < 1 || v > HG_TOGETHER_MAX)
        hg_json_error(doc, pointer, errs, "%.15g is out of range; 1 to %d", v, HG_TOGETHER_MAX);
}

void hg_together_check_keys(const struct hg_matrix *m, struct hg_errs *errs)
{
    json_t *key;
    size_t i;

    json_array_foreach(m->together, i, key) {
        char *pointer = hg_str_printf("/together/%zu", i);
        const char *name = json_string_value(key);

        if (name && !hg_grid_has_key(m->grid, name))
            hg_grid_suggest(m->grid, name,
                            hg_json_error(&m->doc, pointer, errs, "no cell has \"%s\"", name));
        free(pointer);
    }
}

static bool is_listed(const json_t *list, const char *name)
{
    json_t *key;
    size_t i;

    json_array_foreach((json_t *)list, i, key)
        if (strcmp(json_string_value(key), name) == 0)
            return true;
    return false;
}

void hg_together_key(const struct hg_matrix *m, const json_t *members, const json_t *origins,
                     struct hg_buf *out)
{
    json_t *rest = json_object(), *value;
    const char *key;

    json_object_foreach((json_t *)members, key, value) {
        const char *origin = json_string_value(json_object_get(origins, key));
        bool follows = origin && strncmp(origin, "/derive/", strlen("/derive/")) == 0;

        if (key[0] != '_' && !follows && !hg_key_has_role(key, HG_ROLE_LOOSE) &&
            !is_listed(m->together, key))
            json_object_set(rest, key, value);
    }
    hg_json_dump(rest, HG_JSON_SORT, out);
    json_decref(rest);
}
