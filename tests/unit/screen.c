/* SPDX-License-Identifier: Apache-2.0 */
/* screen/: what stands where, without a terminal. The run has 3 x 3 x 3 configurations of two repeats. */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/fs.h"
#include "plan/files.h"
#include "plan/plan.h"
#include "rundir/events.h"
#include "screen/scene.h"

static const char matrix[] =
    "{\"hpcgrid\":1,\"name\":\"t\",\"site\":{\"launcher\":\"srun\",\"hardware\":{\"cpu\":"
    "{\"partition\":\"cpu\",\"gpus_per_node\":0}}},\"workload\":{\"command\":[\"true\"]},"
    "\"axes\":{\"strategy\":[\"single\",\"ddp\",\"zero2\"],\"nodes\":[1,2,4],\"lr\":[0.1,1,10]},"
    "\"repeats\":2}";

static char dir[] = "/tmp/hg-screen-XXXXXX";
static struct hg_rundir rd = { .path = dir, .name = (char *)"t", .number = 1 };
static struct hg_board *board;
static struct hg_run_state *run;

static int make_run(void **unused)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_err err = HG_ERR_INIT;
    json_t *sizes = json_array();
    struct hg_matrix *m;
    struct hg_plan *plan;
    char *path;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    path = hg_fs_join(dir, "m.json");
    assert_int_equal(hg_fs_replace(path, matrix, strlen(matrix), 0600, NULL), 0);
    m = hg_matrix_load(path, NULL, &errs);
    plan = m ? hg_plan_make(m, NULL, NULL, &errs) : NULL;
    assert_true(plan && hg_plan_save(plan, m, dir, &err) == 0);
    for (size_t b = 0; b < plan->n; b++)
        json_array_append_new(sizes, json_integer((json_int_t)plan->items[b].n));
    run = hg_run_state_create();
    assert_int_equal(hg_run_state_apply(run, "plan", json_pack("{s:o}", "batches", sizes), &err),
                     0);
    board = hg_board_load(&rd, NULL, NULL, &err);
    assert_non_null(board);
    free(path);
    hg_plan_free(plan);
    hg_matrix_free(m);
    hg_errs_done(&errs);
    return 0;
}

static int remove_run(void **unused)
{
    (void)unused;
    hg_board_free(board);
    hg_run_state_free(run);
    return hg_fs_remove_tree(dir, NULL);
}

static struct hg_run_cell *cell_at(size_t row, size_t column)
{
    const struct hg_board_cell *cell = &board->cells[hg_board_at(board, row, column)];

    return hg_run_cell_find(run, cell->batch, cell->line);
}

static void set_state(size_t row, size_t column, enum hg_cell_state state)
{
    struct hg_run_cell *cell = cell_at(row, column);

    run->counts[cell->state]--;
    cell->state = (uint8_t)state;
    run->counts[state]++;
}

/* Two configurations are done, one has a failure, one runs and one waits in the queue; one is held. */
static void set_states(void)
{
    for (size_t row = 0; row < board->n_rows; row++)
        for (size_t column = 0; column < board->n_columns; column++) {
            cell_at(row, column)->held = false;
            set_state(row, column, HG_CELL_WAITING);
        }
    for (size_t column = 0; column < 4; column++)
        set_state(0, column, HG_CELL_OK);
    set_state(0, 4, HG_CELL_FAILED);
    set_state(0, 5, HG_CELL_OOM);
    set_state(1, 0, HG_CELL_RUNNING);
    set_state(1, 1, HG_CELL_RUNNING);
    set_state(1, 2, HG_CELL_PENDING);
    cell_at(3, 5)->held = true;
}

static struct hg_scene scene_of(void)
{
    static const struct hg_run_why whys[] = { { "Priority", 1 }, { "QOSMaxJobsLimit", 2 } };

    set_states();
    return (struct hg_scene){ .title = "t/001",
                              .elapsed = "3m 07s",
                              .board = board,
                              .state = run,
                              .whys = whys,
                              .n_whys = 2,
                              .eta = "≈ 12m 00s left: 48 × 30.0 s ÷ 2 at once",
                              .log = "one\ntwo\nthree\nfour\n",
                              .column = 4 };
}

static void expect(const struct hg_scene *s, int width, int height, bool utf8, const char *want)
{
    struct hg_canvas c;
    struct hg_buf text = HG_BUF_INIT;

    hg_canvas_init(&c, width, height, utf8);
    hg_scene_draw(s, &c);
    hg_canvas_text(&c, &text);
    assert_string_equal(hg_buf_str(&text), want);
    hg_buf_done(&text);
    hg_canvas_done(&c);
}

static void test_a_small_screen_has_all_of_it(void **unused)
{
    struct hg_scene s = scene_of();

    (void)unused;
    expect(&s, 60, 15, true,
           "t/001  3m 07s · submit 0 · poll 0 · cancel 0\n"
           "o 4  F 1  M 1  r 2  p 1  . 45  h 1\n"
           " 11 % █░░░░░░░░░░░░░░ 6/54  ≈ 12m 00s left: 48 × 30.0 s ÷ 2\n"
           "1 wait: others are before it (Priority); 1 more reason\n"
           "lr  nodes single ddp zero2\n"
           "0.1 1     oo     oo  FM\n"
           "0.1 2     rr     p.  ..\n"
           "0.1 4     ..     ..  ..\n"
           "1   1     ..     ..  .h\n"
           "1   2     ..     ..  ..\n"
           "── zero2 1x1 lr=0.1, run 1: failed ────────────── rows 1-5/9\n"
           "two\n"
           "three\n"
           "four\n"
           "? help  q quit  l log  / filter  h hold  r release  c cancel\n");
}

static void test_without_utf8_it_is_ascii(void **unused)
{
    struct hg_scene s = scene_of();

    (void)unused;
    s.log = "gr\xc3\xbc\xc3\x9f \xe4\xbd\xa0 dich\n";
    s.message = "hold: not to be submitted: 1; held in Slurm: 0";
    s.prompt = "only cells: nodes=1_";
    expect(&s, 60, 15, false,
           "t/001  3m 07s | submit 0 | poll 0 | cancel 0\n"
           "o 4  F 1  M 1  r 2  p 1  . 45  h 1\n"
           " 11 % #.............. 6/54  ~ 12m 00s left: 48 x 30.0 s / 2\n"
           "hold: not to be submitted: 1; held in Slurm: 0\n"
           "lr  nodes single ddp zero2\n"
           "0.1 1     oo     oo  FM\n"
           "0.1 2     rr     p.  ..\n"
           "0.1 4     ..     ..  ..\n"
           "1   1     ..     ..  .h\n"
           "1   2     ..     ..  ..\n"
           "-- zero2 1x1 lr=0.1, run 1: failed -------------- rows 1-5/9\n"
           "gr?? ?  dich\n"
           "\n\n"
           "only cells: nodes=1_\n");
}

static void test_a_large_screen_has_more_reasons_and_log(void **unused)
{
    struct hg_scene s = scene_of();
    struct hg_buf want = HG_BUF_INIT;

    (void)unused;
    s.column = 5;
    hg_buf_puts(&want,
                "t/001  3m 07s · submit 0 · poll 0 · cancel 0\n"
                "o ok 4  F failed 1  M oom 1  r running 2  p pending 1  . waiting 45  h held 1\n"
                " 11 % █████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 6/54  "
                "≈ 12m 00s left: 48 × 30.0 s ÷ 2 at once\n"
                "1 wait: others are before it (Priority)\n"
                "2 wait: a limit of the QOS is reached (QOSMaxJobsLimit)\n"
                "\n"
                "lr  nodes single ddp zero2\n"
                "0.1 1     oo     oo  FM\n"
                "0.1 2     rr     p.  ..\n"
                "0.1 4     ..     ..  ..\n"
                "1   1     ..     ..  .h\n"
                "1   2     ..     ..  ..\n"
                "1   4     ..     ..  ..\n"
                "10  1     ..     ..  ..\n"
                "10  2     ..     ..  ..\n"
                "10  4     ..     ..  ..\n"
                "── zero2 1x1 lr=0.1, run 2: oom ");
    for (int x = 32; x < 200; x++)
        hg_buf_puts(&want, "─");
    hg_buf_puts(&want, "\none\ntwo\nthree\nfour\n");
    for (int y = 21; y < 59; y++)
        hg_buf_puts(&want, "\n");
    hg_buf_puts(&want, "? help  q quit  l log  / filter  h hold  r release  c cancel  t retry  "
                       "m metric  s sort  x axes\n");
    expect(&s, 200, 60, true, hg_buf_str(&want));
    hg_buf_done(&want);
}

static void test_the_log_scrolls_back_to_its_first_line(void **unused)
{
    struct hg_scene s = scene_of();
    struct hg_buf log = HG_BUF_INIT;
    struct hg_canvas c;

    (void)unused;
    for (int i = 1; i <= 9; i++)
        hg_buf_printf(&log, "line %d\n", i);
    s.page = HG_SCENE_LOG;
    s.log = hg_buf_str(&log);
    s.log_back = 1000;
    expect(&s, 40, 10, true,
           "t/001  3m 07s · submit 0 · poll 0 · canc\n"
           "o 4  F 1  M 1  r 2  p 1  . 45  h 1\n"
           " 11 % █░░░░░░░░░ 6/54  ≈ 12m 00s left: 4\n"
           "1 wait: others are before it (Priority);\n"
           "── zero2 1x1 lr=0.1, run 1: failed ─────\n"
           "line 1\n"
           "line 2\n"
           "line 3\n"
           "line 4\n"
           "? help  q quit  l log  / filter  h hold\n");
    hg_canvas_init(&c, 40, 10, true);
    assert_int_equal(hg_scene_draw(&s, &c), 5); /* lines below */
    s.log_back = 2;
    assert_int_equal(hg_scene_draw(&s, &c), 2);
    hg_canvas_done(&c);
    hg_buf_done(&log);
}

static void test_the_page_with_the_cursor_is_shown(void **unused)
{
    struct hg_scene s = scene_of();

    (void)unused;
    while (hg_board_turn(board) && board->n_rows > 1) /* all keys in columns: 54 of them */
        ;
    assert_int_equal(board->n_columns, 54);
    s.row = 0;
    s.column = 41;
    expect(&s, 40, 10, true,
           "t/001  3m 07s · submit 0 · poll 0 · canc\n"
           "o 4  F 1  M 1  r 2  p 1  . 45  h 1\n"
           " 11 % █░░░░░░░░░ 6/54  ≈ 12m 00s left: 4\n"
           "1 wait: others are before it (Priority);\n"
           "10 1 zero2\n"
           "..............\n"
           "── zero2 1x1 lr=10, run columns 41-54/54\n"
           "three\n"
           "four\n"
           "? help  q quit  l log  / filter  h hold\n");
    assert_null(hg_board_turn(board)); /* as in the report again */
    assert_int_equal(board->n_rows, 9);
}

static void test_rows_are_sorted_by_any_axis(void **unused)
{
    struct hg_buf text = HG_BUF_INIT;

    (void)unused;
    assert_string_equal(hg_board_sort(board, false), "nodes");
    for (size_t row = 0; row < board->n_rows; row++)
        for (size_t k = 0; k < 2; k++) {
            hg_board_row_label(board, row, k, &text);
            hg_buf_puts(&text, k ? ";" : " ");
        }
    assert_string_equal(hg_buf_str(&text), "1 0.1;1 1;1 10;2 0.1;2 1;2 10;4 0.1;4 1;4 10;");
    assert_string_equal(hg_board_sort(board, false), "lr");
    assert_null(hg_board_sort(board, true)); /* there is only the strategy */
    hg_buf_done(&text);
}

static void test_values_of_a_metric_are_digits(void **unused)
{
    struct hg_scene s = scene_of();
    double heat[54];
    struct hg_canvas c;

    (void)unused;
    for (size_t i = 0; i < N_OF(heat); i++)
        heat[i] = NAN;
    heat[hg_board_at(board, 0, 0)] = 1;
    heat[hg_board_at(board, 0, 1)] = 2;
    heat[hg_board_at(board, 0, 2)] = 11;
    s.heat = heat;
    s.metric = "train_s";
    hg_canvas_init(&c, 60, 15, true);
    hg_scene_draw(&s, &c);
    assert_int_equal(c.marks[5 * 60 + 10].cp, '0');
    assert_int_equal(c.marks[5 * 60 + 10].ink, HG_INK_HEAT);
    assert_int_equal(c.marks[5 * 60 + 11].cp, '0');
    assert_int_equal(c.marks[5 * 60 + 17].cp, '9');
    assert_int_equal(c.marks[5 * 60 + 17].ink, HG_INK_HEAT + HG_HEATS - 1);
    assert_int_equal(c.marks[5 * 60 + 21].cp, 'F');
    assert_true(c.marks[5 * 60 + 21].cursor);
    hg_canvas_done(&c);
}

/* Draw it with the cursor at a place of the board, and look for what is under it. */
static void find_cursor(struct hg_scene *s, int width, int height)
{
    struct hg_canvas c;
    size_t row = 99, column = 99;
    int marks = 0;

    hg_canvas_init(&c, width, height, true);
    hg_scene_draw(s, &c);
    for (int i = 0; i < width * height; i++)
        if (c.marks[i].cursor) {
            marks++;
            assert_true(hg_scene_find(s, &c, i / width, i % width, &row, &column));
        }
    assert_int_equal(marks, 1);
    assert_int_equal(row, s->row);
    assert_int_equal(column, s->column);
    hg_canvas_done(&c);
}

static void test_the_place_under_the_mouse_is_found_where_it_is_drawn(void **unused)
{
    static const int sizes[][2] = { { 40, 10 }, { 60, 15 }, { 80, 24 }, { 200, 60 } };
    struct hg_scene s = scene_of();
    struct hg_canvas c;
    size_t row = 7, column = 7;

    (void)unused;
    do
        for (size_t i = 0; i < N_OF(sizes); i++)
            for (s.row = 0; s.row < board->n_rows; s.row++)
                for (s.column = 0; s.column < board->n_columns; s.column++)
                    find_cursor(&s, sizes[i][0], sizes[i][1]);
    while (hg_board_turn(board));
    s.row = s.column = 0;
    hg_canvas_init(&c, 60, 15, true);
    for (int i = 0; i < 60 * 15;
         i++) /* 5 rows from line 5, 3 groups of 2 columns behind the labels */
        assert_int_equal(hg_scene_find(&s, &c, i / 60, i % 60, &row, &column),
                         i / 60 >= 5 && i / 60 < 10 && i % 60 >= 10 && i % 60 < 27);
    s.page = HG_SCENE_LOG;
    assert_false(hg_scene_find(&s, &c, 6, 12, &row, &column));
    s.page = HG_SCENE_MAP;
    c.width = HG_SCENE_WIDTH_MIN - 1;
    assert_false(hg_scene_find(&s, &c, 6, 12, &row, &column));
    hg_canvas_done(&c);
}

/* Whatever its size: nothing is written outside, which the sanitizers see, and lines end in time. */
static void test_every_size_can_be_drawn(void **unused)
{
    struct hg_scene s = scene_of();

    (void)unused;
    s.message = "a message that is so long that it takes some lines of most of these screens";
    for (int page = HG_SCENE_MAP; page <= HG_SCENE_HELP; page++)
        for (int width = 1; width < 90; width += 3)
            for (int height = 1; height < 40; height += 3) {
                struct hg_canvas c;

                s.page = (enum hg_scene_page)page;
                s.row = (size_t)height % board->n_rows;
                s.log_back = (size_t)width % 7;
                hg_canvas_init(&c, width, height, width % 2);
                hg_scene_draw(&s, &c);
                hg_canvas_done(&c);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_screen_has_all_of_it),
        cmocka_unit_test(test_without_utf8_it_is_ascii),
        cmocka_unit_test(test_a_large_screen_has_more_reasons_and_log),
        cmocka_unit_test(test_the_log_scrolls_back_to_its_first_line),
        cmocka_unit_test(test_the_page_with_the_cursor_is_shown),
        cmocka_unit_test(test_rows_are_sorted_by_any_axis),
        cmocka_unit_test(test_values_of_a_metric_are_digits),
        cmocka_unit_test(test_the_place_under_the_mouse_is_found_where_it_is_drawn),
        cmocka_unit_test(test_every_size_can_be_drawn),
    };

    return cmocka_run_group_tests(tests, make_run, remove_run);
}
