/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "rundir/events.h"
#include "rundir/journal.h"
#include "rundir/lock.h"

/* So many calls of link(2) are followed by one of a process that takes a higher number and dies. */
static int overtakers;

static void test_second_writer_learns_who_holds_it(void **state)
{
    struct hg_lock *lock = hg_lock_take(dir, "hpcgrid run x.json", false, 0, NULL);
    struct hg_lock_owner owner;
    struct hg_err err = HG_ERR_INIT;
    char want[64];

    (void)state;
    assert_non_null(lock);
    assert_null(hg_lock_take(dir, "second", false, 0, &err));
    assert_int_equal(err.code, HG_E_ENV);
    snprintf(want, sizeof want, "by process %ld on ", (long)getpid());
    assert_non_null(strstr(err.text, want));
    assert_non_null(strstr(err.text, "(hpcgrid run x.json)"));
    assert_int_equal(hg_lock_find(dir, &owner, NULL), 1);
    assert_int_equal(owner.who.pid, getpid());
    hg_lock_release(lock);
    assert_int_equal(hg_lock_find(dir, &owner, NULL), 0);
    lock = hg_lock_take(dir, "third", false, 7, NULL);
    assert_int_equal(hg_lock_number(lock), 8);
    hg_lock_release(lock);
}

/* Take the lock in a child that dies without releasing it. */
static void leave_stale_lock(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(hg_lock_take(dir, "dies", false, 0, NULL) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* The owner's record holds the beginning of the command, whatever its bytes are. */
static void test_any_command_can_hold_the_lock(void **state)
{
    char command[1024];
    size_t n = 0;

    (void)state;
    while (n < sizeof command - 4)
        n += (size_t)sprintf(command + n, "\xe2\x82\xac"); /* the euro sign */
    for (size_t shift = 0; shift < 3; shift++) {
        struct hg_lock *lock = hg_lock_take(dir, command + shift, false, 0, NULL);
        struct hg_lock_owner owner;

        assert_non_null(lock);
        assert_int_equal(hg_lock_find(dir, &owner, NULL), 1);
        assert_non_null(strstr(owner.command, "\xe2\x82\xac"));
        hg_lock_release(lock);
    }
}

static void test_lock_of_a_dead_process_is_taken_over(void **state)
{
    struct hg_lock_owner owner;
    struct hg_lock *lock;

    (void)state;
    leave_stale_lock();
    assert_int_equal(hg_lock_find(dir, &owner, NULL), 0);
    lock = hg_lock_take(dir, "heir", false, 0, NULL);
    assert_non_null(lock);
    assert_int_equal(hg_lock_number(lock), 2);
    hg_lock_release(lock);
}

static void test_lock_of_another_machine_is_only_stolen(void **state)
{
    static const char *const texts[] = {
        /* another machine */
        "{\"number\":1,\"host\":\"elsewhere\",\"pid\":1,\"start\":1,\"machine\":\"m\",\"boot\":\"b\","
        "\"pid_space\":\"p\",\"nonce\":\"n\",\"since\":1,\"command\":\"c\"}",
        "{}",
        "",
        "not json",
    };

    (void)state;
    for (size_t i = 0; i < N_OF(texts); i++) {
        char *path = hg_fs_join(dir, "lock.1");
        struct hg_lock *lock;

        assert_int_equal(hg_fs_replace(path, texts[i], strlen(texts[i]), 0644, NULL), 0);
        assert_null(hg_lock_take(dir, "honest", false, 0, NULL));
        lock = hg_lock_take(dir, "thief", true, 0, NULL);
        assert_non_null(lock);
        assert_int_equal(hg_lock_number(lock), 2);
        assert_false(hg_fs_exists(path));
        hg_lock_release(lock);
        free(path);
    }
}

static void test_a_holder_notices_that_it_was_robbed(void **state)
{
    struct hg_lock *old = hg_lock_take(dir, "old", false, 0, NULL), *thief;
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_int_equal(hg_lock_check(old, NULL), 0);
    thief = hg_lock_take(dir, "thief", true, 0, NULL);
    assert_non_null(thief);
    assert_int_equal(hg_lock_check(old, &err), -1);
    hg_lock_release(old); /* does not touch the thief's */
    assert_int_equal(hg_lock_check(thief, NULL), 0);
    hg_lock_release(thief);
}

static void put(const char *name, const char *text)
{
    char *path = hg_fs_join(dir, name);

    assert_int_equal(hg_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    free(path);
}

/* A lock of a process of this boot that is gone. */
static void put_dead(const char *name, const char *nonce)
{
    json_t *json = json_pack("{s:i,s:s,s:f,s:s}", "number", 1, "nonce", nonce, "since", 1e9,
                             "command", "gone");
    struct hg_owner who;
    char *text;

    hg_owner_self(&who);
    who.start_ticks++;
    hg_owner_encode(&who, json);
    text = json_dumps(json, 0);
    put(name, text);
    free(text);
    json_decref(json);
}

/* The linker's --wrap: of the code under test, too. */
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);

int __wrap_link(const char *from, const char *to)
{
    int rc = __real_link(from, to);
    const char *number = strrchr(to, '.') + 1;
    char name[32];

    if (rc == 0 && overtakers > 0) {
        overtakers--;
        snprintf(name, sizeof name, "lock.%d", atoi(number) + 1);
        put_dead(name, "n");
    }
    return rc;
}

static void test_who_is_overtaken_while_he_takes_it_tries_again(void **state)
{
    char *path = hg_fs_join(dir, "lock.1");
    struct hg_err err = HG_ERR_INIT;
    struct hg_lock *lock;

    (void)state;
    overtakers = 2;
    lock = hg_lock_take(dir, "slow", false, 0, NULL);
    assert_non_null(lock);
    assert_int_equal(hg_lock_number(lock), 5);
    assert_false(hg_fs_exists(path));
    assert_int_equal(hg_lock_check(lock, NULL), 0);
    hg_lock_release(lock);
    overtakers = 100000;
    assert_null(hg_lock_take(dir, "slow", false, 0, &err));
    overtakers = 0;
    assert_non_null(strstr(err.text, ": too many processes try to take its lock"));
    free(path);
}

static void assert_refused(const char *want)
{
    struct hg_err err = HG_ERR_INIT;
    char text[512];

    assert_null(hg_lock_take(dir, "another", false, 0, &err));
    assert_int_equal(err.code, HG_E_ENV);
    snprintf(text, sizeof text, "%s%s", dir, want);
    assert_string_equal(err.text, text);
}

static void test_who_holds_it_is_said_as_far_as_it_is_known(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_lock *lock;

    (void)state;
    put("lock.3", "{\"number\":3,\"host\":\"elsewhere\",\"pid\":17,\"boot\":\"b\",\"nonce\":\"n\","
                  "\"since\":1e9,\"command\":\"c\"}");
    assert_refused(" is being driven by process 17 on elsewhere since 2001-09-09T01:46:40Z (c)");
    put("lock.3", "x");
    assert_refused("/lock.3 is not a lock that hpcgrid wrote");
    put_dead("lock.3", ""); /* a person decides */
    assert_refused("/lock.3 is not a lock that hpcgrid wrote");
    put_dead("lock.3", "n");
    lock = hg_lock_take(dir, "heir", false, 1, NULL);
    assert_non_null(lock);
    assert_int_equal(hg_lock_number(lock), 4);
    hg_lock_release(lock);
    assert_null(hg_lock_take("/nonexistent", "x", false, 0, &err));
    assert_string_equal(err.text, "cannot read /nonexistent: No such file or directory");
    assert_int_equal(hg_lock_find("/nonexistent", &(struct hg_lock_owner){ 0 }, NULL), -1);
}

static void test_only_names_of_locks_count(void **state)
{
    static const char *const names[] = { "lock.0", "lock.02", "lock.2x", "lock.4294967296", "lock.",
                                         "lock",   "Lock.3",  "lock.-1", "lock.x" };
    struct hg_lock_owner owner;
    struct hg_lock *lock;

    (void)state;
    for (size_t i = 0; i < N_OF(names); i++)
        put(names[i], "{}");
    assert_int_equal(hg_lock_find(dir, &owner, NULL), 0);
    put_dead("lock.2", "n");
    put_dead("lock.10", "n");
    put_dead("lock.9", "n");
    lock = hg_lock_take(dir, "heir", false, 0, NULL);
    assert_int_equal(hg_lock_number(lock), 11);
    for (size_t i = 0; i < N_OF(names); i++) {
        char *path = hg_fs_join(dir, names[i]);

        assert_true(hg_fs_exists(path));
        free(path);
    }
    for (const char *const *name = (const char *const[]){ "lock.2", "lock.9", "lock.10", NULL };
         *name; name++) {
        char *path = hg_fs_join(dir, *name);

        assert_false(hg_fs_exists(path));
        free(path);
    }
    hg_lock_release(lock);
    put("lock.4294967295", "{}");
    assert_int_equal(hg_lock_find(dir, &owner, NULL), 1);
    assert_int_equal(owner.number, 4294967295u);
}

static void test_each_sign_of_a_thief_is_enough(void **state)
{
    struct hg_lock *lock = hg_lock_take(dir, "mine", false, 0, NULL);
    struct hg_err err = HG_ERR_INIT;
    struct stat st;
    char *path = hg_fs_join(dir, "lock.1"), *next = hg_fs_join(dir, "lock.2"), want[128];

    (void)state;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    put("lock.2", "{}"); /* ours is still there */
    assert_int_equal(hg_lock_check(lock, &err), -1);
    snprintf(want, sizeof want, "%s was taken over by another process", dir);
    assert_string_equal(err.text, want);
    assert_int_equal(unlink(next), 0);
    assert_int_equal(hg_lock_check(lock, NULL), 0);
    put("lock.1", "{}"); /* another file of this name */
    assert_int_equal(hg_lock_check(lock, NULL), -1);
    hg_lock_release(lock);
    assert_true(hg_fs_exists(path));
    assert_int_equal(unlink(path), 0);
    free(path);
    free(next);
}

static void test_a_folder_that_moved_is_told_from_a_thief(void **state)
{
    struct hg_lock *lock = hg_lock_take(dir, "mine", false, 0, NULL);
    struct hg_err err = HG_ERR_INIT;
    char moved[64], want[128];

    (void)state;
    snprintf(moved, sizeof moved, "%s.moved", dir);
    assert_int_equal(rename(dir, moved), 0);
    assert_int_equal(hg_lock_check(lock, &err), -1);
    snprintf(want, sizeof want, "%s is not there any more: was it moved?", dir);
    assert_string_equal(err.text, want);
    assert_int_equal(rename(moved, dir), 0);
    assert_int_equal(hg_lock_check(lock, NULL), 0);
    hg_lock_release(lock);
    hg_lock_release(NULL);
}

#define CROWD_LINES 60 /* what the crowd writes together; each dies at its fifth */

/* One process of the crowd: takes the lock as drivers do, and while it has it, nobody else may. */
static int crowd_member(const char *marker)
{
    int taken = 0;

    for (double end = hg_clock_mono_s() + 500; hg_clock_mono_s() < end;) {
        struct hg_run_state *s = hg_run_state_load(dir, NULL);
        bool enough = s && s->seq >= CROWD_LINES;
        struct hg_lock *lock = NULL;
        struct hg_journal *j;
        int fd;

        if (!enough)
            lock = hg_lock_take(dir, "crowd", false, s ? s->fence : 0, NULL);
        hg_run_state_free(s);
        if (enough)
            break;
        if (!lock)
            continue;
        j = hg_journal_open(dir, hg_lock_number(lock), hg_lock_check, lock, NULL);
        if (j) {
            fd = open(marker, O_CREAT | O_EXCL | O_WRONLY, 0600);
            if (fd < 0)
                return -1; /* two at once */
            close(fd);
            if (hg_journal_add(j, 1, "open", json_pack("{s:s}", "schema", "hpcgrid-events/1"),
                               NULL) < 0 ||
                hg_journal_commit(j, NULL) < 0)
                return -1;
            taken++;
            unlink(marker);
            hg_journal_close(j);
            if (taken % 5 == 0)
                return taken; /* without releasing it: the others must find out */
        }
        hg_lock_release(lock);
    }
    return taken;
}

static void test_of_twenty_processes_one_holds_it(void **state)
{
    char *marker = hg_fs_join(dir, "held");
    struct hg_run_state *s;
    uint64_t taken = 0;
    pid_t pids[20];

    (void)state;
    for (size_t i = 0; i < N_OF(pids); i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            int n = crowd_member(marker);

            _exit(n < 0 || n > 200 ? 255 : n);
        }
    }
    for (size_t i = 0; i < N_OF(pids); i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 255);
        taken += (uint64_t)WEXITSTATUS(status);
    }
    s = hg_run_state_load(dir, NULL);
    assert_non_null(s);
    assert_int_equal(s->seq, taken); /* nobody's line was lost, nobody wrote twice */
    assert_int_equal(s->deposed, 0);
    assert_true(taken >= CROWD_LINES);
    hg_run_state_free(s);
    free(marker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(test_second_writer_learns_who_holds_it),
        in_dir(test_any_command_can_hold_the_lock),
        in_dir(test_lock_of_a_dead_process_is_taken_over),
        in_dir(test_lock_of_another_machine_is_only_stolen),
        in_dir(test_a_holder_notices_that_it_was_robbed),
        in_dir(test_who_holds_it_is_said_as_far_as_it_is_known),
        in_dir(test_only_names_of_locks_count),
        in_dir(test_who_is_overtaken_while_he_takes_it_tries_again),
        in_dir(test_each_sign_of_a_thief_is_enough),
        in_dir(test_a_folder_that_moved_is_told_from_a_thief),
    };
    const struct CMUnitTest crowd[] = { in_dir(test_of_twenty_processes_one_holds_it) };
    int failed = cmocka_run_group_tests_name("lock", tests, NULL, NULL);

    return failed ? failed : cmocka_run_group_tests_name("crowd", crowd, NULL, NULL);
}
