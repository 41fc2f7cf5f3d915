/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "rundir/claim.h"

static bool sync_fails;

/* The linker's --wrap=fsync: of the code under test, too. */
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
    if (!sync_fails)
        return __real_fsync(fd);
    errno = EIO;
    return -1;
}

/* The path of a file in the folder, in a buffer that the next call uses again. */
static const char *at(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(hg_fs_replace(at(name), text, strlen(text), 0600, NULL), 0);
}

static void assert_text(const char *name, const char *want)
{
    struct hg_buf text = HG_BUF_INIT;

    assert_int_equal(hg_fs_read(at(name), 1 << 20, &text, NULL), 0);
    assert_string_equal(hg_buf_str(&text), want);
    hg_buf_done(&text);
}

static void put_owner(const char *name, const struct hg_owner *owner)
{
    json_t *json = json_object();
    char *text;

    hg_owner_encode(owner, json);
    text = json_dumps(json, 0);
    put(name, text);
    free(text);
    json_decref(json);
}

static void test_a_claim_says_whose_it_is_and_when_its_heart_beat(void **state)
{
    const struct timespec times[2] = { { 0, 0 }, { 1000, 750000000 } };
    struct hg_owner me;
    struct hg_claim claim;

    (void)state;
    hg_owner_self(&me);
    assert_false(hg_claim_read(dir, &claim));
    put_owner(HG_CLAIM_FILE, &me);
    assert_int_equal(utimensat(AT_FDCWD, at(HG_CLAIM_FILE), times, 0), 0);
    assert_true(hg_claim_read(dir, &claim));
    assert_memory_equal(&claim.who, &me, sizeof me);
    assert_true(claim.beat_s == 1000.75);
    assert_false(claim.taken);
    assert_false(claim.left);
    put(HG_CLAIM_LEFT, "{}");
    assert_true(hg_claim_read(dir, &claim));
    assert_true(claim.left);
}

static void test_a_claim_that_was_taken_over_is_one_of_a_dead_process(void **state)
{
    struct hg_claim_watch watch = { 0 };
    struct hg_owner me;
    struct hg_claim claim;

    (void)state;
    hg_owner_self(&me);
    put_owner(HG_CLAIM_TAKEN, &me);
    assert_true(hg_claim_read(dir, &claim));
    assert_true(claim.taken);
    assert_int_equal(claim.who.pid, getpid());
    assert_int_equal(hg_claim_life(&claim, &watch, 1, 30), HG_OWNER_DEAD);
    put_owner(HG_CLAIM_FILE, &me);
    assert_true(hg_claim_read(dir, &claim));
    assert_false(claim.taken);
    assert_int_equal(hg_claim_life(&claim, &watch, 1, 30), HG_OWNER_ALIVE);
}

/* Nobody may begin where a claim cannot be read. */
static void test_a_claim_that_cannot_be_read_exists(void **state)
{
    struct hg_claim claim;

    (void)state;
    put(HG_CLAIM_FILE, "{\"pid\": 1");
    assert_true(hg_claim_read(dir, &claim));
    assert_false(claim.taken);
    assert_int_equal(claim.who.pid, 0);
    assert_true(claim.beat_s > 0);
    assert_int_equal(unlink(at(HG_CLAIM_FILE)), 0);
    assert_int_equal(symlink("elsewhere", at(HG_CLAIM_FILE)), 0); /* ELOOP */
    assert_true(hg_claim_read(dir, &claim));
    assert_false(claim.taken);
    assert_true(claim.beat_s == 0);
}

static void test_a_heart_that_moves_is_alive_wherever_it_is(void **state)
{
    struct hg_claim claim = { .beat_s = 7 };
    struct hg_claim_watch watch = { 0 };

    (void)state;
    assert_int_equal(hg_claim_life(&claim, &watch, 10, 30), HG_OWNER_UNKNOWN);
    for (double now = 40; now <= 100; now += 30)
        assert_int_equal(hg_claim_life(&claim, &watch, now, 30), HG_OWNER_UNKNOWN);
    claim.beat_s = 8; /* what was counted before does not count any more */
    assert_int_equal(hg_claim_life(&claim, &watch, 130, 30), HG_OWNER_ALIVE);
    for (double now = 160; now <= 220; now += 30)
        assert_int_equal(hg_claim_life(&claim, &watch, now, 30), HG_OWNER_UNKNOWN);
    assert_int_equal(hg_claim_life(&claim, &watch, 250, 30), HG_OWNER_DEAD);
}

static void test_a_heartbeat_tells_whether_the_attempt_was_taken(void **state)
{
    const struct timespec times[2] = { { 0, 0 }, { 1000, 0 } };
    struct stat st;

    (void)state;
    put(HG_CLAIM_FILE, "{}");
    assert_int_equal(utimensat(AT_FDCWD, at(HG_CLAIM_FILE), times, 0), 0);
    assert_true(hg_claim_beat(dir));
    assert_int_equal(stat(at(HG_CLAIM_FILE), &st), 0);
    assert_true(st.st_mtim.tv_sec > 1000);
    put(HG_CLAIM_TAKEN, "{}"); /* of an attempt that was claimed again */
    assert_true(hg_claim_beat(dir));
    assert_int_equal(unlink(at(HG_CLAIM_FILE)), 0);
    assert_false(hg_claim_beat(dir));
    assert_int_equal(unlink(at(HG_CLAIM_TAKEN)), 0);
    assert_true(hg_claim_beat(dir)); /* the folder was emptied, but by no copy */
    assert_true(hg_claim_beat("/nonexistent"));
}

static void test_a_claims_blocks_can_hold_a_result(void **state)
{
    struct stat claim, result;

    (void)state;
    put(HG_CLAIM_FILE, "0123456789");
    assert_int_equal(hg_claim_use(dir, "result\n", 7, "result.json", NULL), 0);
    assert_text("result.json", "result\n");
    assert_int_equal(stat(at(HG_CLAIM_FILE), &claim), 0);
    assert_int_equal(stat(at("result.json"), &result), 0);
    assert_int_equal(claim.st_ino, result.st_ino);
    put(HG_CLAIM_FILE, "0123456");
    assert_int_equal(hg_claim_use(dir, "another", 7, "fits.json", NULL), 0);
}

static void test_a_claims_blocks_are_left_where_they_cannot_hold_it(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    char want[256];

    (void)state;
    put(HG_CLAIM_FILE, "012");
    assert_int_equal(hg_claim_use(dir, "longer", 6, "result.json", &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    snprintf(want, sizeof want, "cannot write %s: No space left on device", at("result.json"));
    assert_string_equal(err.text, want);
    assert_text(HG_CLAIM_FILE, "012");
    assert_false(hg_fs_exists(at("result.json")));
    put("result.json", "there");
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_claim_use(dir, "new", 3, "result.json", &err), -1);
    assert_non_null(strstr(err.text, "File exists"));
    assert_text("result.json", "there");
    sync_fails = true;
    assert_int_equal(hg_claim_use(dir, "new", 3, "other.json", &err), -1);
    assert_false(hg_fs_exists(at("other.json")));
    sync_fails = false;
    assert_int_equal(unlink(at(HG_CLAIM_FILE)), 0);
    assert_int_equal(hg_claim_use(dir, "new", 3, "other.json", &err), -1);
}

static void test_who_is_alive_is_known_only_of_this_boot(void **state)
{
    static const struct {
        const char *what;
        enum hg_owner_life want;
    } cases[] = {
        { "", HG_OWNER_ALIVE },
        { "boot", HG_OWNER_DEAD }, /* this machine, booted since */
        { "boot machine", HG_OWNER_UNKNOWN },
        { "boot host", HG_OWNER_UNKNOWN },
        { "space", HG_OWNER_UNKNOWN },
        { "start", HG_OWNER_DEAD }, /* the number was given again */
        { "empty", HG_OWNER_UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_owner o;

        hg_owner_self(&o);
        if (strstr(cases[i].what, "boot"))
            o.boot[0] = 'x';
        if (strstr(cases[i].what, "machine"))
            o.machine[0] = 'x';
        if (strstr(cases[i].what, "host"))
            o.host[0] ^= 1;
        if (strstr(cases[i].what, "space"))
            o.pid_space[0] = 'x';
        if (strstr(cases[i].what, "start"))
            o.start_ticks++;
        if (strstr(cases[i].what, "empty"))
            o.boot[0] = '\0';
        if (!o.machine[0] && cases[i].want == HG_OWNER_DEAD && o.boot[0] == 'x')
            continue; /* this machine has no id */
        assert_int_equal(hg_owner_life(&o), cases[i].want);
    }
}

/* One that has died but has not been waited for is in /proc still. */
static void test_a_process_that_waits_to_be_reaped_is_dead(void **state)
{
    struct hg_owner o;
    siginfo_t info;
    int ready[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        hg_owner_self(&o);
        _exit(write(ready[1], &o, sizeof o) != sizeof o);
    }
    assert_int_equal(read(ready[0], &o, sizeof o), sizeof o);
    assert_int_equal(o.pid, pid);
    assert_true(o.start_ticks > 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(hg_owner_life(&o), HG_OWNER_DEAD);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(hg_owner_life(&o), HG_OWNER_DEAD);
    close(ready[0]);
    close(ready[1]);
}

static void test_a_name_is_got_once(void **state)
{
    struct hg_buf text = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    char tmp[128], path[128];
    struct stat made, st;

    (void)state;
    snprintf(tmp, sizeof tmp, "%s", at("tmp"));
    snprintf(path, sizeof path, "%s", at("name"));
    hg_buf_puts(&text, "mine");
    assert_int_equal(hg_owner_link(tmp, path, &text, 0640, &made, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_ino == made.st_ino && st.st_dev == made.st_dev);
    assert_int_equal(st.st_mode & 0777, 0640);
    hg_buf_puts(&text, " too");
    assert_int_equal(hg_owner_link(tmp, path, &text, 0640, &made, &err), 1);
    assert_text("name", "mine");
    assert_false(hg_fs_exists(tmp));
    assert_int_equal(err.code, 0);
    assert_int_equal(hg_owner_link(tmp, "/nonexistent/x", &text, 0640, &made, &err), -1);
    assert_string_equal(err.text, "cannot create /nonexistent/x: No such file or directory");
    assert_false(hg_fs_exists(tmp));
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(hg_owner_link("/nonexistent/x", path, &text, 0640, &made, &err), -1);
    assert_string_equal(err.text, "cannot write /nonexistent/x: No such file or directory");
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(unlink(path), 0);
    sync_fails = true;
    assert_int_equal(hg_owner_link(tmp, path, &text, 0640, &made, &err), -1);
    assert_false(hg_fs_exists(tmp));
    assert_false(hg_fs_exists(path));
    sync_fails = false;
    hg_buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(test_a_claim_says_whose_it_is_and_when_its_heart_beat),
        in_dir(test_a_claim_that_was_taken_over_is_one_of_a_dead_process),
        in_dir(test_a_claim_that_cannot_be_read_exists),
        cmocka_unit_test(test_a_heart_that_moves_is_alive_wherever_it_is),
        in_dir(test_a_heartbeat_tells_whether_the_attempt_was_taken),
        in_dir(test_a_claims_blocks_can_hold_a_result),
        in_dir(test_a_claims_blocks_are_left_where_they_cannot_hold_it),
        cmocka_unit_test(test_who_is_alive_is_known_only_of_this_boot),
        cmocka_unit_test(test_a_process_that_waits_to_be_reaped_is_dead),
        in_dir(test_a_name_is_got_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
