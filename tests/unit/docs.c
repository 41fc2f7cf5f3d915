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

static const struct {
    const char *name;
    const struct hg_field *fields; /* or */
    void (*write)(struct hg_buf *out);
} tables[] = {
    { "matrix", hg_matrix_fields, NULL },    { "workload", hg_workload_fields, NULL },
    { "limits", hg_limits_fields, NULL },    { "retry", hg_retry_fields, NULL },
    { "report", hg_report_fields, NULL },    { "site", hg_site_fields, NULL },
    { "rest", hg_rest_fields, NULL },        { "hardware", hg_hardware_fields, NULL },
    { "keys", NULL, hg_keys_reference },     { "strategies", NULL, hg_strategies_reference },
    { "params", NULL, hg_params_reference },
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
            hg_json_reference(tables[i].fields, out);
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

static void test_schema_file_is_current(void **state)
{
    json_t *schema = hg_matrix_schema();
    struct hg_buf text = HG_BUF_INIT;

    (void)state;
    assert_non_null(schema);
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
        cmocka_unit_test(test_schema_file_is_current),
    };

    return cmocka_run_group_tests_name("docs", tests, NULL, NULL);
}
