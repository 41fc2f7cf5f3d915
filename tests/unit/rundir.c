/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rundir/rundir.h"

static void test_runs_are_numbered_behind_the_newest(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    char path[128];

    (void)state;
    for (int want = 1; want <= 3; want++) {
        assert_int_equal(hg_rundir_create(dir, "mnist", -1, &rd, &err), 0);
        assert_int_equal(rd.number, want);
        hg_rundir_done(&rd);
    }
    snprintf(path, sizeof path, "%s/mnist/041", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/mnist/99", dir); /* too short for a run */
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(hg_rundir_create(dir, "mnist", -1, &rd, &err), 0);
    assert_int_equal(rd.number, 42);
    hg_rundir_done(&rd);
    assert_int_equal(hg_rundir_newest(dir, "mnist", &rd, &err), 0);
    assert_int_equal(rd.number, 42);
    assert_string_equal(rd.name, "mnist");
    hg_rundir_done(&rd);
}

static void test_a_run_is_private_whatever_the_umask(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    struct stat st;
    mode_t old = umask(0);

    (void)state;
    assert_int_equal(hg_rundir_create(dir, "open", -1, &rd, &err), 0);
    umask(old);
    assert_int_equal(stat(rd.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    hg_rundir_done(&rd);
}

static void test_many_at_once_get_different_numbers(void **state)
{
    enum { PROCESSES = 8, EACH = 10 };
    struct hg_rundir rd;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() == 0) {
            for (int i = 0; i < EACH; i++)
                if (hg_rundir_create(dir, "race", -1, &rd, &err) < 0)
                    _exit(1);
            _exit(0);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;

        wait(&status);
        assert_int_equal(status, 0);
    }
    assert_int_equal(hg_rundir_newest(dir, "race", &rd, &err), 0);
    assert_int_equal(rd.number, PROCESSES * EACH);
    hg_rundir_done(&rd);
}

static void test_many_at_once_that_want_one_run_make_one(void **state)
{
    enum { PROCESSES = 8 };
    struct hg_rundir rd;
    struct hg_err err = HG_ERR_INIT;
    char path[128];
    int made = 0;

    (void)state;
    for (int p = 0; p < PROCESSES; p++)
        if (fork() == 0)
            _exit(hg_rundir_create(dir, "one", 0, &rd, &err));
    for (int p = 0; p < PROCESSES; p++) {
        int status;

        wait(&status);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        made += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(made, 1);
    assert_int_equal(hg_rundir_create(dir, "one", 0, &rd, &err), 1);
    assert_int_equal(hg_rundir_create(dir, "one", 1, &rd, &err), 0);
    assert_int_equal(rd.number, 2);
    hg_rundir_done(&rd);
    /* a file with a number is not a run, and takes its number */
    snprintf(path, sizeof path, "%s/one/003", dir);
    close(creat(path, 0600));
    assert_int_equal(hg_rundir_newest(dir, "one", &rd, &err), 0);
    assert_int_equal(rd.number, 2);
    hg_rundir_done(&rd);
    assert_int_equal(hg_rundir_create(dir, "one", 2, &rd, &err), 0);
    assert_int_equal(rd.number, 4);
    hg_rundir_done(&rd);
}

static void test_a_folder_that_everybody_can_write_is_refused(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    char path[128];

    (void)state;
    assert_int_equal(hg_rundir_create(dir, "loose", -1, &rd, &err), 0);
    assert_int_equal(chmod(rd.path, 0777), 0);
    snprintf(path, sizeof path, "%s", rd.path);
    hg_rundir_done(&rd);
    assert_int_equal(hg_rundir_find(dir, path, &rd, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_non_null(strstr(err.text, "can be written by everybody (mode 0777)"));
    assert_non_null(strstr(err.hint, "chmod o-w"));
}

/* Another user made it first: only dir can make that. */
static void test_a_way_that_another_user_may_have_made_is_refused(void **state)
{
    enum { OTHER = 12345 };
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    char shared[128], reports[160], name[192], run[224], link[160];

    (void)state;
    snprintf(shared, sizeof shared, "%s/shared", dir);
    snprintf(reports, sizeof reports, "%s/reports", shared);
    snprintf(name, sizeof name, "%s/m", reports);
    snprintf(run, sizeof run, "%s/001", name);
    snprintf(link, sizeof link, "%s/link", shared);
    assert_int_equal(mkdir(shared, 0700), 0);
    assert_int_equal(mkdir(reports, 0700), 0);
    assert_int_equal(chmod(shared, 0777), 0); /* not sticky: anybody may swap reports for another */
    assert_int_equal(hg_rundir_create(reports, "m", -1, &rd, &err), -1);
    assert_non_null(strstr(err.text, "everybody can replace"));
    assert_non_null(strstr(err.hint, "chmod o-w"));
    assert_int_equal(chmod(shared, 01777), 0);
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_rundir_create(reports, "m", -1, &rd, &err), 0);
    hg_rundir_done(&rd);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(reports, OTHER, OTHER), 0);
    assert_int_equal(hg_rundir_create(reports, "m", -1, &rd, &err), -1);
    assert_non_null(strstr(err.text, "reports belongs to user 12345, and everybody can create it"));
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_rundir_newest(reports, "m", &rd, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_int_equal(chown(reports, 0, 0), 0);
    assert_int_equal(symlink(reports, link), 0);
    assert_int_equal(hg_rundir_newest(link, "m", &rd, &err), 0); /* a link of one's own */
    hg_rundir_done(&rd);
    assert_int_equal(lchown(link, OTHER, OTHER), 0);
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_rundir_newest(link, "m", &rd, &err), -1);
    assert_non_null(strstr(err.text, "link belongs to user 12345"));
}

static void test_a_place_that_is_no_folder_names_the_place_and_the_next_step(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(hg_fs_replace(path, "x", 1, 0600, NULL), 0);
    assert_int_equal(hg_rundir_create(path, "x", -1, &rd, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.hint, "--reports DIR"));
}

static void test_what_the_user_writes_finds_the_run(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_rundir rd;
    char folder[128], matrix[128];
    const char *words[] = { "found", "found/1", "found/001", folder, matrix };

    (void)state;
    assert_int_equal(hg_rundir_create(dir, "found", -1, &rd, &err), 0);
    snprintf(folder, sizeof folder, "%s", rd.path);
    hg_rundir_done(&rd);
    snprintf(matrix, sizeof matrix, "%s/m.json", dir);
    assert_int_equal(hg_fs_replace(matrix, "{\"name\":\"found\"}", 16, 0600, NULL), 0);
    for (size_t i = 0; i < N_OF(words); i++) {
        assert_int_equal(hg_rundir_find(dir, words[i], &rd, &err), 0);
        assert_string_equal(rd.path, folder);
        assert_string_equal(rd.name, "found");
        assert_int_equal(rd.number, 1);
        hg_rundir_done(&rd);
    }
}

static void test_what_is_not_there_is_not_found(void **state)
{
    const char *words[] = { "nothing", "nothing/3", "no such/thing", "../etc" };

    (void)state;
    for (size_t i = 0; i < N_OF(words); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct hg_rundir rd;

        assert_int_equal(hg_rundir_find(dir, words[i], &rd, &err), -1);
        assert_int_equal(err.code, HG_E_NOTFOUND);
    }
}

static void test_a_path_in_the_run_is_formatted(void **state)
{
    char folder[] = "/a/b/001";
    struct hg_rundir rd = { .path = folder };
    char *path = hg_rundir_path(&rd, "batches/%d.sh", 7);

    (void)state;
    assert_string_equal(path, "/a/b/001/batches/7.sh");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_are_numbered_behind_the_newest),
        cmocka_unit_test(test_a_run_is_private_whatever_the_umask),
        cmocka_unit_test(test_many_at_once_get_different_numbers),
        cmocka_unit_test(test_many_at_once_that_want_one_run_make_one),
        cmocka_unit_test(test_a_folder_that_everybody_can_write_is_refused),
        cmocka_unit_test(test_a_way_that_another_user_may_have_made_is_refused),
        cmocka_unit_test(test_a_place_that_is_no_folder_names_the_place_and_the_next_step),
        cmocka_unit_test(test_what_the_user_writes_finds_the_run),
        cmocka_unit_test(test_what_is_not_there_is_not_found),
        cmocka_unit_test(test_a_path_in_the_run_is_formatted),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
