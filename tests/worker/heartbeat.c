/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats of ranks that are processes of this machine. Collectives are mock ones: a rank that enters one waits there for ever. */
#include "../unit/test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/fault.h"
#include "comm/heartbeat.h"

#define LONG_S 100 /* a limit that a test never reaches */
#define RANKS 3

enum { EXIT_VERDICT = 40, EXIT_OTHER = 41, EXIT_TWICE = 42 };

struct rank {
    struct wk_heartbeat *heartbeat;
    int rank, out; /* where its own verdict goes */
    bool written;
};

static void write_verdict(void *context, const struct wk_verdict *v)
{
    struct rank *r = context;

    if (r->written)
        _exit(EXIT_TWICE);
    r->written = true;
    if (write(r->out, v, sizeof *v) != sizeof *v)
        _exit(1);
}

static void end(void *context)
{
    const struct rank *r = context;

    _exit(r->written ? EXIT_VERDICT : EXIT_OTHER);
}

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

/* What one rank does; it may return, and ends with 0 then. */
typedef void story(struct rank *r);

static _Noreturn void live(const struct wk_rendezvous_place *place, int listener, double limit_s,
                           story *tell, int out)
{
    struct rank r = { .rank = place->rank, .out = out };
    struct wk_heartbeat_ends ends = { &r, write_verdict, end };
    struct hg_err err = HG_ERR_INIT;
    struct wk_rendezvous *m = wk_rendezvous_open(place, listener, LONG_S, &err);
    char all[RANKS] = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    r.heartbeat = m ? wk_heartbeat_start(m, r.rank, place->world, limit_s, &ends, &err) : NULL;
    if (!r.heartbeat) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
    (void)all;
    tell(&r);
    wk_heartbeat_stop(r.heartbeat);
    _exit(0);
}

struct cast {
    pid_t pids[RANKS];
    int status[RANKS];
    struct wk_verdict verdicts[RANKS]; /* those that were written; else n_missing -1 */
};

static void start(struct cast *p, double limit_s, story *tell, int outs[RANKS])
{
    struct wk_rendezvous_place place = { .world = RANKS };
    struct hg_err err = HG_ERR_INIT;
    int fd = wk_rendezvous_listen(0, &place, &err);

    if (fd < 0)
        fail_msg("%s", err.text);
    for (int r = 0; r < RANKS; r++) {
        int ends[2];

        assert_int_equal(pipe(ends), 0);
        place.rank = r;
        p->pids[r] = fork();
        if (p->pids[r] == 0)
            live(&place, r == 0 ? fd : -1, limit_s, tell, ends[1]);
        close(ends[1]);
        outs[r] = ends[0];
    }
    close(fd);
}

/* Tell the story with three ranks and wait for the end of those that are not stopped; then stopped ones are killed. */
static void run(struct cast *p, double limit_s, story *tell)
{
    int outs[RANKS];

    start(p, limit_s, tell, outs);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(waitpid(p->pids[r], &p->status[r], WUNTRACED), p->pids[r]);
    for (int r = 0; r < RANKS; r++) {
        if (WIFSTOPPED(p->status[r])) {
            kill(p->pids[r], SIGKILL);
            assert_int_equal(waitpid(p->pids[r], &p->status[r], 0), p->pids[r]);
        }
        if (read(outs[r], &p->verdicts[r], sizeof p->verdicts[r]) != sizeof p->verdicts[r])
            p->verdicts[r].n_missing = -1;
        close(outs[r]);
    }
}

static int code(const struct cast *p, int rank)
{
    return WIFEXITED(p->status[rank]) ? WEXITSTATUS(p->status[rank]) : -WTERMSIG(p->status[rank]);
}

/* The words of a rank's verdict, hosts and process numbers left out. */
static const char *words(const struct cast *p, int rank)
{
    static char out[1024]; /* as an error's text */
    char who[200], host[64] = "";
    const struct wk_verdict *v = &p->verdicts[rank];

    gethostname(host, sizeof host - 1);
    assert_true(v->n_missing >= 0);
    snprintf(out, sizeof out, "%s", v->err.text);
    for (int i = 0; i < v->n_missing; i++) {
        char *at;

        snprintf(who, sizeof who, " on %s (pid %d)", host, p->pids[v->missing[i].rank]);
        at = strstr(out, who);
        assert_non_null(at);
        memmove(at, at + strlen(who), strlen(at + strlen(who)) + 1);
    }
    return out;
}

static void enter(struct rank *r, long step, const char *coll)
{
    wk_heartbeat_phase(r->heartbeat, WK_PHASE_STEP, step);
    wk_heartbeat_enter(r->heartbeat, coll);
}

static void pass(struct rank *r, long step, const char *coll)
{
    enter(r, step, coll);
    wk_heartbeat_leave(r->heartbeat);
}

/* ---- Gone ---- */

static void rank_1_dies(struct rank *r)
{
    pass(r, 6, "broadcast");
    if (r->rank == 1)
        raise(SIGKILL);
    enter(r, 7, "all_reduce");
    wait_for_ever();
}

static void test_a_killed_rank_is_named_at_once(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_1_dies);
    assert_int_equal(code(&p, 0), EXIT_VERDICT);
    assert_int_equal(code(&p, 1), -SIGKILL);
    assert_int_equal(code(&p, 2), EXIT_OTHER);
    assert_string_equal(words(&p, 0), "rank 1 is gone, waited for in all_reduce of step 7");
    assert_int_equal(p.verdicts[0].missing[0].how, WK_HOW_GONE);
    assert_int_equal(p.verdicts[0].at.step, 7);
}

static void rank_0_dies(struct rank *r)
{
    if (r->rank == 0)
        raise(SIGKILL);
    enter(r, 3, "all_gather");
    wait_for_ever();
}

static void test_the_others_say_so_when_rank_0_is_killed(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_0_dies);
    for (int r = 1; r < RANKS; r++) {
        assert_int_equal(code(&p, r), EXIT_VERDICT);
        assert_string_equal(words(&p, r), "rank 0 is gone, waited for in all_gather of step 3");
    }
}

static void rank_1_dies_while_rank_0_computes(struct rank *r)
{
    wk_heartbeat_phase(r->heartbeat, WK_PHASE_STEP, 5);
    if (r->rank == 1)
        raise(SIGKILL);
    wait_for_ever();
}

static void test_a_rank_can_be_gone_while_nobody_waits_for_it(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_1_dies_while_rank_0_computes);
    assert_memory_equal(words(&p, 0), "rank 1 is gone, last seen in ", 29);
    assert_string_equal(p.verdicts[0].at.coll, "");
}

/* ---- Stopped ---- */

static void rank_2_stops(struct rank *r)
{
    if (r->rank == 2)
        raise(SIGSTOP);
    enter(r, 4, "all_reduce");
    wait_for_ever();
}

static void test_a_stopped_rank_is_named_after_the_limit(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 2, rank_2_stops);
    assert_int_equal(code(&p, 0), EXIT_VERDICT);
    assert_int_equal(code(&p, 1), EXIT_OTHER);
    assert_string_equal(words(&p, 0),
                        "rank 2 did not come to all_reduce of step 4 within 2 s; it no longer "
                        "answers, last seen in the start");
    assert_int_equal(p.verdicts[0].missing[0].how, WK_HOW_SILENT);
}

static void rank_0_stops(struct rank *r)
{
    if (r->rank == 0)
        raise(SIGSTOP);
    enter(r, 4, "all_reduce");
    wait_for_ever();
}

static void test_the_others_say_so_when_rank_0_is_stopped(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 1, rank_0_stops);
    for (int r = 1; r < RANKS; r++) {
        assert_int_equal(code(&p, r), EXIT_VERDICT);
        assert_string_equal(words(&p, r),
                            "rank 0 did not come to all_reduce of step 4 within 1 s; it no longer "
                            "answers, last seen in the start");
    }
}

/* ---- Late ---- */

static void rank_1_is_late(struct rank *r)
{
    pass(r, 8, "all_reduce");
    if (r->rank == 1)
        wait_for_ever();
    enter(r, 9, "all_reduce");
    wait_for_ever();
}

static void test_a_late_rank_is_named_after_the_limit(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 2, rank_1_is_late);
    assert_int_equal(code(&p, 0), EXIT_VERDICT);
    assert_int_equal(code(&p, 1), EXIT_OTHER);
    assert_int_equal(code(&p, 2), EXIT_OTHER);
    assert_string_equal(words(&p, 0),
                        "rank 1 did not come to all_reduce of step 9 within 2 s; it answers and is "
                        "in step 8");
}

static void rank_0_is_late(struct rank *r)
{
    wk_heartbeat_phase(r->heartbeat, WK_PHASE_EVAL, 0);
    if (r->rank)
        wk_heartbeat_enter(r->heartbeat, "broadcast");
    wait_for_ever();
}

static void test_rank_0_names_itself_when_it_is_late(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 2, rank_0_is_late);
    assert_string_equal(words(&p, 0),
                        "rank 0 did not come to broadcast of the evaluation within 2 s; it answers "
                        "and is in the evaluation");
    for (int r = 1; r < RANKS; r++)
        assert_int_equal(code(&p, r), EXIT_OTHER);
}

static void all_are_there(struct rank *r)
{
    enter(r, 2, "all_reduce");
    wait_for_ever();
}

static void test_nothing_moves_though_all_are_there(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 2, all_are_there);
    assert_string_equal(words(&p, 0),
                        "all ranks are in all_reduce of step 2, and nothing has moved for 2 s");
}

static void long_steps(struct rank *r)
{
    for (int i = 1; i <= 12; i++) {
        enter(r, i, "all_reduce");
        hg_clock_sleep_s(0.25);
        wk_heartbeat_leave(r->heartbeat);
    }
}

static void test_a_training_that_moves_may_take_longer_than_the_limit(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 2, long_steps);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(code(&p, r), 0);
}

/* ---- A reason of its own ---- */

static void rank_1_fails(struct rank *r)
{
    if (r->rank == 1) {
        assert_true(wk_heartbeat_failing(r->heartbeat));
        _exit(3);
    }
    enter(r, 1, "all_reduce");
    wait_for_ever();
}

static void test_a_rank_that_fails_by_itself_is_not_called_missing(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_1_fails);
    assert_int_equal(code(&p, 0), EXIT_OTHER);
    assert_int_equal(code(&p, 1), 3);
    assert_int_equal(code(&p, 2), EXIT_OTHER);
}

static void rank_0_fails(struct rank *r)
{
    if (r->rank == 0) {
        assert_true(wk_heartbeat_failing(r->heartbeat));
        _exit(3);
    }
    enter(r, 1, "all_reduce");
    wait_for_ever();
}

static void test_rank_0_may_fail_by_itself_too(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_0_fails);
    assert_int_equal(code(&p, 0), 3);
    assert_int_equal(code(&p, 1), EXIT_OTHER);
    assert_int_equal(code(&p, 2), EXIT_OTHER);
}

static void rank_1_dies_and_rank_0_notices(struct rank *r)
{
    if (r->rank == 1)
        raise(SIGKILL);
    enter(r, 1, "all_reduce");
    if (r->rank == 0 && wk_heartbeat_settle(r->heartbeat, LONG_S))
        assert_false(wk_heartbeat_failing(r->heartbeat));
    wait_for_ever();
}

static void test_a_rank_whose_collective_fails_waits_for_the_reason(void **state)
{
    struct cast p;

    (void)state;
    run(&p, LONG_S, rank_1_dies_and_rank_0_notices);
    assert_int_equal(code(&p, 0), EXIT_VERDICT);
    assert_string_equal(words(&p, 0), "rank 1 is gone, waited for in all_reduce of step 1");
}

static void some_are_done_early(struct rank *r)
{
    pass(r, 1, "all_reduce");
    if (r->rank == 2)
        hg_clock_sleep_s(0.5);
}

static void test_ranks_may_end_one_after_the_other(void **state)
{
    struct cast p;

    (void)state;
    run(&p, 1, some_are_done_early);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(code(&p, r), 0);
}

/* ---- Faults on purpose ---- */

static void test_faults_are_read_or_refused(void **state)
{
    static const struct {
        const char *text;
        int what;
    } cases[] = {
        { "", WK_FAULT_NONE },
        { "kill:1:2:3", WK_FAULT_KILL },
        { "stop:0:0:1", WK_FAULT_STOP },
        { "slow:2:10:1:0.5", WK_FAULT_SLOW },
        { "slow:2:10:1", -1 },
        { "kill:1:2:3:4", -1 },
        { "kill:1:2", -1 },
        { "kill:1:2:0", -1 },
        { "kill:1:2:3x", -1 },
        { "burn:1:2:3", -1 },
        { "kill", -1 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_err err = HG_ERR_INIT;
        struct wk_fault f;
        int rc;

        setenv("HPCGRID_FAULT", cases[i].text, 1);
        rc = wk_fault_read(&f, &err);
        assert_int_equal(rc < 0 ? -1 : (int)f.what, cases[i].what);
    }
    unsetenv("HPCGRID_FAULT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_rank_is_named_at_once),
        cmocka_unit_test(test_the_others_say_so_when_rank_0_is_killed),
        cmocka_unit_test(test_a_rank_can_be_gone_while_nobody_waits_for_it),
        cmocka_unit_test(test_a_stopped_rank_is_named_after_the_limit),
        cmocka_unit_test(test_the_others_say_so_when_rank_0_is_stopped),
        cmocka_unit_test(test_a_late_rank_is_named_after_the_limit),
        cmocka_unit_test(test_rank_0_names_itself_when_it_is_late),
        cmocka_unit_test(test_nothing_moves_though_all_are_there),
        cmocka_unit_test(test_a_training_that_moves_may_take_longer_than_the_limit),
        cmocka_unit_test(test_a_rank_that_fails_by_itself_is_not_called_missing),
        cmocka_unit_test(test_rank_0_may_fail_by_itself_too),
        cmocka_unit_test(test_a_rank_whose_collective_fails_waits_for_the_reason),
        cmocka_unit_test(test_ranks_may_end_one_after_the_other),
        cmocka_unit_test(test_faults_are_read_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
