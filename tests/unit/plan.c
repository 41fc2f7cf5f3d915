/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "matrix/matrix.h"
#include "plan/batch.h"
#include "plan/cells.h"
#include "plan/files.h"
#include "plan/plan.h"
#include "plan/script.h"

#define SITE                                                                                         \
    "{\"name\":\"here\",\"launcher\":\"srun --mpi=pmix\",\"default\":\"a100\",\"account\":\"acc\","  \
    "\"signal_lead_s\":120,\"extra\":[\"--exclusive\"],\"hardware\":{"                               \
    "\"a100\":{\"partition\":\"gpu\",\"gres\":\"gpu:a100\",\"gpus_per_node\":2,\"cpus_per_gpu\":32," \
    "\"mem_per_gpu\":\"48G\",\"constraint\":\"x&y\",\"backend\":\"cuda\"},"                          \
    "\"cpu\":{\"gpus_per_node\":0,\"qos\":\"low\",\"backend\":\"cpu\"}}}"

static void print_errs(const struct hg_errs *errs)
{
    struct hg_buf text = HG_BUF_INIT;

    hg_errs_format(errs, &text);
    print_message("%s", hg_buf_str(&text));
    hg_buf_done(&text);
}

/* A matrix of a command with these members besides name, site and command. */
static struct hg_matrix *load(const char *members)
{
    struct hg_errs errs = HG_ERRS_INIT;
    char *text = hg_str_printf("{\"hpcgrid\":1,\"name\":\"t\",\"site\":" SITE ",%s}", members);
    char *path = hg_fs_join(dir, "m.json");
    struct hg_matrix *m;

    assert_int_equal(hg_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    m = hg_matrix_load(path, NULL, &errs);
    print_errs(&errs);
    assert_non_null(m);
    hg_errs_done(&errs);
    free(text);
    free(path);
    return m;
}

#define COMMAND "\"workload\":{\"command\":[\"true\"]},"

static struct hg_plan *make(const struct hg_matrix *m, const struct hg_plan *known)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_plan *plan = hg_plan_make(m, NULL, known, &errs);

    print_errs(&errs);
    assert_non_null(plan);
    hg_errs_done(&errs);
    return plan;
}

static struct hg_plan *plan_of(const char *members)
{
    struct hg_matrix *m = load(members);
    struct hg_plan *plan = make(m, NULL);

    hg_matrix_free(m);
    return plan;
}

static char *job_text(const struct hg_batch *b)
{
    struct hg_buf out = HG_BUF_INIT;

    hg_json_dump(b->job, HG_JSON_COMPACT, &out);
    return hg_buf_detach(&out);
}

static void test_times_are_rounded_up_the_ladder_but_never_above_the_longest(void **state)
{
    static const struct {
        double time, most, want;
    } cases[] = { { 1, 86400, 60 },          { 60, 86400, 60 },        { 61, 86400, 120 },
                  { 3601, 86400, 5400 },     { 82800, 86400, 86400 },  { 86400, 86400, 86400 },
                  { 82800, 84600, 84600 },   { 430, 430, 430 },        { 86401, 200000, 129600 },
                  { 2419200, 9e9, 2419200 }, { 2419201, 9e9, 2419201 } };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        assert_true(hg_plan_round_time(cases[i].time, cases[i].most) == cases[i].want);
}

static void test_a_job_asks_for_what_cell_and_site_say(void **state)
{
    static const struct {
        const char *members, *want;
    } cases[] = {
        { COMMAND "\"axes\":{\"gpus_per_node\":2,\"nodes\":2,\"time\":\"01:00:00\"}",
          "{\"name\":\"t-1\",\"partition\":\"gpu\",\"nodes\":2,\"tasks_per_node\":2,\"cpus_per_task\":32,"
          "\"gres\":\"gpu:a100:2\",\"mem_mib\":98304,\"time_s\":3600,\"account\":\"acc\","
          "\"constraint\":\"x&y\",\"requeue\":true,\"extra\":[\"--exclusive\"]}" },
        { COMMAND
          "\"axes\":{\"gpus_per_node\":2,\"tasks_per_node\":1,\"mem\":\"1G\",\"sbatch\":\"-x n1 --nice=5\"}",
          "{\"name\":\"t-1\",\"partition\":\"gpu\",\"nodes\":1,\"tasks_per_node\":1,\"cpus_per_task\":64,"
          "\"gres\":\"gpu:a100:2\",\"mem_mib\":1024,\"account\":\"acc\",\"constraint\":\"x&y\",\"requeue\":true,"
          "\"extra\":[\"--exclusive\",\"-x\",\"n1\",\"--nice=5\"]}" },
        { COMMAND
          "\"axes\":{\"hardware\":\"cpu\",\"tasks_per_node\":4,\"cpus_per_task\":3,\"time\":90}",
          "{\"name\":\"t-1\",\"nodes\":1,\"tasks_per_node\":4,\"cpus_per_task\":3,\"time_s\":90,\"account\":\"acc\","
          "\"qos\":\"low\",\"requeue\":true,\"extra\":[\"--exclusive\"]}" },
        { "\"workload\":{\"program\":\"hpcgrid-worker\"},\"axes\":{\"hardware\":\"cpu\",\"time\":600}",
          "{\"name\":\"t-1\",\"nodes\":1,\"tasks_per_node\":1,\"cpus_per_task\":1,\"time_s\":600,\"account\":\"acc\","
          "\"qos\":\"low\",\"signal_lead_s\":120,\"requeue\":true,\"extra\":[\"--exclusive\"]}" },
        { COMMAND "\"axes\":{\"hardware\":\"cpu\",\"time\":600,\"sbatch\":\"--signal=USR1@90\"}",
          "{\"name\":\"t-1\",\"nodes\":1,\"tasks_per_node\":1,\"cpus_per_task\":1,\"time_s\":600,\"account\":\"acc\","
          "\"qos\":\"low\",\"signal_lead_s\":90,\"requeue\":true,\"extra\":[\"--exclusive\"]}" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_plan *plan = plan_of(cases[i].members);
        char *job;

        assert_int_equal(plan->n, 1);
        job = job_text(&plan->items[0]);
        assert_string_equal(job, cases[i].want);
        free(job);
        hg_plan_free(plan);
    }
}

static void test_cells_that_ask_for_the_same_share_a_batch(void **state)
{
    /* 2 shapes x 2 rungs; epochs and the size of a model are no resources */
    struct hg_plan *plan =
        plan_of(COMMAND "\"axes\":{\"epochs\":[1,2,3],\"size\":[1,2],\"nodes\":[1,2]},"
                        "\"derive\":{\"time\":\"500 * .epochs\"}");
    size_t cells = 0;

    (void)state;
    assert_int_equal(plan->n, 6);
    for (size_t i = 0; i < plan->n; i++) {
        assert_int_equal(plan->items[i].n, 2);
        assert_int_equal(plan->items[i].number, i + 1);
        cells += plan->items[i].n;
    }
    assert_int_equal(cells, plan->cells);
    assert_true(plan->items[0].time_s == 600);
    assert_true(plan->items[2].time_s == 1200);
    assert_true(plan->items[4].time_s == 1500); /* the longest asked for, not 30 minutes */
    assert_int_equal(plan->items[1].devices, 2);
    hg_plan_free(plan);
}

/* ---- Saved plans ---- */

static struct hg_plan *save_and_load(struct hg_plan *plan, const struct hg_matrix *m,
                                     const char *folder)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_plan *loaded;

    mkdir(folder, 0700);
    assert_int_equal(hg_plan_save(plan, m, folder, &err), 0);
    loaded = hg_plan_load(folder, &err);
    if (!loaded)
        fail_msg("%s", err.text);
    return loaded;
}

static void expect_same(const struct hg_batch *a, const struct hg_batch *b)
{
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        assert_string_equal(a->ids[i], b->ids[i]);
    assert_true(json_equal(a->job, b->job));
    assert_true(a->time_s == b->time_s);
    assert_int_equal(a->devices, b->devices);
    assert_string_equal(a->hardware, b->hardware);
    assert_string_equal(a->shape, b->shape);
}

static void test_a_plan_that_was_saved_is_loaded_as_it_was(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"nodes\":[1,2],\"epochs\":[1,2],\"time\":100}");
    struct hg_plan *plan = make(m, NULL), *loaded;
    char folder[128], script[160];

    (void)state;
    snprintf(folder, sizeof folder, "%s/saved", dir);
    loaded = save_and_load(plan, m, folder);
    assert_string_equal(loaded->name, plan->name);
    assert_string_equal(loaded->run_key, plan->run_key);
    assert_int_equal(loaded->cells, 4);
    assert_int_equal(loaded->n, plan->n);
    for (size_t i = 0; i < plan->n; i++)
        expect_same(&loaded->items[i], &plan->items[i]);
    snprintf(script, sizeof script, "%s/batches/2.sh", folder);
    assert_string_equal(json_string_value(json_object_get(loaded->items[1].job, "script")), script);
    assert_int_equal(access(script, X_OK), 0);
    hg_plan_free(loaded);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

/* Configurations by what their cells have in common, whatever the order of the rounds; each has runs 1 to max. */
static void test_adaptive_repeats_know_their_configuration(void **state)
{
    struct hg_matrix *m =
        load(COMMAND "\"axes\":{\"size\":[1,2],\"nodes\":[1,2]},\"shuffle\":7,\"derive\":{"
                     "\"seed\":\"1000 + .repeat\",\"tag\":\".seed * 2\"},"
                     "\"baseline\":{\"nodes\":4,\"size\":null},"
                     "\"repeats\":{\"until\":\"5%\",\"max\":6}");
    struct hg_plan *plan = make(m, NULL), *loaded;
    unsigned seen[6] = { 0 }; /* by configuration: bits of its runs */
    char folder[128];

    (void)state;
    snprintf(folder, sizeof folder, "%s/turns", dir);
    loaded = save_and_load(plan, m, folder);
    assert_int_equal(plan->n, 3);
    for (size_t b = 0; b < plan->n; b++) {
        const struct hg_batch *batch = &plan->items[b];

        assert_non_null(batch->turns);
        assert_int_equal(hg_batch_first(batch, &plan->repeats), batch->n / 2);
        for (size_t i = 0; i < batch->n; i++) {
            assert_in_range(batch->turns[i].configuration, 1, 5);
            seen[batch->turns[i].configuration] |= 1u << batch->turns[i].run;
            assert_memory_equal(&loaded->items[b].turns[i], &batch->turns[i], sizeof *batch->turns);
        }
    }
    for (int c = 1; c <= 5; c++)
        assert_int_equal(seen[c], 0x7e);
    hg_plan_free(loaded);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

/* A run that began with three repeats of each cell: they are the first ones. */
static void test_a_run_becomes_adaptive(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"size\":[1,2]},\"repeats\":3");
    struct hg_selector *size_1 = hg_selector_parse("size=1", NULL);
    struct hg_plan *plan = make(m, NULL), *grown, *again;
    struct hg_errs errs = HG_ERRS_INIT;

    (void)state;
    assert_null(plan->items[0].turns);
    hg_matrix_free(m);
    m = load(COMMAND "\"axes\":{\"size\":[1,2]},\"repeats\":{\"until\":0.05,\"min\":4,\"max\":5}");
    grown = make(m, plan);
    assert_int_equal(grown->n, 2);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(grown->items[0].turns[i].run, i / 2 + 1);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(grown->items[1].turns[i].run, i / 2 + 4);
    assert_int_equal(hg_batch_first(&grown->items[1], &grown->repeats), 2);
    again = hg_plan_make(m, size_1, grown, &errs); /* what is not selected now is still known */
    assert_non_null(again);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(again->items[0].turns[i].run, i / 2 + 1);
    hg_plan_free(again);
    hg_selector_free(size_1);
    hg_plan_free(grown);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void test_a_raised_limit_holds_for_submissions_to_come(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"nodes\":[1,2],\"epochs\":[1,2],\"time\":60}");
    struct hg_plan *plan = make(m, NULL), *loaded, *raised;
    struct hg_buf script = HG_BUF_INIT;
    char folder[128], path[160];

    (void)state;
    snprintf(folder, sizeof folder, "%s/raised", dir);
    loaded = save_and_load(plan, m, folder);
    hg_matrix_free(m);
    /* one node gets longer as a whole; of two nodes only one cell: an array has one limit, the longest */
    m = load(COMMAND
             "\"axes\":{\"nodes\":[1,2],\"epochs\":[1,2]},"
             "\"derive\":{\"time\":\"if .nodes == 1 or .epochs == 2 then 600 else 60 end\"}");
    raised = make(m, loaded);
    assert_int_equal(raised->n, 2);
    assert_int_equal(raised->cells, 4);
    assert_true(raised->items[0].time_s == 600 && raised->items[1].time_s == 600);
    assert_string_not_equal(raised->items[1].request, loaded->items[1].request);
    assert_string_equal(raised->items[0].ids[1], loaded->items[0].ids[1]);
    hg_plan_free(loaded);
    loaded = save_and_load(raised, m, folder);
    assert_int_equal(json_integer_value(json_object_get(loaded->items[0].job, "time_s")), 600);
    snprintf(path, sizeof path, "%s/batches/1.sh", folder);
    assert_int_equal(hg_fs_read(path, 65536, &script, NULL), 0);
    assert_non_null(strstr(hg_buf_str(&script), "#SBATCH --time=00:10:00\n"));
    hg_buf_done(&script);
    hg_plan_free(loaded);
    hg_plan_free(raised);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void test_a_matrix_that_grew_keeps_known_cells_where_they_are(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"nodes\":[1,2],\"epochs\":[1,2],\"time\":100}");
    struct hg_plan *plan = make(m, NULL), *loaded, *grown, *again;
    char folder[128];

    (void)state;
    snprintf(folder, sizeof folder, "%s/grown", dir);
    loaded = save_and_load(plan, m, folder);
    hg_matrix_free(m);
    /* another order, new epochs and another time for all */
    m = load(COMMAND "\"axes\":{\"epochs\":[3,2,1],\"nodes\":[2,1],\"time\":200}");
    grown = make(m, loaded);
    assert_string_equal(grown->run_key, plan->run_key);
    assert_int_equal(grown->n, 4);
    assert_int_equal(grown->cells, 6);
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            assert_string_equal(grown->items[i].ids[j], loaded->items[i].ids[j]);
    assert_int_equal(grown->items[2].n, 1);
    assert_int_equal(grown->items[3].number, 4);
    again = save_and_load(grown, m, folder);
    assert_int_equal(again->cells, 6);
    hg_plan_free(again);
    again = make(m, grown); /* nothing new */
    assert_int_equal(again->n, 4);
    hg_plan_free(again);
    hg_plan_free(grown);
    hg_plan_free(loaded);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void test_cells_that_share_a_job_ask_for_the_time_of_all(void **state)
{
    static const char rest[] = COMMAND "\"together\":[\"impl\"],\"axes\":{\"impl\":[\"a\",\"b\"],";
    char *first = hg_str_printf("%s\"size\":[1,2],\"time\":50}", rest),
         *second =
             hg_str_printf("%s\"size\":[2,3,1]},\"derive\":{\"time\":\"if .size == 1 then 150 "
                           "else 50 end\"}",
                           rest);
    struct hg_matrix *m = load(first);
    struct hg_plan *plan = make(m, NULL), *loaded, *same, *grown;
    char folder[128];

    (void)state;
    snprintf(folder, sizeof folder, "%s/together", dir);
    loaded = save_and_load(plan, m, folder);
    assert_true(loaded->n == 1 && loaded->items[0].together == 2 && loaded->items[0].time_s == 100);
    hg_ranges_add(&loaded->items[0].done, 1); /* what has ended is still part of its job */
    same = make(m, loaded);
    assert_false(same->items[0].renewed);
    hg_matrix_free(m);
    m = load(second);
    grown = make(m, loaded); /* a job of size 3 more, and that of size 1 takes longer */
    assert_true(grown->n == 2 && grown->items[0].renewed && grown->items[0].time_s == 300);
    assert_true(grown->items[1].n == 2 && grown->items[1].together == 2 &&
                grown->items[1].time_s == 120);
    assert_string_equal(grown->items[0].ids[3], loaded->items[0].ids[3]);
    hg_plan_free(grown);
    hg_plan_free(same);
    hg_plan_free(loaded);
    hg_plan_free(plan);
    hg_matrix_free(m);
    free(first);
    free(second);
}

static double bound_s(void *context, const json_t *members)
{
    (void)members;
    return *(double *)context;
}

/* What hg_plan_make gives if every cell is known to stay below so many seconds. */
static struct hg_plan *make_bounded(const char *members, double seconds,
                                    const struct hg_plan *known)
{
    struct hg_matrix *m = load(members);
    struct hg_plan *plan;

    m->auto_times = (struct hg_auto_times){ .bound_s = bound_s, .context = &seconds };
    plan = make(m, known);
    hg_matrix_free(m);
    return plan;
}

static void test_an_automatic_limit_is_kept_while_cells_wait(void **state)
{
    static const struct {
        const char *together;
        double first_s, later_s; /* of bounds of 400 and of 1000 s */
    } cases[] = { { "", 600, 1200 }, { "\"together\":[\"impl\"],", 900, 2700 } };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *members = hg_str_printf(
                 "%s%s\"axes\":{\"impl\":[\"a\",\"b\"],\"size\":[1,2],\"time\":", COMMAND,
                 cases[i].together),
             *fixed = hg_str_printf("%s50}", members),
             *first = hg_str_printf("%s\"auto\"}", members),
             *more =
                 hg_str_printf("%s\"auto\"},\"include\":[{\"impl\":\"a\",\"size\":3,"
                               "\"time\":\"auto\"},{\"impl\":\"b\",\"size\":3,\"time\":\"auto\"}]",
                               members);
        struct hg_plan *plan = make_bounded(first, 400, NULL),
                       *grown = make_bounded(more, 1000, plan),
                       *before = make_bounded(fixed, 0, NULL),
                       *after = make_bounded(first, 1000, before);

        assert_true(plan->n == 1 && plan->items[0].time_s == cases[i].first_s);
        assert_true(grown->n == 2 && !grown->items[0].renewed);
        assert_true(grown->items[0].time_s == cases[i].first_s);
        assert_true(grown->items[1].time_s == cases[i].later_s); /* new cells */
        assert_true(after->n == 1 && after->items[0].renewed && after->items[0].auto_time);
        assert_true(after->items[0].time_s == cases[i].later_s);
        hg_plan_free(plan);
        hg_plan_free(grown);
        hg_plan_free(before);
        hg_plan_free(after);
        free(members);
        free(fixed);
        free(first);
        free(more);
    }
}

static void test_a_line_of_the_cells_file_is_read_without_the_others(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"epochs\":{\"range\":[1,500]}}");
    struct hg_plan *plan = make(m, NULL);
    struct hg_err err = HG_ERR_INIT;
    char folder[128];

    (void)state;
    snprintf(folder, sizeof folder, "%s/lines", dir);
    hg_plan_free(save_and_load(plan, m, folder));
    for (size_t i = 0; i < 500; i += 499) {
        json_t *line = hg_plan_read_cell(folder, 1, i, &err);

        assert_string_equal(json_string_value(json_object_get(line, "id")), plan->items[0].ids[i]);
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(line, "cell"), "epochs")), i + 1);
        json_decref(line);
    }
    assert_null(hg_plan_read_cell(folder, 1, 500, &err));
    assert_int_equal(err.code, HG_E_NOTFOUND);
    assert_non_null(strstr(err.text, "/batches/1.cells.jsonl has no line 501"));
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void write_at(const char *path, const char *text, off_t at)
{
    int fd = open(path, O_WRONLY);

    assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
    close(fd);
}

static void test_an_index_that_does_not_fit_names_file_and_line(void **state)
{
    static const struct {
        bool in_index;
        off_t at;
        const char *text, *want;
    } cases[] = {
        { true, 16, "00x", "/batches/1.cells.idx:2: not the place of a cell" },
        { true, 31, " ", "/batches/1.cells.idx:2: not the place of a cell" },
        { true, 16, "999999999999999", "/batches/1.cells.idx:2: not the place of a cell" },
        { true, 16, "000000000000003", "/batches/1.cells.jsonl:2: not where 1.cells.idx says" },
        { true, 16, "000000000000000", "/batches/1.cells.jsonl:2: not where 1.cells.idx says" },
        { true, 32, "000000000009999", "/batches/1.cells.jsonl ends before its line 2 does" },
        { false, 9, "\n", NULL },
    };
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"epochs\":[1,2]}");

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_plan *plan = make(m, NULL);
        struct hg_err err = HG_ERR_INIT;
        char folder[128], path[200];
        json_t *line;

        snprintf(folder, sizeof folder, "%s/index-%zu", dir, i);
        hg_plan_free(save_and_load(plan, m, folder));
        snprintf(path, sizeof path, "%s/batches/1.cells.%s", folder,
                 cases[i].in_index ? "idx" : "jsonl");
        write_at(path, cases[i].text, cases[i].at);
        line = hg_plan_read_cell(folder, 1, 1, &err);
        if (cases[i].want) {
            assert_null(line);
            assert_non_null(strstr(err.text, cases[i].want));
        } else { /* the other line's damage */
            assert_non_null(line);
        }
        json_decref(line);
        hg_plan_free(plan);
    }
    hg_matrix_free(m);
}

static int count_cell(size_t line, const json_t *cell, void *context)
{
    (void)line;
    (void)cell;
    ++*(size_t *)context;
    return 0;
}

static void test_a_line_that_is_not_a_cell_is_an_error(void **state)
{
    static const char want[] = "/batches/1.cells.jsonl:1: not a cell: no id, or no members";
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"epochs\":[1,2]}");
    struct hg_plan *plan = make(m, NULL);
    struct hg_err err = HG_ERR_INIT, again = HG_ERR_INIT;
    char folder[128], path[200];
    size_t n = 0;

    (void)state;
    snprintf(folder, sizeof folder, "%s/no-cell", dir);
    hg_plan_free(save_and_load(plan, m, folder));
    snprintf(path, sizeof path, "%s/batches/1.cells.jsonl", folder);
    write_at(path, "{\"ix\"", 0);
    assert_int_equal(hg_plan_each_cell(folder, 1, count_cell, &n, &err), -1);
    assert_non_null(strstr(err.text, want));
    assert_int_equal(n, 0);
    assert_null(hg_plan_read_cell(folder, 1, 0, &again));
    assert_non_null(strstr(again.text, want));
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void test_a_plan_of_another_format_names_both_numbers_and_the_way_on(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"epochs\":[1,2]}");
    struct hg_plan *plan = make(m, NULL);
    struct hg_err err = HG_ERR_INIT;
    char folder[128], path[200];
    struct hg_buf text = HG_BUF_INIT;
    char *at;

    (void)state;
    snprintf(folder, sizeof folder, "%s/older", dir);
    snprintf(path, sizeof path, "%s/plan.json", folder);
    hg_plan_free(save_and_load(plan, m, folder));
    assert_int_equal(hg_fs_read(path, 1 << 20, &text, NULL), 0);
    at = strstr(text.data, "hpcgrid-plan/3");
    assert_non_null(at);
    at[strlen("hpcgrid-plan/")] = '2';
    assert_int_equal(hg_fs_replace(path, text.data, text.len, 0600, NULL), 0);
    assert_null(hg_plan_load(folder, &err));
    assert_int_equal(err.code, HG_E_INPUT);
    for (size_t i = 0; i < 3; i++)
        assert_non_null(
            strstr(err.text, (const char *[]){ "\"hpcgrid-plan/2\"", "\"hpcgrid-plan/3\"",
                                               "hpcgrid run MATRIX --new" }[i]));
    hg_buf_done(&text);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

static void test_a_plan_that_was_damaged_is_refused(void **state)
{
    struct hg_matrix *m = load(COMMAND "\"axes\":{\"epochs\":[1,2]}");
    struct hg_plan *plan = make(m, NULL);
    struct hg_err err = HG_ERR_INIT;
    char folder[128], path[200];

    (void)state;
    snprintf(folder, sizeof folder, "%s/damaged", dir);
    hg_plan_free(save_and_load(plan, m, folder));
    snprintf(path, sizeof path, "%s/batches/1.cells.jsonl", folder);
    assert_int_equal(truncate(path, 20), 0);
    assert_null(hg_plan_load(folder, &err));
    assert_non_null(strstr(err.text, "line 1 is not a cell"));
    assert_int_equal(truncate(path, 0), 0);
    err = (struct hg_err)HG_ERR_INIT;
    assert_null(hg_plan_load(folder, &err));
    assert_non_null(strstr(err.text, "has 0 cells, plan.json says 2"));
    err = (struct hg_err)HG_ERR_INIT;
    assert_null(hg_plan_load(dir, &err));
    assert_int_equal(err.code, HG_E_NOTFOUND);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

/* ---- Scripts ---- */

static void test_words_are_quoted_so_that_a_shell_reads_them_back(void **state)
{
    static const char *const parts[] = { "'",    "\"",
                                         "\\",   "$(touch /tmp/hg-canary)",
                                         "`id`", "\n",
                                         " ",    "\t",
                                         ";",    "&",
                                         "*",    "!",
                                         "~",    "\xe2\x88\x92",
                                         "-n",   "\x01" };
    struct hg_buf script = HG_BUF_INIT, want = HG_BUF_INIT, got = HG_BUF_INIT;
    char *path = hg_fs_join(dir, "quote.sh"), *out = hg_fs_join(dir, "quote.out"), *command;
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 2000; i++) { /* one shell for all of them */
        struct hg_buf word = HG_BUF_INIT;

        for (int j = 0; j <= i % 9; j++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            hg_buf_puts(&word, parts[(seed >> 33) % N_OF(parts)]);
        }
        hg_buf_puts(&script, "printf '%s\\0' ");
        hg_text_quote(hg_buf_str(&word), &script);
        hg_buf_puts(&script, "\n");
        hg_buf_append(&want, hg_buf_str(&word), word.len + 1);
        hg_buf_done(&word);
    }
    assert_int_equal(hg_fs_replace(path, script.data, script.len, 0600, NULL), 0);
    command = hg_str_printf("sh %s >%s", path, out);
    assert_int_equal(system(command), 0);
    assert_int_equal(hg_fs_read(out, 1 << 20, &got, NULL), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    hg_buf_done(&script);
    hg_buf_done(&want);
    hg_buf_done(&got);
    free(command);
    free(path);
    free(out);
}

static void test_a_script_carries_the_whole_job_in_its_header(void **state)
{
    struct hg_plan *plan =
        plan_of(COMMAND "\"axes\":{\"gpus_per_node\":2,\"time\":\"1-02:00:00\",\"repeat\":[1,2],"
                        "\"sbatch\":[[\"-x\",\"n1\",\"--mail-user=a b\"]],\"modules\":\"a/1 b\"}");
    struct hg_err err = HG_ERR_INIT;
    struct hg_buf script = HG_BUF_INIT;
    char *self = hg_fs_self(NULL);
    char *want = hg_str_printf(
        "#!/bin/bash\n#SBATCH --job-name=t-1\n#SBATCH --partition=gpu\n#SBATCH --nodes=1\n"
        "#SBATCH --ntasks-per-node=2\n#SBATCH --cpus-per-task=32\n#SBATCH --gres=gpu:a100:2\n"
        "#SBATCH --account=acc\n#SBATCH --constraint=x&y\n#SBATCH --mem=98304M\n#SBATCH --time=1-02:00:00\n"
        "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --exclusive\n#SBATCH -x n1\n"
        "#SBATCH --mail-user=\"a b\"\n#SBATCH --array=0-1\n#SBATCH --chdir=\"/r/it's\"\n"
        "#SBATCH --output=\"/r/it's/batches/1-%%A.out\"\n# t, batch 1: 2 cells, one per array index\n"
        "if ! command -v module >/dev/null; then\n    for f in /etc/profile.d/lmod.sh "
        "/etc/profile.d/modules.sh /usr/share/lmod/lmod/init/bash /usr/share/modules/init/bash; do\n"
        "        [ -r \"$f\" ] && . \"$f\" && break\n    done\nfi\n"
        "module load 'a/1' || {\n    export HPCGRID_ERROR='module load failed: ''a/1'\n"
        "    echo \"task ${SLURM_ARRAY_TASK_ID-0}: $HPCGRID_ERROR\" >&2\n}\n"
        "module load 'b' || {\n    export HPCGRID_ERROR='module load failed: ''b'\n"
        "    echo \"task ${SLURM_ARRAY_TASK_ID-0}: $HPCGRID_ERROR\" >&2\n}\n"
        "exec '%s' exec --run '/r/it'\\''s' --batch 1 \"$@\"\n",
        self);

    (void)state;
    assert_int_equal(hg_plan_script(plan, &plan->items[0], "/r/it's", &script, &err), 0);
    assert_string_equal(hg_buf_str(&script), want);
    hg_buf_clear(&script);
    assert_int_equal(hg_plan_script(plan, &plan->items[0], "/r/a\nb", &script, &err), -1);
    assert_non_null(strstr(err.text, "a control character in the value of --chdir"));
    hg_buf_done(&script);
    free(want);
    free(self);
    hg_plan_free(plan);
}

/* The whole script of the first batch, for this folder. */
static void assert_script_has(const char *axes, const char *folder, const char *line)
{
    struct hg_plan *plan = plan_of(axes);
    struct hg_buf script = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;

    assert_int_equal(hg_plan_script(plan, &plan->items[0], folder, &script, &err), 0);
    assert_non_null(strstr(hg_buf_str(&script), line));
    hg_buf_done(&script);
    hg_plan_free(plan);
}

static void test_a_header_is_quoted_where_sbatch_needs_it(void **state)
{
    struct hg_plan *plan = plan_of(COMMAND "\"axes\":{\"time\":600}");
    struct hg_buf script = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_script_has(COMMAND "\"axes\":{\"time\":600}", "/r/\"a\\b",
                      "#SBATCH --chdir=\"/r/\\\"a\\\\b\"\n");
    assert_script_has(COMMAND "\"axes\":{\"time\":600}", "/r/a@b.c", "#SBATCH --chdir=/r/a@b.c\n");
    assert_script_has(COMMAND "\"axes\":{\"time\":600,\"modules\":\"one/1\"}", "/r",
                      "\nmodule load 'one/1' || {\n");
    assert_int_equal(hg_plan_script(plan, &plan->items[0], "/r/\x7f", &script, &err), -1);
    hg_buf_done(&script);
    hg_plan_free(plan);
}

static void test_ten_thousand_cells_are_planned_at_once(void **state)
{
    struct hg_matrix *m = load(
        COMMAND
        "\"axes\":{\"nodes\":[1,2,4,8],\"epochs\":{\"range\":[1,25]},\"lr\":{\"range\":[1,100]}},"
        "\"derive\":{\"time\":\"60 * .epochs\"}");
    clock_t start = clock();
    struct hg_plan *plan = make(m, NULL);
    double cpu_s = (double)(clock() - start) / CLOCKS_PER_SEC;

    (void)state;
    assert_int_equal(plan->cells, 10000);
    assert_int_equal(plan->n, 4 * 8); /* 1 2 3 5 10 15 20 25 minutes */
    print_message("10,000 cells in %zu batches: %.3f s\n", plan->n, cpu_s);
    hg_plan_free(plan);
    hg_matrix_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_rounded_up_the_ladder_but_never_above_the_longest),
        cmocka_unit_test(test_a_job_asks_for_what_cell_and_site_say),
        cmocka_unit_test(test_cells_that_ask_for_the_same_share_a_batch),
        cmocka_unit_test(test_a_plan_that_was_saved_is_loaded_as_it_was),
        cmocka_unit_test(test_adaptive_repeats_know_their_configuration),
        cmocka_unit_test(test_a_run_becomes_adaptive),
        cmocka_unit_test(test_a_raised_limit_holds_for_submissions_to_come),
        cmocka_unit_test(test_a_matrix_that_grew_keeps_known_cells_where_they_are),
        cmocka_unit_test(test_cells_that_share_a_job_ask_for_the_time_of_all),
        cmocka_unit_test(test_an_automatic_limit_is_kept_while_cells_wait),
        cmocka_unit_test(test_a_line_of_the_cells_file_is_read_without_the_others),
        cmocka_unit_test(test_an_index_that_does_not_fit_names_file_and_line),
        cmocka_unit_test(test_a_line_that_is_not_a_cell_is_an_error),
        cmocka_unit_test(test_a_plan_of_another_format_names_both_numbers_and_the_way_on),
        cmocka_unit_test(test_a_plan_that_was_damaged_is_refused),
        cmocka_unit_test(test_words_are_quoted_so_that_a_shell_reads_them_back),
        cmocka_unit_test(test_a_script_carries_the_whole_job_in_its_header),
        cmocka_unit_test(test_a_header_is_quoted_where_sbatch_needs_it),
        cmocka_unit_test(test_ten_thousand_cells_are_planned_at_once),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
