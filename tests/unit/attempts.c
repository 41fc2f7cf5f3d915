/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "rundir/attempts.h"
#include "rundir/claim.h"
#include "rundir/attempt_find.h"

static const struct hg_rundir rd = { .path = dir, .number = 1 };

/* Make an attempt's folder with these files. */
static void make(int batch, size_t line, const char *id, unsigned submission, unsigned restarts,
                 const char *const *files)
{
    char *path = hg_attempt_dir(&rd, batch, line, id, submission, restarts);

    assert_int_equal(hg_fs_mkdirs(path, 0700, NULL), 0);
    for (; *files; files++) {
        char *file = hg_fs_join(path, *files);

        assert_int_equal(hg_fs_replace(file, *files, strlen(*files), 0600, NULL), 0);
        free(file);
    }
    free(path);
}

static void test_a_folder_holds_the_attempts_at_250_lines_of_a_batch(void **state)
{
    static const struct {
        int batch;
        size_t line;
        const char *want;
    } cases[] = {
        { 1, 0, "cells/1-000/c.2.0" },         { 1, 249, "cells/1-000/c.2.0" },
        { 1, 250, "cells/1-001/c.2.0" },       { 7, 99999, "cells/7-399/c.2.0" },
        { 12, 999999, "cells/12-3999/c.2.0" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *path = hg_attempt_dir(&rd, cases[i].batch, cases[i].line, "c", 2, 0);

        assert_string_equal(path + strlen(dir) + 1, cases[i].want);
        free(path);
    }
}

static void test_names_are_read_only_as_they_are_written(void **state)
{
    static const struct {
        const char *name, *id; /* NULL: no attempt's */
        unsigned submission, restarts;
    } cases[] = {
        { "c-1.2.3", "c-1", 2, 3 },
        { "bert.v1.5-ab.10.0", "bert.v1.5-ab", 10, 0 },
        { "1.2.3.4", "1.2", 3, 4 },
        { "c.01.0", NULL, 0, 0 },
        { "c.1", NULL, 0, 0 },
        { ".1.0", NULL, 0, 0 },
        { "1.0", NULL, 0, 0 },
        { "..1.0", NULL, 0, 0 },
        { "c.1.0.tmp", NULL, 0, 0 },
        { "c.-1.0", NULL, 0, 0 },
        { "c d.1.0", NULL, 0, 0 },
        { "", NULL, 0, 0 },
        { "c.1.0x", NULL, 0, 0 },
        { "c..0", NULL, 0, 0 },
        { "c.1.9999999999", NULL, 0, 0 },
    };
    static const char *const no_groups[] = { "1-00",   "1-0000", "0-000",          "1-000x",
                                             "-1-000", "1--01",  "01-000",         "1",
                                             "",       "c-000",  "1-000.tar.tmp.7" };
    unsigned submission, restarts;
    size_t n, number;
    bool pack;
    int batch;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        bool is = hg_attempt_name_parse(cases[i].name, &n, &submission, &restarts);

        if (is != (cases[i].id != NULL))
            fail_msg("%s", cases[i].name);
        if (!is)
            continue;
        assert_int_equal(n, strlen(cases[i].id));
        assert_int_equal(submission, cases[i].submission);
        assert_int_equal(restarts, cases[i].restarts);
    }
    for (size_t i = 0; i < N_OF(no_groups); i++)
        if (hg_attempt_group_parse(no_groups[i], &batch, &number, &pack))
            fail_msg("%s", no_groups[i]);
    assert_true(hg_attempt_group_parse("12-3999", &batch, &number, &pack));
    assert_int_equal(batch, 12);
    assert_int_equal(number, 3999);
    assert_false(pack);
    assert_true(hg_attempt_group_parse("2-007.tar", &batch, &number, &pack));
    assert_int_equal(number, 7);
    assert_true(pack);
}

static void test_one_listing_tells_of_all_cells_of_a_group_oldest_attempt_first(void **state)
{
    static const unsigned want[][2] = { { 0, 0 }, { 2, 0 }, { 2, 1 }, { 10, 0 } };
    static const char *const claimed[] = { "claim.json", NULL }, *const done[] = { "claim.json",
                                                                                   "result.json",
                                                                                   NULL };
    struct hg_attempt_group g = { .rd = &rd };
    struct hg_attempt_list list;

    (void)state;
    assert_int_equal(hg_attempt_list(&g, 1, 3, "b", &list, NULL), 0); /* nothing is there */
    assert_int_equal(list.n, 0);
    hg_attempt_group_forget(&g);
    make(1, 3, "b", 10, 0, claimed);
    make(1, 3, "b", 2, 1, claimed);
    make(1, 3, "b", 2, 0, done);
    make(1, 3, "b", 0, 0, done);
    make(1, 4, "b.2", 2, 0, done); /* b.2.2.0: an id that begins with the other's */
    make(1, 249, "a", 2, 0, claimed);
    make(1, 250, "b", 3, 0, claimed);
    make(2, 3, "b", 3, 0, claimed);
    assert_int_equal(hg_attempt_list(&g, 1, 3, "b", &list, NULL), 0);
    assert_int_equal(list.n, N_OF(want));
    for (size_t i = 0; i < list.n; i++) {
        assert_int_equal(list.items[i].submission, want[i][0]);
        assert_int_equal(list.items[i].restarts, want[i][1]);
        hg_attempt_look(&g, &list.items[i], NULL, NULL, NULL);
        assert_true(list.items[i].claim);
        assert_int_equal(list.items[i].result, i < 2);
    }
    make(1, 5, "late", 1, 0, claimed); /* the group is not read again before it is forgotten */
    assert_int_equal(hg_attempt_list(&g, 1, 5, "late", &list, NULL), 0);
    assert_int_equal(list.n, 0);
    assert_int_equal(hg_attempt_list(&g, 1, 4, "b.2", &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(hg_attempt_list(&g, 1, 250, "b", &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.items[0].submission, 3);
    assert_int_equal(hg_attempt_group_read(&g, "cells/1-000", NULL), 0);
    hg_attempt_group_find(&g, "late", &list);
    assert_int_equal(list.n, 1);
    hg_attempt_group_forget(&g);
}

static void test_a_file_is_read_or_there_is_none_or_it_is_wrong(void **state)
{
    static const char *const files[] = { "claim.json", "out.log", NULL };
    struct hg_attempt_group g = { .rd = &rd };
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_attempt_list list;
    char *path;

    (void)state;
    make(1, 0, "c", 1, 0, files);
    assert_int_equal(hg_attempt_list(&g, 1, 0, "c", &list, NULL), 0);
    assert_int_equal(hg_attempt_read(&g, list.items, "out.log", 7, &text, &err), 0);
    assert_string_equal(text.data, "out.log");
    assert_int_equal(hg_attempt_read(&g, list.items, "out.log", 6, &text, &err), -1);
    assert_non_null(strstr(err.text, "/cells/1-000/c.1.0/out.log is larger than 6 bytes"));
    assert_int_equal(hg_attempt_read(&g, list.items, "err.log", 7, &text, &err), HG_ATTEMPT_NONE);
    for (int quick = 0; quick < 2; quick++) {
        g.quick = quick;
        list.items->claim = false;
        assert_int_equal(hg_attempt_read_result(&g, list.items, 7, &text, &err), HG_ATTEMPT_NONE);
        assert_true(list.items->claim);
        assert_false(list.items->result);
    }
    err = (struct hg_err)HG_ERR_INIT;
    path = hg_attempt_path(&g, list.items, "result.json");
    assert_int_equal(mkfifo(path, 0600), 0); /* would wait for its writer */
    assert_int_equal(hg_attempt_read_result(&g, list.items, 7, &text, &err), -1);
    assert_non_null(strstr(err.text, "result.json: it is not a regular file"));
    free(path);
    hg_buf_done(&text);
    hg_attempt_group_forget(&g);
}

/* How many attempts at "c" there are. */
static size_t count(struct hg_attempt_group *g, int batch, size_t line)
{
    struct hg_attempt_list list;

    assert_int_equal(hg_attempt_list(g, batch, line, "c", &list, NULL), 0);
    return list.n;
}

static void test_who_has_the_lock_asks_only_for_what_one_listing_of_cells_has(void **state)
{
    static const char *const claimed[] = { "claim.json", NULL };
    struct hg_attempt_group g = { .rd = &rd, .locked = true }, any = { .rd = &rd };

    (void)state;
    assert_int_equal(count(&g, 1, 0), 0); /* no cells/ */
    make(1, 500, "c", 2, 0, claimed);
    make(12, 0, "c", 2, 0, claimed);
    assert_int_equal(count(&g, 1, 500), 0);
    hg_attempt_group_forget(&g);
    assert_int_equal(count(&g, 1, 500), 1);
    assert_int_equal(count(&g, 12, 0), 1);
    make(1, 750, "c", 2, 0, claimed);
    assert_int_equal(count(&g, 1, 750), 0);
    assert_int_equal(count(&any, 1, 750), 1);
    hg_attempt_group_forget(&g);
    assert_int_equal(count(&g, 1, 750), 1);
    hg_attempt_group_forget(&g);
    hg_attempt_group_forget(&any);
}

/* Two copies that came at a time have both left; a copy of a later submission met one that has ended since. */
static void test_a_copy_that_left_because_of_the_newest_attempt_is_known(void **state)
{
    static const char *const withdrawn[] = { "claim.taken.json", "left.json", NULL };
    static const char *const died[] = { "claim.json", NULL };
    struct hg_attempt_group g = { .rd = &rd };
    struct hg_attempt a;

    (void)state;
    make(1, 0, "both", 1, 0, withdrawn);
    make(1, 0, "both", 1, 1, withdrawn);
    make(1, 1, "older", 1, 0, withdrawn);
    make(1, 2, "later", 1, 0, withdrawn);
    make(1, 2, "later", 1, 1, died);
    assert_int_equal(hg_attempt_find(&g, 1, 0, "both", 1, NULL, &a, NULL), 0);
    assert_true(a.left && a.claimed && !a.open);
    assert_int_equal(hg_attempt_find(&g, 1, 1, "older", 2, NULL, &a, NULL), 0);
    assert_true(a.left && !a.claimed);
    assert_int_equal(hg_attempt_find(&g, 1, 2, "later", 1, NULL, &a, NULL), 0);
    assert_true(a.open && !a.left);
    hg_attempt_group_forget(&g);
}

static void test_a_result_that_cannot_be_read_is_not_a_bad_one(void **state)
{
    static const char *const bad[] = { "result.json", NULL };
    static const char *const begun[] = { "claim.json", NULL };
    struct hg_attempt_group g = { .rd = &rd };
    struct hg_err err = HG_ERR_INIT;
    struct hg_attempt a;
    char *folder, *result;

    (void)state;
    make(1, 0, "bad", 1, 0, bad);
    make(1, 1, "loop", 1, 0, begun);
    folder = hg_attempt_dir(&rd, 1, 1, "loop", 1, 0);
    result = hg_fs_join(folder, "result.json");
    assert_int_equal(symlink("result.json", result), 0); /* ELOOP, also for root */
    assert_int_equal(hg_attempt_find(&g, 1, 0, "bad", 1, NULL, &a, &err), 0);
    assert_true(!a.done && a.error[0]);
    assert_int_equal(hg_attempt_find(&g, 1, 1, "loop", 1, NULL, &a, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_non_null(strstr(err.text, "loop.1.0/result.json"));
    free(folder);
    free(result);
    hg_attempt_group_forget(&g);
}

/* While a file server does not answer, neither owner nor watcher can do anything. */
static void test_what_nobody_has_looked_at_has_not_been_silent(void **state)
{
    const struct hg_claim claim = { .beat_s = 7 };
    struct hg_claim_watch watch = { 0 };

    (void)state;
    assert_int_equal(hg_claim_life(&claim, &watch, 1000, 30), HG_OWNER_UNKNOWN);
    assert_int_equal(hg_claim_life(&claim, &watch, 1025, 30), HG_OWNER_UNKNOWN);
    assert_int_equal(hg_claim_life(&claim, &watch, 2000, 30), HG_OWNER_UNKNOWN);
    for (int s = 2025; s < 2065; s += 13)
        assert_int_equal(hg_claim_life(&claim, &watch, s, 30), HG_OWNER_UNKNOWN);
    assert_int_equal(hg_claim_life(&claim, &watch, 2090, 30), HG_OWNER_DEAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_folder_holds_the_attempts_at_250_lines_of_a_batch),
        cmocka_unit_test(test_names_are_read_only_as_they_are_written),
        in_dir(test_one_listing_tells_of_all_cells_of_a_group_oldest_attempt_first),
        in_dir(test_a_file_is_read_or_there_is_none_or_it_is_wrong),
        in_dir(test_who_has_the_lock_asks_only_for_what_one_listing_of_cells_has),
        in_dir(test_a_copy_that_left_because_of_the_newest_attempt_is_known),
        in_dir(test_a_result_that_cannot_be_read_is_not_a_bad_one),
        cmocka_unit_test(test_what_nobody_has_looked_at_has_not_been_silent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
