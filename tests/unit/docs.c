/* SPDX-License-Identifier: Apache-2.0 */
/* What is generated from the field tables and kept as files must be what the tables give. HPCGRID_BLESS=1 writes it anew. */
#include "test.h"

#include "base/buf.h"
#include "base/fields.h"
#include "base/fs.h"
#include "base/json.h"
#include "contract/keys.h"
#include "matrix/params.h"
#include "matrix/matrix.h"
#include "matrix/report.h"
#include "matrix/schema.h"
#include "matrix/site.h"
#include "results/result_keys.h"

/* ---- The tables as Markdown ---- */

static void reference_type(const json_t *schema, struct hg_buf *out)
{
    const char *type = json_string_value(json_object_get(schema, "type"));
    const json_t *any = json_object_get(schema, "anyOf");
    json_t *one;
    size_t i;

    if (type)
        hg_buf_puts(out, strcmp(type, "array") == 0 ? "list" : type);
    json_array_foreach((json_t *)any, i, one) {
        hg_buf_puts(out, i ? " or " : "");
        reference_type(one, out);
    }
}

/* What a JSON member may be, in a word, from its schema. */
static void reference_json(const struct hg_field *f, struct hg_buf *out)
{
    json_t *schema = f->schema ? json_loads(f->schema, JSON_DECODE_ANY, NULL) : NULL;

    if (schema)
        reference_type(schema, out);
    else
        hg_buf_puts(out, "any value");
    json_decref(schema);
}

static void fields_reference(const struct hg_field *fields, struct hg_buf *out)
{
    static const char *const kinds[] = {
        [HG_J_INT] = "integer",
        [HG_J_REAL] = "number",
        [HG_J_BOOL] = "true/false",
        [HG_J_STRING] = "string",
        [HG_J_STRINGS] = "list of strings",
        [HG_J_OBJECT] = "object",
        [HG_J_JSON] = "",
    };

    hg_buf_puts(out, "| member | type | meaning |\n| --- | --- | --- |\n");
    for (; fields->kind != HG_J_END; fields++) {
        if (fields->flags & HG_J_IGNORED)
            continue;
        hg_buf_printf(out, "| `%s`%s | %s", fields->name,
                      fields->flags & HG_J_REQUIRED ? " (required)" : "", kinds[fields->kind]);
        if (fields->kind == HG_J_JSON)
            reference_json(fields, out);
        if ((fields->kind == HG_J_INT || fields->kind == HG_J_REAL) &&
            (fields->min != 0 || fields->max != 0)) {
            if (fields->max >= 1e15)
                hg_buf_printf(out, ", from %.15g", fields->min);
            else
                hg_buf_printf(out, ", %.15g to %.15g", fields->min, fields->max);
        }
        hg_buf_printf(out, " | %s |\n", fields->doc ? fields->doc : "");
    }
}

static void keys_reference(struct hg_buf *out)
{
    static const char *const kinds[] = {
        [HG_KEY_WORD] = "string",
        [HG_KEY_WHOLE] = "integer",
        [HG_KEY_WORDS] = "string or list of strings",
        [HG_KEY_DURATION] = "number or string",
        [HG_KEY_SIZE] = "string",
    };

    hg_buf_puts(out, "| key | type | in the id | meaning |\n| --- | --- | --- | --- |\n");
    for (int i = 0; i < HG_KEY_COUNT; i++) {
        const struct hg_key *k = &hg_keys[i];

        hg_buf_printf(out, "| `%s` | %s", k->name, kinds[k->kind]);
        if (k->kind == HG_KEY_WHOLE)
            hg_buf_printf(out, ", %.15g to %.15g", k->min, k->max);
        hg_buf_printf(out, " | %s | %s |\n", k->role != HG_ROLE_LOOSE ? "yes" : "no", k->doc);
    }
}

static void limit_cell(int limit, struct hg_buf *out)
{
    if (limit)
        hg_buf_printf(out, " %d |", limit);
    else
        hg_buf_puts(out, " any |");
}

static void strategies_reference(struct hg_buf *out)
{
    hg_buf_puts(out, "| strategy | nodes | tasks | devices | meaning |\n"
                     "| --- | --- | --- | --- | --- |\n");
    for (const struct hg_strategy *s = hg_strategies; s->name; s++) {
        hg_buf_printf(out, "| `%s` |", s->name);
        limit_cell(s->max_nodes, out);
        limit_cell(s->max_tasks, out);
        limit_cell(s->max_devices, out);
        hg_buf_printf(out, " %s |\n", s->summary);
    }
}

static void params_reference(struct hg_buf *out)
{
    static const char *const kinds[] = {
        [HG_PARAM_INT] = "integer",
        [HG_PARAM_REAL] = "number",
        [HG_PARAM_BOOL] = "true/false",
        [HG_PARAM_STRING] = "string",
    };

    hg_buf_puts(out, "| parameter | type | meaning |\n| --- | --- | --- |\n");
    for (const struct hg_param *p = hg_params; p->name; p++) {
        hg_buf_printf(out, "| `%s` | %s", p->name, kinds[p->kind]);
        if (p->min != 0 || p->max != 0)
            hg_buf_printf(out, ", %.16g to %.16g", p->min, p->max); /* seed: 2^53 - 1 */
        hg_buf_printf(out, " | %s |\n", p->doc);
    }
}

static void metrics_reference(struct hg_buf *out)
{
    const char *key, *type, *doc;

    hg_buf_puts(out, "| key | type | meaning |\n| --- | --- | --- |\n");
    for (size_t i = 0; (key = hg_result_key_known(i, &type, &doc)); i++)
        hg_buf_printf(out, "| `%s` | %s | %s |\n", key, type, doc);
}

/* ---- The pages ---- */

static const struct {
    const char *name;
    const struct hg_field *fields; /* or */
    void (*write)(struct hg_buf *out);
} tables[] = {
    { "matrix", hg_matrix_fields, NULL },
    { "workload", hg_workload_fields, NULL },
    { "repeats", hg_repeats_fields, NULL },
    { "limits", hg_limits_fields, NULL },
    { "retry", hg_retry_fields, NULL },
    { "report", hg_report_fields, NULL },
    { "site", hg_site_fields, NULL },
    { "rest", hg_rest_fields, NULL },
    { "hardware", hg_hardware_fields, NULL },
    { "keys", NULL, keys_reference },
    { "strategies", NULL, strategies_reference },
    { "params", NULL, params_reference },
    { "metrics", NULL, metrics_reference },
};

/* Copy a page; whatever stands between "<!-- table NAME -->" and "<!-- end -->" is made anew. */
static void regenerate(const char *page, struct hg_buf *out)
{
    static const char begin[] = "<!-- table ", end[] = "<!-- end -->";
    const char *mark;

    while ((mark = strstr(page, begin))) {
        const char *name = mark + strlen(begin);
        size_t n = strcspn(name, " ");
        size_t i = 0;

        hg_buf_append(out, page, (size_t)(strchr(mark, '\n') + 1 - page));
        while (i < N_OF(tables) && (strlen(tables[i].name) != n || memcmp(tables[i].name, name, n)))
            i++;
        assert_true(i < N_OF(tables));
        if (tables[i].fields)
            fields_reference(tables[i].fields, out);
        else
            tables[i].write(out);
        page = strstr(mark, end);
        assert_non_null(page);
    }
    hg_buf_puts(out, page);
}

static void assert_file_holds(const char *name, const struct hg_buf *want)
{
    char *path = hg_fs_join(HPCGRID_SOURCE_DIR, name);
    struct hg_buf have = HG_BUF_INIT;

    if (getenv("HPCGRID_BLESS"))
        assert_int_equal(hg_fs_replace(path, want->data, want->len, 0644, NULL), 0);
    assert_int_equal(hg_fs_read(path, 1 << 22, &have, NULL), 0);
    assert_string_equal(hg_buf_str(&have), hg_buf_str(want));
    hg_buf_done(&have);
    free(path);
}

static void assert_page_is_current(const char *name)
{
    char *path = hg_fs_join(HPCGRID_SOURCE_DIR, name);
    struct hg_buf page = HG_BUF_INIT, fresh = HG_BUF_INIT;

    assert_int_equal(hg_fs_read(path, 1 << 22, &page, NULL), 0);
    regenerate(hg_buf_str(&page), &fresh);
    assert_file_holds(name, &fresh);
    hg_buf_done(&page);
    hg_buf_done(&fresh);
    free(path);
}

static void test_reference_of_the_matrix_format_is_current(void **state)
{
    (void)state;
    assert_page_is_current("matrices/reference.md");
}

static void test_reference_of_sites_is_current(void **state)
{
    (void)state;
    assert_page_is_current("templates/sites/README.md");
}

static void test_reference_of_metrics_is_current(void **state)
{
    (void)state;
    assert_page_is_current("orchestrator/reference.md");
}

static void test_schema_file_is_current(void **state)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_buf text = HG_BUF_INIT;
    json_t *schema;

    (void)state;
    unsetenv("HPCGRID_SITES"); /* only those that ship */
    schema = hg_matrix_schema(&errs);
    assert_int_equal(errs.n, 0);
    hg_json_dump(schema, HG_JSON_INDENT, &text);
    hg_buf_puts(&text, "\n");
    assert_file_holds("matrices/matrix.schema.json", &text);
    hg_buf_done(&text);
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_of_the_matrix_format_is_current),
        cmocka_unit_test(test_reference_of_sites_is_current),
        cmocka_unit_test(test_reference_of_metrics_is_current),
        cmocka_unit_test(test_schema_file_is_current),
    };

    return cmocka_run_group_tests_name("docs", tests, NULL, NULL);
}
