/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <signal.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/vec.h"
#include "cmd/notify.h"
#include "rundir/events.h"

static char dir[64];
static char command[256];
static struct hg_run_state *run;
static char warned[512];

static void keep_warning(const char *text)
{
    snprintf(warned, sizeof warned, "%s", text);
}

static int begin(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    strcpy(dir, "/tmp/hg-notify-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command,
             "echo \"$HPCGRID_EVENT|$HPCGRID_SUBJECT|$HPCGRID_CELL|$HPCGRID_OK $HPCGRID_BAD "
             "$HPCGRID_OPEN $HPCGRID_CELLS|$(head -1)\" >>%s/said",
             dir);
    run = hg_run_state_create();
    assert_int_equal(hg_run_state_apply(run, "plan", json_pack("{s:[i]}", "batches", 4), &err), 0);
    hg_log_set_level(HG_LOG_WARN);
    hg_log_on_warning(keep_warning);
    warned[0] = '\0';
    return 0;
}

static int end(void **state)
{
    (void)state;
    hg_run_state_free(run);
    return hg_fs_remove_tree(dir, NULL);
}

/* What a cell has become. */
static void become(size_t i, enum hg_cell_state state, const char *text)
{
    struct hg_run_cell *cell = &run->batches.items[0].cells[i];

    run->counts[cell->state]--;
    run->counts[state]++;
    cell->state = (uint8_t)state;
    cell->text = (uint32_t)run->texts.n;
    *HG_VEC_PUSH(&run->texts) = strdup(text);
}

static char prefix[] = "cell ";

static void name(void *context, int batch, size_t line, struct hg_buf *out)
{
    hg_buf_printf(out, "%s%d:%zu", (char *)context, batch, line);
}

static struct hg_notify *create(const char *with)
{
    return hg_notify_create(with, "/reports/squad/003", run, name, prefix);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines that the commands wrote, sorted: they run beside each other. */
static void assert_said(const char *want)
{
    struct hg_buf text = HG_BUF_INIT, sorted = HG_BUF_INIT;
    char *path = hg_fs_join(dir, "said"), *lines[16], *rest = NULL;
    struct hg_err err = HG_ERR_INIT;
    size_t n = 0;

    if (hg_fs_exists(path))
        assert_int_equal(hg_fs_read(path, 1 << 16, &text, &err), 0);
    for (char *p = strtok_r(text.data ? text.data : (char[]){ 0 }, "\n", &rest); p && n < 16;
         p = strtok_r(NULL, "\n", &rest))
        lines[n++] = p;
    qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++)
        hg_buf_printf(&sorted, "%s\n", lines[i]);
    assert_string_equal(hg_buf_str(&sorted), want);
    hg_buf_done(&text);
    hg_buf_done(&sorted);
    free(path);
}

static void test_each_event_is_told_once(void **state)
{
    struct hg_notify *n = create(command);

    (void)state;
    become(0, HG_CELL_PENDING, "Priority");
    hg_notify_look(n, run, 59);
    hg_notify_look(n, run, 61);
    hg_notify_look(n, run, 62);
    become(0, HG_CELL_OK, "");
    become(1, HG_CELL_FAILED, "exit code 3");
    become(2, HG_CELL_OOM, "");
    become(3, HG_CELL_PENDING, "JobHeldAdmin");
    hg_notify_look(n, run, 0);
    hg_notify_look(n, run, 61);
    hg_notify_look(n, run, 0);
    become(3, HG_CELL_REFUSED, "no such partition");
    hg_notify_look(n, run, 0);
    hg_notify_look(n, run, 0);
    hg_notify_end(n, run, NULL);
    assert_said(
        "attention|squad/003: Slurm has not answered for 61 s||0 0 4 4|squad/003: Slurm has not answered for 61 s\n"
        "attention|squad/003: Slurm has not answered for 61 s||1 2 1 4|squad/003: Slurm has not answered for 61 s\n"
        "attention|squad/003: cells wait for a person: JobHeldAdmin||1 2 1 4|squad/003: cells wait for a person: JobHeldAdmin\n"
        "attention|squad/003: refused cells: 1, no such partition||1 3 0 4|squad/003: refused cells: 1, no such partition\n"
        "end|squad/003: finished, 1 of 4 cells have a good result||1 3 0 4|squad/003: finished, 1 of 4 cells have a good result\n"
        "failure|squad/003: cell 1:1: failed: exit code 3|cell 1:1|1 2 1 4|squad/003: cell 1:1: failed: exit code 3\n");
    assert_string_equal(warned, "");
}

static void test_what_is_known_already_is_not_told(void **state)
{
    struct hg_notify *n;

    (void)state;
    become(0, HG_CELL_FAILED, "before");
    n = create(command);
    become(1, HG_CELL_FAILED, "now");
    become(2, HG_CELL_PENDING, "JobHeldUser");
    run->batches.items[0].cells[2].held = true;
    hg_notify_look(n, run, 0);
    hg_notify_end(n, run, ""); /* Ctrl-C */
    assert_said("");
    assert_null(create(NULL));
    hg_notify_look(NULL, run, 0);
    hg_notify_end(NULL, run, NULL);
}

static void test_a_command_that_fails_is_a_warning(void **state)
{
    (void)state;
    hg_notify_end(create("seq 1000; echo no route >&2; exit 3"), run,
                  "the journal cannot be written");
    assert_string_equal(warned, "--notify: exit code 3: no route");
    hg_notify_end(create("kill -TERM $$"), run, NULL);
    assert_non_null(strstr(warned, "signal 15"));
}

static void test_the_run_does_not_wait_for_a_command(void **state)
{
    struct hg_notify *n;
    char waiting[128], *path = hg_fs_join(dir, "go");
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    /* it ends when the second event is there, which a caller that waits never reaches */
    snprintf(waiting, sizeof waiting,
             "until [ -e %s ]; do sleep 0.02; done; echo $HPCGRID_EVENT >>%s/said", path, dir);
    n = create(waiting);
    become(0, HG_CELL_FAILED, "");
    hg_notify_look(n, run, 0);
    hg_notify_look(n, run, 90);
    become(0, HG_CELL_OK, "");
    for (size_t i = 1; i < 4; i++)
        become(i, HG_CELL_OK, "");
    hg_notify_over(n, run);
    hg_notify_look(n, run, 0);
    hg_notify_over(n, run);
    become(0, HG_CELL_WAITING, ""); /* it runs again */
    hg_notify_look(n, run, 0);
    become(0, HG_CELL_OK, "");
    hg_notify_over(n, run);
    assert_said("");
    assert_int_equal(hg_fs_replace(path, "", 0, 0600, &err), 0);
    hg_notify_end(n, run, "");
    assert_said("attention\nend\nend\nfailure\n");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_event_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_known_already_is_not_told, begin, end),
        cmocka_unit_test_setup_teardown(test_a_command_that_fails_is_a_warning, begin, end),
        cmocka_unit_test_setup_teardown(test_the_run_does_not_wait_for_a_command, begin, end),
    };

    return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
