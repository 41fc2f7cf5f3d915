/* SPDX-License-Identifier: Apache-2.0 */
/* The journal as a file; what its lines mean is in events.c. */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rundir/events.h"
#include "rundir/journal.h"

static char path[96];
static bool sync_fails, cut_fails, robbed;

/* The linker's --wrap: of the code under test, too. */
int __real_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
int __wrap_fsync(int fd);
int __wrap_ftruncate(int fd, off_t size);

int __wrap_fsync(int fd)
{
    errno = EIO;
    return sync_fails ? -1 : __real_fsync(fd);
}

int __wrap_ftruncate(int fd, off_t size)
{
    errno = EIO;
    return cut_fails ? -1 : __real_ftruncate(fd, size);
}

static int setup(void **state)
{
    sync_fails = cut_fails = robbed = false;
    if (make_dir(state) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/events.jsonl", dir);
    return 0;
}

static int guard(void *context, struct hg_err *err)
{
    return robbed ? hg_err_set(err, HG_E_ENV, "%s", (const char *)context) : 0;
}

static struct hg_journal *open_journal(uint32_t fence)
{
    static char said[] = "robbed";
    struct hg_journal *j = hg_journal_open(dir, fence, guard, said, NULL);

    assert_non_null(j);
    return j;
}

/* Queue one line: a plan with so many cells. */
static void plan(struct hg_journal *j, int cells)
{
    assert_int_equal(
        hg_journal_add(j, 1.23456, "plan", json_pack("{s:[i]}", "batches", cells), NULL), 0);
}

/* It failed, and said "BEFORE, the journal's path, BEHIND". */
static void assert_fails(int rc, const struct hg_err *err, const char *before, const char *behind)
{
    char text[256];

    snprintf(text, sizeof text, "%s%s%s", before, path, behind);
    assert_int_equal(rc, -1);
    assert_string_equal(err->text, text);
}

static off_t size(void)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void test_lines_count_once_they_are_written(void **state)
{
    struct hg_journal *j = open_journal(3);
    struct stat st;

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_true(hg_journal_is_empty(j));
    assert_int_equal(hg_journal_commit(j, NULL), 0); /* of nothing */
    assert_int_equal(size(), 0);
    plan(j, 2);
    plan(j, 5);
    assert_false(hg_journal_is_empty(j));
    assert_int_equal(hg_journal_state(j)->seq, 0);
    assert_int_equal(size(), 0);
    assert_int_equal(hg_journal_commit(j, NULL), 0);
    assert_true(hg_journal_is_empty(j));
    assert_int_equal(hg_journal_state(j)->seq, 2);
    assert_int_equal(hg_journal_state(j)->fence, 3);
    assert_true(hg_journal_state(j)->last_t == 1.235); /* milliseconds */
    assert_int_equal(hg_journal_state(j)->counts[HG_CELL_WAITING], 5);
    hg_journal_close(j);
    hg_journal_close(NULL);
}

static void test_a_line_that_cannot_be_written_never_was(void **state)
{
    struct hg_journal *j = open_journal(1);
    struct hg_err err = HG_ERR_INIT;
    off_t before;

    (void)state;
    plan(j, 1);
    assert_int_equal(hg_journal_commit(j, NULL), 0);
    before = size();
    sync_fails = true;
    plan(j, 2);
    assert_fails(hg_journal_commit(j, &err), &err, "cannot write ", ": Input/output error");
    assert_int_equal(size(), before);
    assert_true(hg_journal_is_empty(j));
    sync_fails = false;
    plan(j, 3); /* takes the same number */
    assert_int_equal(hg_journal_commit(j, NULL), 0);
    assert_int_equal(hg_journal_state(j)->seq, 2);
    hg_journal_close(j);
    j = open_journal(2);
    assert_int_equal(hg_journal_state(j)->counts[HG_CELL_WAITING], 3);
    hg_journal_close(j);
}

static void test_what_can_neither_be_written_nor_cut_off_ends_it(void **state)
{
    struct hg_journal *j = open_journal(1);
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    sync_fails = cut_fails = true;
    plan(j, 1);
    assert_int_equal(hg_journal_commit(j, NULL), -1);
    sync_fails = cut_fails = false;
    plan(j, 1);
    assert_fails(hg_journal_commit(j, &err), &err, "", " could not be written before");
    hg_journal_close(j);
}

static void test_two_writers_are_noticed(void **state)
{
    struct hg_journal *j = open_journal(1);
    struct hg_err err = HG_ERR_INIT;
    off_t before = size();

    (void)state;
    plan(j, 1);
    robbed = true;
    assert_int_equal(hg_journal_commit(j, &err), -1);
    assert_string_equal(err.text, "robbed");
    assert_int_equal(size(), before);
    robbed = false;
    assert_int_equal(truncate(path, 1), 0);
    err = (struct hg_err)HG_ERR_INIT;
    plan(j, 1);
    assert_fails(hg_journal_commit(j, &err), &err, "", " was changed by somebody else");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(unlink(path), 0);
    err = (struct hg_err)HG_ERR_INIT;
    plan(j, 1);
    assert_fails(hg_journal_commit(j, &err), &err, "", " was changed by somebody else");
    hg_journal_close(j);
    assert_int_equal(mkdir(path, 0700), 0);
    err = (struct hg_err)HG_ERR_INIT;
    assert_null(hg_journal_open(dir, 2, NULL, NULL, &err));
    assert_fails(-1, &err, "cannot write ", ": Is a directory");
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* nothing else was closed */
}

static void test_a_number_that_was_seen_opens_it_no_more(void **state)
{
    struct hg_journal *j = open_journal(4);
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    plan(j, 1);
    assert_int_equal(hg_journal_commit(j, NULL), 0);
    hg_journal_close(j);
    assert_null(hg_journal_open(dir, 4, NULL, NULL, &err));
    assert_int_equal(err.code, HG_E_AGAIN);
    assert_string_equal(err.text, "the journal has seen lock 4 already");
    hg_journal_close(open_journal(5));
}

static void test_a_torn_end_that_cannot_be_cut_off_is_no_beginning(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_journal *j;

    (void)state;
    setenv("HPCGRID_LOG", "error", 1);
    assert_int_equal(hg_fs_replace(path, "{\"seq\":1", 8, 0600, NULL), 0);
    cut_fails = true;
    assert_null(hg_journal_open(dir, 1, NULL, NULL, &err));
    assert_fails(-1, &err, "cannot repair ", ": Input/output error");
    assert_int_equal(size(), 8);
    cut_fails = false;
    j = open_journal(1);
    assert_false(hg_journal_state(j)->torn);
    hg_journal_close(j);
    assert_int_equal(size(), 0);
    assert_int_equal(hg_fs_replace(path, "damaged\n", 8, 0600, NULL), 0);
    assert_null(hg_journal_open(dir, 1, NULL, NULL, NULL));
}

static void test_a_name_that_is_not_on_the_disk_is_no_beginning(void **state)
{
    (void)state;
    sync_fails = true;
    assert_null(hg_journal_open(dir, 1, NULL, NULL, NULL));
}

static void test_a_record_that_is_no_text_is_refused(void **state)
{
    struct hg_journal *j = open_journal(1);
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(hg_journal_add(j, 1, "plan", json_pack("{s:s}", "x", "\xff"), &err), -1);
    assert_string_equal(err.text, "a record \"plan\" holds text that is not UTF-8");
    assert_true(hg_journal_is_empty(j));
    hg_journal_close(j);
}

#define journal_test(test) cmocka_unit_test_setup_teardown(test, setup, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        journal_test(test_lines_count_once_they_are_written),
        journal_test(test_a_line_that_cannot_be_written_never_was),
        journal_test(test_what_can_neither_be_written_nor_cut_off_ends_it),
        journal_test(test_two_writers_are_noticed),
        journal_test(test_a_number_that_was_seen_opens_it_no_more),
        journal_test(test_a_torn_end_that_cannot_be_cut_off_is_no_beginning),
        journal_test(test_a_name_that_is_not_on_the_disk_is_no_beginning),
        journal_test(test_a_record_that_is_no_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
