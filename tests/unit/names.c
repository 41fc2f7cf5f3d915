/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/map.h"
#include "matrix/names.h"
#include "matrix/select.h"

/* The names of some cells, one a line. */
static char *names_of(const char *cells)
{
    json_t *list = json_loads(cells, 0, NULL), *cell;
    struct hg_names *names = hg_names_create();
    struct hg_buf out = HG_BUF_INIT, again = HG_BUF_INIT;
    size_t i;

    assert_non_null(list);
    json_array_foreach(list, i, cell)
        hg_names_add(names, cell);
    json_array_foreach(list, i, cell) {
        hg_buf_puts(&out, i ? "; " : "");
        hg_names_append(names, i, &out);
        hg_buf_puts(&again, i ? "; " : "");
        hg_names_append_cell(names, cell, &again);
    }
    assert_string_equal(hg_buf_str(&out), hg_buf_str(&again));
    hg_buf_done(&again);
    hg_names_free(names);
    json_decref(list);
    return hg_buf_detach(&out);
}

static void test_names_have_the_keys_that_tell_cells_apart(void **state)
{
    static const struct {
        const char *cells, *names;
    } cases[] = {
        /* what varies; the shape by GPUs, by tasks where there are none */
        { "[{'lr':0.1,'batch':8,'repeat':1},{'lr':0.1,'batch':8,'repeat':2},"
          "{'lr':1,'batch':8,'repeat':1}]",
          "lr=0.1, run 1; lr=0.1, run 2; lr=1, run 1" },
        { "[{'strategy':'dp','nodes':1,'gpus_per_node':2,'tasks_per_node':1,'x':1},"
          "{'strategy':'ddp','nodes':2,'gpus_per_node':2,'tasks_per_node':2,'x':1},"
          "{'strategy':'ddp','nodes':1,'gpus_per_node':2,'tasks_per_node':2,'x':2}]",
          "dp 1x2; ddp 2x2; ddp 1x2" },
        { "[{'nodes':1,'gpus_per_node':0,'tasks_per_node':1},"
          "{'nodes':1,'gpus_per_node':0,'tasks_per_node':4}]",
          "1x1; 1x4" },
        /* what follows from others is left out; what is chosen stays */
        { "[{'nodes':1,'tasks_per_node':1,'lr':1,'global_batch':8,'repeat':1},"
          "{'nodes':2,'tasks_per_node':1,'lr':1,'global_batch':16,'repeat':1},"
          "{'nodes':1,'tasks_per_node':1,'lr':2,'global_batch':8,'repeat':1},"
          "{'nodes':2,'tasks_per_node':1,'lr':2,'global_batch':16,'repeat':1}]",
          "1x1 lr=1; 2x1 lr=1; 1x1 lr=2; 2x1 lr=2" },
        { "[{'hardware':'a','nodes':1,'gpus_per_node':1,'backend':'cuda'},"
          "{'hardware':'b','nodes':1,'gpus_per_node':1,'backend':'cuda'},"
          "{'hardware':'c','nodes':1,'gpus_per_node':0,'tasks_per_node':1,'backend':'cpu'}]",
          "hardware=a; hardware=b; hardware=c" },
        /* how the job is requested, and notes, do not make another cell */
        { "[{'lr':1,'time':60,'_by':'me'},{'lr':2,'time':90,'_by':'you'},"
          "{'lr':1,'time':60,'_by':'me'}]",
          "lr=1; lr=2; lr=1" },
        /* absent */
        { "[{'a':1},{'a':1,'b':2},{'a':1,'b':3}]", "no b; b=2; b=3" },
        { "[{'init':'x'},{'trace':true},{'trace':true,'steps':4}]",
          "init=x; trace=true; trace=true steps=4" },
        { "[{'strategy':'ddp','a':1},{'strategy':'ddp'},{'strategy':'dp','a':1}]",
          "ddp a=1; ddp; dp a=1" },
        /* one cell */
        { "[{'strategy':'ddp','nodes':2,'tasks_per_node':2,'repeat':1}]", "ddp 2x2" },
        { "[{'nodes':1,'tasks_per_node':1}]", "1x1" },
        /* values that could be read in two ways */
        { "[{'v':1},{'v':'1'},{'v':true},{'v':'true'},{'v':'a b=2'},{'v':''},{'v':[1,'x']}]",
          "v=1; v=\"1\"; v=true; v=\"true\"; v=\"a b=2\"; v=\"\"; v=[1,\"x\"]" },
        { "[{'strategy':'2x2'},{'strategy':'run'},{'strategy':'a b'},{'strategy':'zero2'}]",
          "strategy=2x2; strategy=run; strategy=\"a b\"; zero2" },
        /* nothing reaches a terminal */
        { "[{'v':'\\u001b[31m'},{'v':'\\u009b1'},{'v':'\\u202ea'}]", "v=?[31m; v=?1; v=?a" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *json = strdup(cases[i].cells), *names;

        for (char *p = json; *p; p++)
            *p = *p == '\'' ? '"' : *p;
        names = names_of(json);
        assert_string_equal(names, cases[i].names);
        free(names);
        free(json);
    }
}

static void test_long_values_are_cut_and_still_differ(void **state)
{
    char *names = names_of("[{\"p\":\"/a/path/that/is/much/too/long/for/a/line/of/text/1\"},"
                           "{\"p\":\"/a/path/that/is/much/too/long/for/a/line/of/text/2\"}]");
    char *other = strstr(names, "; ");

    (void)state;
    *other = '\0';
    assert_string_equal(names, "p=/a/path/that/is/much/too/long/for/a/lin…");
    assert_string_not_equal(names, other + 2);
    free(names);
}

/* The one cell that a name picks as a selector; 0 and more. */
static int picked_by(const char *name, const json_t *cells)
{
    struct hg_selector *select = hg_selector_parse(name, NULL);
    int picked = -1, n = 0;
    size_t i;
    json_t *cell;

    assert_non_null(select);
    json_array_foreach(cells, i, cell) {
        if (hg_selector_match(select, "", cell, NULL) != 1)
            continue;
        picked = (int)i;
        n++;
    }
    hg_selector_free(select);
    return n == 1 ? picked : -n;
}

/* Deterministic, of all shapes: keys that are missing, follow from others, or repeat. */
static void test_no_two_cells_share_a_name(void **state)
{
    struct hg_names *names = hg_names_create();
    struct hg_map seen = HG_MAP_INIT;
    json_t *cells = json_array();
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        json_t *cell = json_pack("{s:i, s:i, s:i, s:s, s:i}", "nodes", 1 + i % 4, "tasks_per_node",
                                 1 + i / 4 % 2, "global", (1 + i % 4) * (1 + i / 4 % 2), "strategy",
                                 i / 8 % 2 ? "ddp" : "fsdp", "repeat", 1 + i / 16 % 5);

        if (i / 80 % 5)
            json_object_set_new(cell, "lr", json_real(0.1 * (i / 80 % 5)));
        json_object_set_new(cell, "seed", json_integer(i / 400));
        hg_names_add(names, cell);
        json_array_append_new(cells, cell);
    }
    for (size_t i = 0; i < 2000; i++) {
        struct hg_buf name = HG_BUF_INIT;

        hg_names_append(names, i, &name);
        n += hg_map_put(&seen, name.data, name.len, i) == i;
        if (i % 50 == 0 && i / 80 % 5) /* else others have an lr besides */
            assert_int_equal(picked_by(name.data, cells), i);
        assert_null(strstr(name.data, "global"));
        hg_buf_done(&name);
    }
    assert_int_equal(n, 2000);
    json_decref(cells);
    hg_map_done(&seen);
    hg_names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_have_the_keys_that_tell_cells_apart),
        cmocka_unit_test(test_long_values_are_cut_and_still_differ),
        cmocka_unit_test(test_no_two_cells_share_a_name),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
