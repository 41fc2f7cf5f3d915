/* SPDX-License-Identifier: Apache-2.0 */
/* What is generated from the field tables and kept as files must be what the tables give. HPCGRID_BLESS=1 writes it anew. */
#include "test.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "matrix/keys.h"
#include "matrix/matrix.h"
#include "matrix/report.h"
#include "matrix/schema.h"
#include "matrix/site.h"

static void matrix_table(struct hg_buf *out)
{
    hg_json_reference(hg_matrix_fields, out);
}

static void workload_table(struct hg_buf *out)
{
    hg_json_reference(hg_workload_fields, out);
}

static void limits_table(struct hg_buf *out)
{
    hg_json_reference(hg_limits_fields, out);
}

static void retry_table(struct hg_buf *out)
{
    hg_json_reference(hg_retry_fields, out);
}

static void report_table(struct hg_buf *out)
{
    hg_json_reference(hg_report_fields, out);
}

static const struct {
    const char *name;
    void (*write)(struct hg_buf *out);
} tables[] = {
    { "matrix", matrix_table },
    { "workload", workload_table },
    { "limits", limits_table },
    { "retry", retry_table },
    { "report", report_table },
    { "keys", hg_keys_reference },
    { "strategies", hg_strategies_reference },
    { "params", hg_params_reference },
    { "site", hg_site_reference },
    { "rest", hg_rest_reference },
    { "hardware", hg_hardware_reference },
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
