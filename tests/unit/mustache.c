/* SPDX-License-Identifier: Apache-2.0 */
/* render/mustache and render/view: templates of the users' own. */
#include "test.h"

#include <stdlib.h>

#include "base/fs.h"
#include "base/json.h"
#include "analysis/build.h"
#include "render/mustache.h"
#include "render/view.h"
#include "typeset/escape.h"

static const char data_text[] =
    "{\"name\": \"<b>\", \"empty\": \"\", \"yes\": true, \"no\": false, \"zero\": 0, \"none\": [],"
    " \"list\": [{\"n\": 1, \"in\": [{\"x\": \"p\"}, {\"x\": \"q\"}]}, {\"n\": 2, \"in\": []}],"
    " \"object\": {\"a\": {\"b\": \"deep\"}}, \"words\": [\"u\", \"v\"], \"cell\": {\"nodes\": \"4\"}}";
static const char shape_text[] =
    "{\"name\": \"\", \"empty\": \"\", \"yes\": true, \"no\": false, \"zero\": 0, \"none\": [{\"z\": 1}],"
    " \"list\": [{\"n\": 1, \"in\": [{\"x\": \"\"}]}], \"object\": {\"a\": {\"b\": \"\"}},"
    " \"words\": [\"\"], \"cell\": {\"*\": \"\"}}";

/* The output of a template, or its first error as "line:column: text". Yours to free. */
static char *fill(const char *template)
{
    json_t *data = json_loads(data_text, 0, NULL), *shape = json_loads(shape_text, 0, NULL);
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf out = HG_BUF_INIT;
    struct hg_mustache *m;

    assert_non_null(data);
    assert_non_null(shape);
    m = hg_mustache_parse("t", template, strlen(template), shape, &errs);
    if (m && hg_mustache_render(m, data, hg_html_append, &out, &err) < 0) {
        assert_int_equal(hg_errs_add(&errs, &err), -1);
        hg_buf_clear(&out);
    }
    if (errs.n)
        hg_buf_printf(&out, "%d:%d: %s", errs.items[0].line, errs.items[0].column,
                      errs.items[0].text);
    hg_errs_done(&errs);
    hg_mustache_free(m);
    json_decref(data);
    json_decref(shape);
    return out.len ? hg_buf_detach(&out) : strdup("");
}

static void test_templates_are_filled(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { "plain } { text", "plain } { text" },
        { "{{name}} {{{name}}} {{&name}} {{ name }}", "&#60;b&#62; <b> <b> &#60;b&#62;" },
        { "{{object.a.b}} {{zero}} {{yes}}", "deep 0 true" },
        { "{{#yes}}y{{/yes}}{{#no}}n{{/no}}{{^no}}N{{/no}}{{^yes}}Y{{/yes}}", "yN" },
        { "{{#empty}}e{{/empty}}{{#zero}}z{{/zero}}{{#none}}{{z}}{{/none}}{{^none}}-{{/none}}",
          "-" },
        { "{{#list}}{{n}}{{#in}}{{x}}{{n}}{{/in}};{{/list}}", "1p1q1;2;" },
        { "{{#words}}{{.}}{{^@last}}, {{/@last}}{{/words}}", "u, v" },
        { "{{#words}}{{#@first}}first {{/@first}}{{@index}}{{/words}}", "first 12" },
        { "{{#name}}<{{{.}}}>{{/name}}", "<<b>>" },
        { "{{#object}}{{#a}}{{b}} {{zero}}{{/a}}{{/object}}", "deep 0" },
        { "{{cell.nodes}}", "4" },
        { "a\n{{! gone }}\nb{{! inline }}c\n", "a\nbc\n" },
        { "a\n  {{#yes}}  \nb\n  {{/yes}}\nc\n", "a\nb\nc\n" },
        { "a\r\n{{#yes}}\r\nb\r\n{{/yes}}\r\n", "a\r\nb\r\n" },
        { "{{#yes}}\nb\n{{/yes}}", "b\n" },
        { "  {{name}}\n", "  &#60;b&#62;\n" },
        { "{{=<% %>=}}\n<%zero%> {{zero}} <%#yes%>y<%/yes%><%={{ }}=%>{{zero}}", "0 {{zero}} y0" },
        { "{{! two\nlines }}\n{{zero}}", "0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = fill(cases[i][0]);

        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void test_what_is_wrong_has_a_place(void **state)
{
    static const char *const cases[][2] = {
        { "a\n é {{nam}}", "2:4: there is no \"nam\" here" },
        { "{{#none}}{{#no}}{{y}}{{/no}}{{/none}}", "1:17: there is no \"y\" here" },
        { "{{object.a.c}}", "1:1: there is no \"object.a.c\" here" },
        { "{{name.x}}", "1:1: there is no \"name.x\" here" },
        { "{{cell.gpus}}", "1:1: there is no \"cell.gpus\" here" },
        { "{{#cell.gpus}}{{/cell.gpus}}", "1:1: there is no \"cell.gpus\" here" },
        { "{{list}}", "1:1: \"list\" is a list: {{#list}} opens it" },
        { "{{{object}}}", "1:1: \"object\" is an object: {{#object}} opens it" },
        { "{{@index}}", "1:1: @index is only valid in a list" },
        { "x {{name", "1:3: the tag is not closed: }} is missing" },
        { "{{{name}}", "1:1: the tag is not closed: }}} is missing" },
        { "{{#yes}}\n\n{{/no}}", "3:1: {{/no}} closes {{#yes}} of line 1" },
        { "\n{{/no}}", "2:1: {{/no}} closes a section that is not open" },
        { "\n {{^no}}", "2:2: {{^no}} is never closed" },
        { "{{>part}}", "1:1: {{>part}}: a template is one file, without partials" },
        { "{{<base}}{{/base}}", "1:1: {{<base}}: a template is one file, without partials" },
        { "{{}}", "1:1: \"\" is not a name" },
        { "{{a b}}", "1:1: \"a b\" is not a name" },
        { "{{=x=}}", "1:1: new delimiters are written {{=<% %>=}}: two words without =" },
    };
    struct hg_buf deep = HG_BUF_INIT;
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text = fill(cases[i][0]);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
    for (int i = 0; i < 33; i++)
        hg_buf_puts(&deep, "{{#yes}}");
    for (int i = 0; i < 33; i++)
        hg_buf_puts(&deep, "{{/yes}}");
    text = fill(deep.data);
    assert_string_equal(text, "1:257: sections are nested deeper than 32");
    free(text);
    hg_buf_done(&deep);
}

static void test_loops_in_loops_end(void **state)
{
    json_t *data = json_object(), *list = json_array(),
           *shape = json_loads("{\"l\": [0]}", 0, NULL);
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf template = HG_BUF_INIT, out = HG_BUF_INIT;
    struct hg_mustache *m;

    (void)state;
    for (int i = 0; i < 100; i++)
        json_array_append_new(list, json_integer(1));
    json_object_set_new(data, "l", list);
    for (int i = 0; i < 16; i++)
        hg_buf_puts(&template, "{{#l}}");
    for (int i = 0; i < 16; i++)
        hg_buf_puts(&template, "{{/l}}");
    m = hg_mustache_parse("t", template.data, template.len, shape, &errs);
    assert_non_null(m);
    assert_int_equal(hg_mustache_render(m, data, hg_html_append, &out, &err), -1);
    assert_non_null(strstr(err.text, "too much output"));
    hg_mustache_free(m);
    hg_buf_done(&template);
    hg_buf_done(&out);
    hg_errs_done(&errs);
    json_decref(data);
    json_decref(shape);
}

/* Both have the same names, all the way down; "*" stands for any. */
static void assert_same_shape(const json_t *shape, const json_t *view, const char *where)
{
    const char *name;
    json_t *value;
    size_t i;

    if (json_is_array(shape)) {
        assert_true(json_is_array(view));
        json_array_foreach((json_t *)view, i, value)
            assert_same_shape(json_array_get(shape, 0), value, where);
    } else if (json_is_object(shape)) {
        assert_true(json_is_object(view));
        json_object_foreach((json_t *)view, name, value) {
            const json_t *any = json_object_get(shape, "*");
            const json_t *one = json_object_get(shape, name);

            if (!any && !one)
                fail_msg("%s: \"%s\" is not in the shape", where, name);
            assert_same_shape(one ? one : any, value, name);
        }
        json_object_foreach((json_t *)shape, name, value) {
            if (strcmp(name, "*") != 0 && !json_object_get(view, name))
                fail_msg("%s: \"%s\" is not in the view", where, name);
        }
    } else if (json_is_array(view) || json_is_object(view)) {
        fail_msg("%s is a list or object", where);
    }
}

static void test_the_view_has_the_names_that_are_promised(void **state)
{
    static const char *const sets[] = { "plots", "quickstart", "footnotes" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char *path = hg_str_printf(HPCGRID_SOURCE_DIR "/tests/data/results/%s.json", sets[i]);
        struct hg_json_doc doc = HG_JSON_DOC_INIT;
        struct hg_results set = HG_RESULTS_INIT;
        struct hg_errs errs = HG_ERRS_INIT;
        struct hg_err err = HG_ERR_INIT;
        json_t *shape = hg_view_shape(), *view;
        struct hg_report *r;

        assert_int_equal(hg_json_load(path, &doc, &err), 0);
        assert_int_equal(hg_results_decode(&doc, 0, &set, &errs), 0);
        r = hg_report_build(&set, 1, NULL, &errs);
        assert_non_null(r);
        view = hg_view(r, NULL);
        assert_non_null(shape);
        assert_same_shape(shape, view, "view");
        json_decref(view);
        json_decref(shape);
        hg_report_free(r);
        hg_results_done(&set);
        hg_errs_done(&errs);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates_are_filled),
        cmocka_unit_test(test_what_is_wrong_has_a_place),
        cmocka_unit_test(test_loops_in_loops_end),
        cmocka_unit_test(test_the_view_has_the_names_that_are_promised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
