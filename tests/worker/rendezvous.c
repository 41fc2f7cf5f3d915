/* SPDX-License-Identifier: Apache-2.0 */
/* A rendezvous over TCP of processes of this machine: those that come, those that do not, and those that should not. */
#include "../unit/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/environment.h"

#define LONG_S 100 /* what a test that works never waits */
#define RANKS_MAX 8

/* What a child found: exit code 0, or 1 with its error in a pipe. */
struct child {
    pid_t pid;
    int out;
};

typedef int rank_fn(const struct wk_rendezvous_place *place, double limit_s, struct hg_err *err);

static struct child start_child(rank_fn *fn, struct wk_rendezvous_place place, int rank,
                                double limit_s)
{
    int ends[2];
    struct child c;

    assert_int_equal(pipe(ends), 0);
    place.rank = rank;
    c.pid = fork();
    if (c.pid == 0) {
        struct hg_err err = HG_ERR_INIT;
        int rc = fn(&place, limit_s, &err);

        if (rc < 0 && write(ends[1], err.text, strlen(err.text)) < 0)
            _exit(2);
        _exit(rc < 0);
    }
    close(ends[1]);
    c.out = ends[0];
    return c;
}

/* Exit code; what it said in text. */
static int end_child(struct child c, char text[1024])
{
    ssize_t n = 0, got;
    int status;

    while ((got = read(c.out, text + n, (size_t)(1023 - n))) > 0)
        n += got;
    text[n] = '\0';
    close(c.out);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct wk_rendezvous_place listen_here(int world, int *fd)
{
    struct wk_rendezvous_place place = { .world = world };
    struct hg_err err = HG_ERR_INIT;

    *fd = wk_rendezvous_listen(0, &place, &err);
    if (*fd < 0)
        fail_msg("%s", err.text);
    return place;
}

/* Something waits at the listener. */
static void await_guest(int listener)
{
    struct pollfd p = { .fd = listener, .events = POLLIN };

    assert_int_equal(poll(&p, 1, LONG_S * 1000), 1);
}

/* ---- Those that come ---- */

struct news {
    int rank, square;
};

static int exchange(struct wk_rendezvous *m, const struct wk_rendezvous_place *p,
                    struct hg_err *err)
{
    struct news all[RANKS_MAX] = { 0 };
    char word[200] = "";

    if (p->rank == 0)
        snprintf(word, sizeof word, "the id of a communicator");
    for (int round = 0; round < 20; round++) {
        if (wk_rendezvous_broadcast(m, word, sizeof word, err) < 0)
            return -1;
        if (strcmp(word, "the id of a communicator") != 0)
            return hg_err_set(err, HG_E_BUG, "rank %d got \"%s\"", p->rank, word);
        all[p->rank] = (struct news){ p->rank, p->rank * p->rank + round };
        if (wk_rendezvous_gather(m, all, sizeof *all, err) < 0)
            return -1;
        for (int r = 0; r < p->world; r++)
            if (all[r].rank != r || all[r].square != r * r + round)
                return hg_err_set(err, HG_E_BUG, "rank %d got %d of rank %d", p->rank,
                                  all[r].square, r);
    }
    return 0;
}

static int come_and_exchange(const struct wk_rendezvous_place *place, double limit_s,
                             struct hg_err *err)
{
    struct wk_rendezvous *m = wk_rendezvous_open(place, -1, limit_s, err);
    int rc = m ? exchange(m, place, err) : -1;

    wk_rendezvous_close(m);
    return rc;
}

static void test_ranks_meet_and_exchange_what_they_have(void **state)
{
    static const int worlds[] = { 1, 2, 3, 5, 8 };

    (void)state;
    for (size_t i = 0; i < N_OF(worlds); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct child children[RANKS_MAX];
        char said[1024];
        int fd;
        struct wk_rendezvous_place place = listen_here(worlds[i], &fd);
        struct wk_rendezvous *m;

        for (int r = 1; r < worlds[i]; r++)
            children[r] = start_child(come_and_exchange, place, r, LONG_S);
        m = wk_rendezvous_open(&place, fd, LONG_S, &err);
        if (!m || exchange(m, &place, &err) < 0)
            fail_msg("%s", err.text);
        for (int r = 1; r < worlds[i]; r++) {
            wk_rendezvous_who(m, r, said, sizeof said);
            assert_non_null(strstr(said, "(pid "));
            if (end_child(children[r], said) != 0)
                fail_msg("rank %d of %d: %s", r, worlds[i], said);
        }
        wk_rendezvous_close(m);
    }
}

static void test_ranks_that_come_first_wait_for_rank_0(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_rendezvous_place place;
    struct wk_rendezvous *m;
    struct child child;
    char said[1024];
    int fd;

    (void)state;
    place = listen_here(2, &fd); /* a port that is free */
    close(fd);
    child = start_child(come_and_exchange, place, 1, LONG_S);
    m = wk_rendezvous_open(&place, -1, LONG_S, &err);
    if (!m || exchange(m, &place, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(end_child(child, said), 0);
    wk_rendezvous_close(m);
}

/* ---- Those that do not come ---- */

static int come(const struct wk_rendezvous_place *place, double limit_s, struct hg_err *err)
{
    struct wk_rendezvous *m = wk_rendezvous_open(place, -1, limit_s, err);

    wk_rendezvous_close(m);
    return m ? 0 : -1;
}

static void test_all_learn_who_did_not_come(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct child child;
    char said[1024];
    int fd;
    struct wk_rendezvous_place place = listen_here(6, &fd);

    (void)state;
    child = start_child(come, place, 2, LONG_S);
    await_guest(fd);
    assert_null(wk_rendezvous_open(&place, fd, 2, &err));
    assert_string_equal(err.text, "ranks 1, 3-5 of 6 did not arrive within 2 s");
    assert_non_null(strstr(err.hint, "127.0.0.1"));
    assert_int_equal(end_child(child, said), 1);
    assert_string_equal(said, err.text);
}

static void test_a_rank_says_where_it_looked_for_rank_0(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    char expected[300];
    int fd;
    struct wk_rendezvous_place place = listen_here(2, &fd);

    (void)state;
    close(fd);
    place.rank = 1;
    snprintf(place.addresses, sizeof place.addresses, "127.0.0.1");
    assert_null(wk_rendezvous_open(&place, -1, 0.2, &err));
    snprintf(expected, sizeof expected,
             "rank 0 did not answer rank 1 at 127.0.0.1, port %d, within 0.2 s: Connection refused",
             place.port);
    assert_string_equal(err.text, expected);
}

static void test_a_rank_that_leaves_is_named(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct child child;
    struct wk_rendezvous *m;
    char said[1024], expected[100];
    int fd, all[2] = { 0 };
    struct wk_rendezvous_place place = listen_here(2, &fd);

    (void)state;
    child = start_child(come, place, 1, LONG_S);
    m = wk_rendezvous_open(&place, fd, LONG_S, &err);
    assert_non_null(m);
    assert_int_equal(wk_rendezvous_gather(m, all, sizeof *all, &err), -1);
    snprintf(expected, sizeof expected, "(pid %d) is gone: ", child.pid);
    assert_memory_equal(err.text, "rank 1 on ", 10);
    assert_non_null(strstr(err.text, expected));
    wk_rendezvous_close(m);
    assert_int_equal(end_child(child, said), 0);
}

/* ---- Those that should not come ---- */

static void test_ranks_that_contradict_each_other_are_refused(void **state)
{
    static const struct {
        int rank, world;
        const char *pattern, *end;
    } cases[] = {
        { 1, 4, "rank 1 on ", "expects 4 ranks, rank 0 expects 3" },
        { 7, 3, "a process on ", "claims to be rank 7 of 3" },
        { 0, 3, "a process on ", "claims to be rank 0 of 3" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct sockaddr_in at = { .sin_family = AF_INET };
        struct {
            char magic[8];
            uint64_t token;
            int32_t rank, world, pid, unused;
            char host[64];
        } card = { .rank = cases[i].rank, .world = cases[i].world, .host = "elsewhere" };
        int fd, other = socket(AF_INET, SOCK_STREAM, 0);
        struct wk_rendezvous_place place = listen_here(3, &fd);

        memcpy(card.magic, "hpcgrid1", 8);
        card.token = place.token;
        at.sin_port = htons((uint16_t)place.port);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(connect(other, (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(write(other, &card, sizeof card), sizeof card);
        assert_null(wk_rendezvous_open(&place, fd, LONG_S, &err));
        assert_memory_equal(err.text, cases[i].pattern, strlen(cases[i].pattern));
        assert_string_equal(err.text + strlen(err.text) - strlen(cases[i].end), cases[i].end);
        close(other);
    }
}

static void test_two_processes_cannot_be_one_rank(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct child children[2];
    char said[1024];
    int fd;
    struct wk_rendezvous_place place = listen_here(3, &fd);

    (void)state;
    for (int i = 0; i < 2; i++)
        children[i] = start_child(come, place, 1, LONG_S);
    assert_null(wk_rendezvous_open(&place, fd, LONG_S, &err));
    assert_memory_equal(err.text, "two processes claim to be rank 1: pid ", 38);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(end_child(children[i], said), 1);
        assert_string_equal(said, err.text);
    }
}

static void test_strangers_do_not_disturb_the_meeting(void **state)
{
    static const char *const words[] = { "", "GET / HTTP/1.1\r\n\r\n", "hpcgrid1 and a bit more" };
    struct hg_err err = HG_ERR_INIT;
    int fd, strangers[N_OF(words) + 1];
    char noise[300], said[1024];
    struct wk_rendezvous_place place = listen_here(2, &fd);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)place.port) };
    struct wk_rendezvous *m;
    struct child child;

    (void)state;
    memset(noise, 'x', sizeof noise);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (size_t i = 0; i < N_OF(strangers); i++) {
        const char *word = i < N_OF(words) ? words[i] : noise;
        size_t n = i < N_OF(words) ? strlen(word) : sizeof noise;

        strangers[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(strangers[i], (struct sockaddr *)&at, sizeof at), 0);
        assert_int_equal(write(strangers[i], word, n), (ssize_t)n);
    }
    child = start_child(come_and_exchange, place, 1, LONG_S);
    m = wk_rendezvous_open(&place, fd, LONG_S, &err);
    if (!m || exchange(m, &place, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(end_child(child, said), 0);
    wk_rendezvous_close(m);
    for (size_t i = 0; i < N_OF(strangers); i++)
        close(strangers[i]);
}

static void test_a_rank_of_another_job_is_not_admitted(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_rendezvous_place place, other;
    struct child child;
    char said[1024];
    int fd;

    (void)state;
    place = listen_here(2, &fd);
    other = place;
    other.token++;
    child = start_child(come, other, 1, 0.5);
    assert_null(wk_rendezvous_open(&place, fd, 3, &err));
    assert_string_equal(err.text, "rank 1 of 2 did not arrive within 3 s");
    assert_int_equal(end_child(child, said), 1);
    assert_non_null(strstr(said, "rank 0 did not answer rank 1 at "));
}

/* ---- Where they meet ---- */

static const char *const variables[] = {
    "RANK",         "WORLD_SIZE",           "MASTER_ADDR",          "MASTER_PORT",
    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",  "SLURM_JOB_NODELIST",
    "SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "HPCGRID_ATTEMPT"
};

static void set_environment(const char *words)
{
    char copy[500], *rest = NULL;

    for (size_t i = 0; i < N_OF(variables); i++)
        unsetenv(variables[i]);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(w, '=');

        *value = '\0';
        setenv(w, value + 1, 1);
    }
}

static void test_the_environment_says_where_ranks_meet(void **state)
{
    static const struct {
        const char *words;
        int rank, world;
        const char *addresses; /* or the error */
        int port;
    } cases[] = {
        { "", 0, 1, "", 0 },
        { "RANK=3 WORLD_SIZE=4 MASTER_ADDR=gpu01 MASTER_PORT=29500", 3, 4, "gpu01", 29500 },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n[07-09] SLURM_JOB_ID=1234567",
          1, 2, "n07", 19567 },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_NODELIST=a,b SLURM_JOB_ID=42 "
          "MASTER_PORT=777",
          1, 2, "a", 777 },
        { "RANK=1 WORLD_SIZE=2", 1, 2,
          "rank 1 of 2 has no rendezvous address: neither MASTER_ADDR nor "
          "SLURM_STEP_NODELIST is set",
          -1 },
        { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=x", 1, 2,
          "rank 1 of 2 has no rendezvous address: neither MASTER_PORT nor "
          "SLURM_JOB_ID is set",
          -1 },
        { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=x MASTER_PORT=70000", 1, 2,
          "MASTER_PORT is \"70000\", not a port from 1 to 65535", -1 },
        { "RANK=2 WORLD_SIZE=2", 2, 2, "the environment says rank 2, but the world has 2 ranks",
          -1 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_rendezvous_place p;

        set_environment(cases[i].words);
        if (cases[i].port < 0) {
            assert_int_equal(wk_rendezvous_find(&p, &err), -1);
            assert_string_equal(err.text, cases[i].addresses);
            continue;
        }
        assert_int_equal(wk_rendezvous_find(&p, &err), 0);
        assert_int_equal(p.rank, cases[i].rank);
        assert_int_equal(p.world, cases[i].world);
        assert_string_equal(p.addresses, cases[i].addresses);
        assert_int_equal(p.port, cases[i].port);
    }
}

static void test_the_token_is_that_of_the_job(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct wk_rendezvous_place a, b, c;

    (void)state;
    set_environment("RANK=0 WORLD_SIZE=2 MASTER_ADDR=x MASTER_PORT=1 SLURM_JOB_ID=5");
    assert_int_equal(wk_rendezvous_find(&a, &err), 0);
    set_environment("RANK=1 WORLD_SIZE=2 MASTER_ADDR=x MASTER_PORT=1 SLURM_JOB_ID=5");
    assert_int_equal(wk_rendezvous_find(&b, &err), 0);
    set_environment("RANK=1 WORLD_SIZE=2 MASTER_ADDR=x MASTER_PORT=1 SLURM_JOB_ID=6");
    assert_int_equal(wk_rendezvous_find(&c, &err), 0);
    assert_true(a.token == b.token);
    assert_true(a.token != c.token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_meet_and_exchange_what_they_have),
        cmocka_unit_test(test_ranks_that_come_first_wait_for_rank_0),
        cmocka_unit_test(test_all_learn_who_did_not_come),
        cmocka_unit_test(test_a_rank_says_where_it_looked_for_rank_0),
        cmocka_unit_test(test_a_rank_that_leaves_is_named),
        cmocka_unit_test(test_ranks_that_contradict_each_other_are_refused),
        cmocka_unit_test(test_two_processes_cannot_be_one_rank),
        cmocka_unit_test(test_strangers_do_not_disturb_the_meeting),
        cmocka_unit_test(test_a_rank_of_another_job_is_not_admitted),
        cmocka_unit_test(test_the_environment_says_where_ranks_meet),
        cmocka_unit_test(test_the_token_is_that_of_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
