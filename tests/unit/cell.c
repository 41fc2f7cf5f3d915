/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <jq.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "matrix/cell.h"
#include "matrix/matrix.h"

#define HEAD                                                                                     \
    "{\"hpcgrid\": 1, \"name\": \"t\", \"site\": {\"name\": \"lab\", \"hardware\": {\"a100\": {" \
    "\"gpus_per_node\": 2}}}, "

/* A matrix from text, by way of a file. */
static struct hg_matrix *load(const char *text)
{
    char path[] = "/tmp/hg-cell-XXXXXX";
    int fd = mkstemp(path);
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_matrix *m;

    assert_true(fd >= 0);
    assert_int_equal(hg_fs_write_all(fd, text, strlen(text)), 0);
    close(fd);
    m = hg_matrix_load(path, NULL, &errs);
    unlink(path);
    if (!m) {
        struct hg_buf b = HG_BUF_INIT;

        hg_errs_format(&errs, &b);
        fail_msg("%s", hg_buf_str(&b));
    }
    hg_errs_done(&errs);
    return m;
}

/* Linked in jq_start's place (--wrap): how often was jq asked? */
void __real_jq_start(jq_state *jq, jv input, int flags);
void __wrap_jq_start(jq_state *jq, jv input, int flags);
static int jq_starts;

void __wrap_jq_start(jq_state *jq, jv input, int flags)
{
    jq_starts++;
    __real_jq_start(jq, input, flags);
}

static int list_id(const struct hg_cell *cell, void *context)
{
    hg_buf_printf(context, "%s\n", cell->id);
    return 0;
}

/* The ids of a matrix, one a line, in its order. */
static void ids_of(const char *text, struct hg_buf *out)
{
    struct hg_matrix *m = load(text);
    struct hg_errs errs = HG_ERRS_INIT;

    assert_int_equal(hg_cells_walk(m, 0, list_id, out, NULL, &errs), 0);
    hg_errs_done(&errs);
    hg_matrix_free(m);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t split_lines(char *text, char *lines[64])
{
    size_t n = 0;

    for (char *p = strtok(text, "\n"); p && n < 64; p = strtok(NULL, "\n"))
        lines[n++] = p;
    qsort(lines, n, sizeof *lines, compare_lines);
    return n;
}

/* Every id of a is one of b's. */
static void assert_ids_within(const char *a, const char *b)
{
    struct hg_buf ta = HG_BUF_INIT, tb = HG_BUF_INIT;
    char *la[64], *lb[64];
    size_t na, nb;

    ids_of(a, &ta);
    ids_of(b, &tb);
    na = split_lines(ta.data, la);
    nb = split_lines(tb.data, lb);
    assert_true(na > 0);
    for (size_t i = 0; i < na; i++)
        if (!bsearch(&la[i], lb, nb, sizeof *lb, compare_lines))
            fail_msg("%s is in %s, not in %s", la[i], a, b);
    hg_buf_done(&ta);
    hg_buf_done(&tb);
}

#define RUN "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1}"

static const char plain[] = HEAD RUN ", \"axes\": {\"a\": [1, 2], \"b\": [\"x\", \"y\"]}}";

static void test_ids_outlast_changes_that_mean_nothing(void **state)
{
    static const char *const others[] = {
        /* axes reordered, members reordered, numbers written otherwise */
        HEAD "\"axes\": {\"b\": [\"y\", \"x\"], \"a\": [2.0, 1e0]}, " RUN "}",
        /* grown by values, by rows, by repeats */
        HEAD RUN ", \"axes\": {\"a\": [0, 1, 2, 3], \"b\": [\"x\", \"y\", \"z\"]}, \"repeats\": 2}",
        HEAD RUN ", \"axes\": {\"a\": [1, 2], \"b\": [\"x\", \"y\"]}, \"include\": [{\"c\": 1}]}",
        /* time, memory, options and notes */
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"time\": \"5m\", "
             "\"mem\": \"1G\", \"sbatch\": [\"-k\"], \"_note\": 1, \"cwd\": \"/\", \"results\": "
             "{\"t\": \"(.*)\"}}, \"axes\": {\"a\": [1, 2], \"b\": [\"x\", \"y\"]}}",
        /* what was a default is stated, what was stated is derived */
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"nodes\": 1, \"hardware\": "
             "\"a100\", \"tasks_per_node\": 1}, \"axes\": {\"a\": [1, 2], \"b\": [\"x\", \"y\"]}, "
             "\"derive\": {\"lr\": \"1\"}}",
        /* the same cells as rows */
        HEAD RUN ", \"include\": [{\"a\": 1, \"b\": [\"x\", \"y\"]}, {\"b\": [\"y\", \"x\"], "
                 "\"a\": 2}]}",
        /* a limit, a report, a baseline */
        HEAD RUN
        ", \"axes\": {\"a\": [1, 2], \"b\": [\"x\", \"y\"]}, \"limits\": {\"running\": 1}, "
        "\"report\": {\"rows\": [\"a\"]}, \"baseline\": {\"a\": 0}, \"shuffle\": 3}",
    };

    (void)state;
    for (size_t i = 0; i < N_OF(others); i++)
        assert_ids_within(plain, others[i]);
}

static void test_ids_change_with_what_is_run(void **state)
{
    static const char *const others[] = {
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 2}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"-v\", \"{{args}}\"], \"lr\": 1}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"launch\": []}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"env\": {\"A\": "
             "\"1\"}}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"files\": {\"a\": "
             "\"\"}}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"cpus_per_task\": 2}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": 1, \"repeat\": 2}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": \"1\"}}",
        HEAD "\"workload\": {\"command\": [\"x\", \"{{args}}\"], \"lr\": true}}",
    };
    struct hg_buf seen = HG_BUF_INIT;

    (void)state;
    ids_of(HEAD RUN "}", &seen);
    for (size_t i = 0; i < N_OF(others); i++) {
        struct hg_buf id = HG_BUF_INIT;

        ids_of(others[i], &id);
        assert_null(strstr(hg_buf_str(&seen), hg_buf_str(&id)));
        hg_buf_puts(&seen, hg_buf_str(&id));
        hg_buf_done(&id);
    }
    hg_buf_done(&seen);
}

static int stop_at_third(const struct hg_cell *cell, void *context)
{
    (void)cell;
    return ++*(int *)context == 3 ? 7 : 0;
}

static void test_a_visit_can_end_the_walk(void **state)
{
    struct hg_matrix *m = load(plain);
    struct hg_errs errs = HG_ERRS_INIT;
    int n = 0;

    (void)state;
    assert_int_equal(hg_cells_walk(m, 0, stop_at_third, &n, NULL, &errs), 7);
    assert_int_equal(n, 3);
    assert_int_equal(errs.n, 0);
    hg_matrix_free(m);
}

static int note_order(const struct hg_cell *cell, void *context)
{
    hg_buf_printf(context, "%lld%s ",
                  (long long)json_integer_value(json_object_get(cell->members, "nodes")),
                  cell->added ? "+" : "");
    assert_true(cell->baseline[0] != '\0');
    if (cell->added)
        assert_string_equal(cell->baseline, cell->id);
    return 0;
}

static void test_an_added_baseline_comes_before_the_first_cell_that_wants_it(void **state)
{
    struct hg_matrix *m =
        load(HEAD RUN ", \"axes\": {\"nodes\": [4, 2], \"a\": [1, 2]}, \"repeats\": "
                      "2, \"baseline\": {\"nodes\": 1}}");
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_buf order = HG_BUF_INIT;
    struct hg_cells_count count;

    (void)state;
    assert_int_equal(hg_cells_walk(m, HG_CELLS_MEMBERS, note_order, &order, &count, &errs), 0);
    assert_string_equal(hg_buf_str(&order), "1+ 4 1+ 4 2 2 1+ 4 1+ 4 2 2 ");
    assert_int_equal(count.cells, 12);
    assert_int_equal(count.added, 4);
    assert_int_equal(count.made, 8);
    hg_cells_count_done(&count);
    hg_buf_done(&order);
    hg_matrix_free(m);
}

static int count_fates(const struct hg_cell *cell, void *context)
{
    ((int *)context)[cell->fate]++;
    return 0;
}

static void test_flags_choose_what_is_visited(void **state)
{
    struct hg_matrix *m =
        load(HEAD "\"workload\": {\"program\": \"hpcgrid-worker\"}, \"axes\": {\"strategy\": "
                  "[\"ddp\", \"fsdp\", \"single\"], \"gpus_per_node\": [1, 1.0, 2], \"seed\": [1, "
                  "2]}, \"exclude\": [{\"seed\": 2}]}");
    static const struct {
        unsigned flags;
        int runs, skipped, excluded, merged;
    } cases[] = {
        { 0, 5, 0, 0, 0 },
        { HG_CELLS_SKIPPED, 5, 1, 0, 0 },
        { HG_CELLS_ALL, 5, 1, 9, 3 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_errs errs = HG_ERRS_INIT;
        struct hg_cells_count count;
        int fates[5] = { 0 };

        assert_int_equal(hg_cells_walk(m, cases[i].flags, count_fates, fates, &count, &errs), 0);
        assert_int_equal(fates[HG_CELL_RUNS], cases[i].runs);
        assert_int_equal(fates[HG_CELL_SKIPPED], cases[i].skipped);
        assert_int_equal(fates[HG_CELL_EXCLUDED], cases[i].excluded);
        assert_int_equal(fates[HG_CELL_MERGED], cases[i].merged);
        assert_int_equal(count.made, 18);
        assert_int_equal(count.cells, 5);
        hg_cells_count_done(&count);
    }
    hg_matrix_free(m);
}

static void test_jq_sees_each_pair_of_values_once(void **state)
{
    struct hg_buf ids = HG_BUF_INIT;

    (void)state;
    jq_starts = 0;
    ids_of(HEAD "\"workload\": {\"command\": [\"a\"]}, \"axes\": {\"a\": [1, 2, 3], "
                "\"b\": {\"range\": [1, 100]}, \"c\": {\"range\": [1, 100]}}, "
                "\"exclude\": [{\"a\": 1, \"b\": 2}, \".b == .c\"]}",
           &ids);
    assert_int_equal(jq_starts, 100 * 100);
    hg_buf_done(&ids);
}

static void test_devices_and_time_of_a_cell(void **state)
{
    static const struct {
        const char *cell;
        long long devices;
        double time_s;
    } cases[] = {
        { "{\"nodes\":2,\"gpus_per_node\":2,\"tasks_per_node\":1,\"time\":90}", 4, 90 },
        { "{\"nodes\":2,\"gpus_per_node\":0,\"tasks_per_node\":3,\"time\":\"2h\"}", 6, 7200 },
        { "{\"nodes\":1,\"gpus_per_node\":0,\"tasks_per_node\":2,\"cpus_per_task\":4}", 8, 0 },
        { "{}", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *cell = json_loads(cases[i].cell, 0, NULL);

        assert_int_equal(hg_cell_devices(cell), cases[i].devices);
        assert_true(hg_cell_time_s(cell) == cases[i].time_s);
        json_decref(cell);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_outlast_changes_that_mean_nothing),
        cmocka_unit_test(test_ids_change_with_what_is_run),
        cmocka_unit_test(test_a_visit_can_end_the_walk),
        cmocka_unit_test(test_an_added_baseline_comes_before_the_first_cell_that_wants_it),
        cmocka_unit_test(test_flags_choose_what_is_visited),
        cmocka_unit_test(test_jq_sees_each_pair_of_values_once),
        cmocka_unit_test(test_devices_and_time_of_a_cell),
    };

    return cmocka_run_group_tests_name("cell", tests, NULL, NULL);
}
