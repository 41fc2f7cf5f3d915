/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/report.h"

#include <stddef.h>
#include <stdlib.h>

#include "matrix/grid.h"
#include "matrix/select.h"

static const char *const better_words[] = { "lower", "higher", NULL };

struct report {
    char **rows, **columns, **group, **work;
    char *metric, *where, *better;
};

const struct hg_field hg_report_fields[] = {
    { "rows", HG_J_STRINGS, offsetof(struct report, rows), .doc = "keys that make the rows" },
    { "columns", HG_J_STRINGS, offsetof(struct report, columns),
      .doc = "keys that make the columns" },
    { "group", HG_J_STRINGS, offsetof(struct report, group),
      .doc = "keys that give a table each, whether or not they have to" },
    { "metric", HG_J_STRING, offsetof(struct report, metric),
      .doc = "result key to tabulate; one ending in `_per_s` is a rate, the higher the better" },
    { "where", HG_J_STRING, offsetof(struct report, where), .doc = "a selector: only these cells" },
    { "better", HG_J_STRING, offsetof(struct report, better), .words = better_words,
      .doc = "`higher` makes the metric a rate" },
    { "work", HG_J_STRINGS, offsetof(struct report, work),
      .doc = "keys whose product is the work of a cell: tells strong from weak scaling" },
    { 0 },
};

static void check_report_keys(const struct hg_matrix *m, const char *list, struct hg_errs *errs)
{
    const json_t *keys = json_object_get(m->report, list);
    json_t *key;
    size_t i;

    json_array_foreach((json_t *)keys, i, key) {
        char *pointer = hg_str_printf("/report/%s/%zu", list, i);
        const char *name = json_string_value(key);

        if (name && !hg_grid_has_key(m->grid, name))
            hg_grid_suggest(m->grid, name,
                            hg_json_error(&m->doc, pointer, errs, "no cell has \"%s\"", name));
        free(pointer);
    }
}

void hg_report_check(const struct hg_matrix *m, struct hg_errs *errs)
{
    struct report r = { 0 };
    struct hg_selector *where;
    struct hg_err err = HG_ERR_INIT;

    if (!json_is_object(m->report))
        return;
    hg_json_decode(&m->doc, m->report, "/report", hg_report_fields, true, &r, errs);
    where = r.where ? hg_selector_parse(r.where, &err) : NULL;
    if (r.where && (!where || hg_selector_check(where, m->grid, &err) < 0))
        hg_err_hint(hg_json_error(&m->doc, "/report/where", errs, "%s", err.text), "%s", err.hint);
    hg_selector_free(where);
    check_report_keys(m, "rows", errs);
    check_report_keys(m, "columns", errs);
    check_report_keys(m, "group", errs);
    check_report_keys(m, "work", errs);
    hg_json_release(hg_report_fields, &r);
}
