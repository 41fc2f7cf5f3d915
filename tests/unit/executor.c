/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/ranges.h"
#include "slurm/client/executor.h"
#include "slurm/client/transport.h"
#include "matrix/site.h"
#include "scheduler.h"

static void test_index_sets_read_back_as_they_were_written(void **state)
{
    static const struct {
        const char *in, *out; /* out NULL: refused */
    } cases[] = {
        { "", "" },
        { "0", "0" },
        { "0-9,12", "0-9,12" },
        { "0-3,4,5-6", "0-6" },
        { "0-8:4,9", "0,4,8-9" },
        { "3-1", NULL },
        { "1,1", NULL },
        { "5,1", NULL },
        { "1,", NULL },
        { ",1", NULL },
        { "1001", NULL },
        { "99999999999999999999", NULL },
        { "-1", NULL },
        { "+1", NULL },
        { " 1", NULL },
        { "1-", NULL },
        { "0-8:0", NULL },
        { "0-9%2", NULL },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct hg_ranges set = HG_RANGES_INIT;
        struct hg_buf text = HG_BUF_INIT;
        int rc = hg_ranges_parse(cases[i].in, 1000, &set, NULL);

        assert_int_equal(rc, cases[i].out ? 0 : -1);
        hg_ranges_format(&set, &text);
        if (cases[i].out)
            assert_string_equal(hg_buf_str(&text), cases[i].out);
        assert_true(cases[i].out || !set.n);
        hg_buf_done(&text);
        hg_ranges_done(&set);
    }
}

/* ---- The agent's client, against agents that are shell scripts ---- */

struct agent_fixture {
    char dir[32];
    char *path;
};

static struct hg_executor_session *open_agent(struct agent_fixture *f, const char *script,
                                              double deadline_s)
{
    struct hg_executor_session *x;

    strcpy(f->dir, "/tmp/hg-exec-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->path = hg_fs_join(f->dir, "agent");
    assert_int_equal(hg_fs_replace(f->path, script, strlen(script), 0700, NULL), 0);
    setenv("HPCGRID_SLURM_AGENT", f->path, 1);
    x = hg_executor_slurm.open(NULL, deadline_s, NULL);
    assert_non_null(x);
    return x;
}

static void close_agent(struct agent_fixture *f, struct hg_executor_session *x)
{
    hg_executor_slurm.close(x);
    hg_fs_remove_tree(f->dir, NULL);
    free(f->path);
}

static void test_agent_that_gives_no_answer_leaves_only_a_submission_in_doubt(void **state)
{
    static const char *const scripts[] = {
        "#!/bin/sh\nread line; echo 'out of memory' >&2; kill -9 $$\n",
        "#!/bin/sh\nread line; exec sleep 60\n",
        "#!/bin/sh\nread line; echo '{\"id\": 99, \"ok\": {\"job_id\": 1}}'; read line\n",
        "#!/bin/sh\nread line; echo 'Segmentation fault'; read line\n",
        "#!/bin/sh\nread line; echo '{\"id\": 1, \"ok\": 7}'; read line\n",
        "#!/bin/sh\nread line; printf '{\"id\": 1, \"ok\": {\"job'\n",
        "#!/bin/sh\nread line; echo '{\"id\": 1, \"error\": {\"code\": \"new\"}}'; read line\n",
    };
    const struct hg_executor *slurm = &hg_executor_slurm;
    json_t *job = json_pack("{s:s}", "name", "x");

    (void)state;
    for (size_t i = 0; i < N_OF(scripts); i++) {
        struct hg_err submit = HG_ERR_INIT, poll = HG_ERR_INIT;
        struct hg_executor_jobs jobs;
        struct agent_fixture f;
        double deadline_s = strstr(scripts[i], "sleep") ? 0.3 : 60;
        struct hg_executor_session *x = open_agent(&f, scripts[i], deadline_s);
        uint32_t id;

        assert_int_equal(slurm->submit(x, job, &id, &submit), -1);
        assert_int_equal(submit.code, HG_E_AMBIGUOUS);
        if (i == 0)
            assert_non_null(strstr(submit.hint, "out of memory"));
        close_agent(&f, x);
        x = open_agent(&f, scripts[i], deadline_s);
        assert_int_equal(slurm->poll(x, &jobs, &poll), -1);
        assert_int_equal(poll.code, HG_E_AGAIN);
        close_agent(&f, x);
    }
    json_decref(job);
}

static void test_agent_is_started_again_after_its_death(void **state)
{
    static const char script[] = "#!/bin/sh\nread line; n=${line##*'\"id\":'}; n=${n%%,*}\n"
                                 "echo '{\"id\":'$n',\"ok\":{\"jobs\":[]},\"rpcs\":1}'\n";
    const struct hg_executor *slurm = &hg_executor_slurm;
    struct hg_executor_jobs jobs;
    struct agent_fixture f;
    struct hg_executor_session *x = open_agent(&f, script, 60);
    int good = 0;

    (void)state;
    for (int i = 0; i < 6; i++) /* each answers once and ends: the question after it may be lost */
        good += slurm->poll(x, &jobs, NULL) == 0;
    assert_true(good >= 3);
    assert_int_equal(slurm->facts(x)->counts.polls, good);
    close_agent(&f, x);
}

static void test_answers_of_the_agent_are_decoded(void **state)
{
    static const char script[] =
        "#!/bin/sh\n"
        "read line; echo '{\"id\":1,\"ok\":{\"max_array_size\":101,\"max_jobs\":2000,"
        "\"ambiguous_s\":10,\"min_job_age_s\":5,\"accounting\":true,\"version\":\"22.05.8\","
        "\"cluster\":\"box\"},\"rpcs\":1}'\n"
        "read line; echo '{\"id\":2,\"error\":{\"code\":\"refused\",\"message\":\"Bad\","
        "\"site\":\"ask the desk\"},\"rpcs\":1}'\n"
        "read line; echo '{\"id\":3,\"ok\":{\"jobs\":[{\"key\":\"00\",\"job_id\":7,\"tasks\":\"3-9\","
        "\"state\":\"PENDING\",\"reason\":\"Resources\",\"nodes\":\"\",\"restarts\":1,"
        "\"exit_status\":0,\"submit_s\":5,\"start_s\":0,\"expected_s\":9,\"end_s\":0}]},\"rpcs\":1,"
        "\"cpu_s\":0.25}'\n"
        "read line; echo '{\"id\":4,\"ok\":{\"job_id\":17,\"site\":\"\"},\"rpcs\":1}'\nread line\n";
    const struct hg_executor *slurm = &hg_executor_slurm;
    struct hg_err err = HG_ERR_INIT;
    struct hg_executor_limits limits;
    struct hg_executor_jobs jobs;
    struct agent_fixture f;
    struct hg_executor_session *x = open_agent(&f, script, 5);
    json_t *job = json_pack("{s:s}", "name", "x");
    uint32_t id;

    (void)state;
    assert_int_equal(slurm->limits(x, &limits, NULL), 0);
    assert_int_equal(limits.max_array_size, 101);
    assert_true(limits.accounting);
    assert_int_equal(slurm->submit(x, job, &id, &err), -1);
    assert_int_equal(err.code, HG_E_REFUSED);
    assert_string_equal(err.text, "Bad: ask the desk");
    assert_int_equal(slurm->poll(x, &jobs, NULL), 0);
    assert_int_equal(jobs.n, 1);
    assert_string_equal(jobs.items[0].tasks, "3-9");
    assert_int_equal(jobs.items[0].restarts, 1);
    assert_true(jobs.items[0].start_s == 0 && jobs.items[0].expected_s == 9);
    assert_true(slurm->facts(x)->cpu_s == 0.25);
    hg_executor_jobs_done(&jobs);
    assert_int_equal(slurm->submit(x, job, &id, NULL), 0);
    assert_int_equal(id, 17);
    json_decref(job);
    close_agent(&f, x);
}

/* ---- Which agent ---- */

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

#define JOB "\"key\":\"k\",\"tasks\":\"0\",\"state\":\"PENDING\"}]}"
#define JOBS "\"ok\":{\"jobs\":[{"

static void test_an_answer_that_is_not_as_the_protocol_has_it_says_nothing(void **state)
{
    static const char *const answers[] = {
        "\"ok\":{}",
        "\"ok\":{\"jobs\":null}",
        "\"ok\":{\"jobs\":[7]}",
        JOBS JOB,
        JOBS "\"job_id\":0," JOB,
        JOBS "\"job_id\":\"17\"," JOB,
        JOBS "\"job_id\":4294967313," JOB,
        JOBS "\"job_id\":17,\"restarts\":-1," JOB,
        JOBS "\"job_id\":17,\"exit_status\":1e9," JOB,
        JOBS "\"job_id\":17,\"start_s\":1e300," JOB,
        JOBS "\"job_id\":17,\"key\":\"k\",\"tasks\":\"0\"}]}",
        JOBS "\"job_id\":17,\"key\":\"k\",\"tasks\":\"x\",\"state\":\"PENDING\"}]}",
        "\"ok\":{\"jobs\":[],\"job_id\":1},\"error\":{\"code\":\"env\"}",
        "\"error\":\"x\"",
    };
    const struct hg_executor *slurm = &hg_executor_slurm;
    json_t *job = json_pack("{s:s}", "name", "x");

    (void)state;
    for (size_t i = 0; i < N_OF(answers); i++) {
        char *script =
            hg_str_printf("#!/bin/sh\nread line; echo '{\"id\":1,%s}'; read line\n", answers[i]);
        struct hg_err submit = HG_ERR_INIT, poll = HG_ERR_INIT, limit = HG_ERR_INIT;
        struct hg_executor_limits limits;
        struct hg_executor_jobs jobs;
        struct agent_fixture f;
        struct hg_executor_session *x = open_agent(&f, script, 60);
        uint32_t id;

        assert_int_equal(slurm->submit(x, job, &id, &submit), -1);
        assert_int_equal(submit.code, HG_E_AMBIGUOUS);
        close_agent(&f, x);
        x = open_agent(&f, script, 60);
        assert_int_equal(slurm->poll(x, &jobs, &poll), -1);
        assert_int_equal(poll.code, HG_E_AGAIN);
        assert_int_equal(jobs.n, 0);
        close_agent(&f, x);
        x = open_agent(&f, script, 60);
        assert_int_equal(slurm->limits(x, &limits, &limit), -1);
        assert_int_equal(limit.code, HG_E_AGAIN);
        close_agent(&f, x);
        free(script);
    }
    json_decref(job);
}

static void test_a_transport_is_asked_for_by_variable_site_or_agent(void **state)
{
    static const struct {
        const char *variable, *site, *agent;
        const char *name, *by; /* name NULL: auto; by NULL: refused */
    } cases[] = {
        { NULL, NULL, NULL, NULL, "itself" },
        { "", "{}", "", NULL, "itself" },
        { NULL, "{\"transport\":\"auto\"}", NULL, NULL, "itself" },
        { NULL, NULL, "/a", "slurm", "HPCGRID_SLURM_AGENT" },
        { NULL, "{\"transport\":\"auto\"}", "/a", NULL, "itself" },
        { "auto", NULL, "/a", NULL, "itself" },
        { NULL, "{\"transport\":\"slurm\"}", NULL, "slurm", "the site" },
        { "slurm", "{\"transport\":\"auto\"}", NULL, "slurm", "HPCGRID_TRANSPORT" },
        { "auto", "{\"transport\":\"slurm\"}", NULL, NULL, "itself" },
        { "slrum", NULL, NULL, NULL, NULL },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *site = cases[i].site ? json_loads(cases[i].site, 0, NULL) : NULL;
        const struct hg_transport *t = NULL;
        struct hg_err err = HG_ERR_INIT;
        const char *by = NULL;
        int rc;

        set_or_unset("HPCGRID_TRANSPORT", cases[i].variable);
        set_or_unset("HPCGRID_SLURM_AGENT", cases[i].agent);
        rc = hg_transport_wanted(site, &t, &by, &err);
        assert_int_equal(rc, cases[i].by ? 0 : -1);
        if (rc == 0)
            assert_string_equal(by, cases[i].by);
        else
            assert_string_equal(err.text, "HPCGRID_TRANSPORT: unknown transport \"slrum\"");
        assert_true(cases[i].name ? t && strcmp(t->name, cases[i].name) == 0 : !t);
        json_decref(site);
    }
    unsetenv("HPCGRID_TRANSPORT");
    unsetenv("HPCGRID_SLURM_AGENT");
}

/* An agent as a script that answers each question with what `answers` says for its operation. */
static char *write_agent(const char *dir, const char *name, const char *answers)
{
    char *path = hg_fs_join(dir, name);
    struct hg_buf script = HG_BUF_INIT;

    hg_buf_printf(&script,
                  "#!/bin/sh\nwhile read line; do id=${line##*'\"id\":'}; id=${id%%%%,*}\n"
                  "case $line in\n%s\nesac\ndone\n",
                  answers);
    assert_int_equal(hg_fs_replace(path, hg_buf_str(&script), script.len, 0700, NULL), 0);
    hg_buf_done(&script);
    return path;
}

#define ANSWER(op, rest) "*'\"op\":\"" op "\"'*) echo '{\"id\":'$id',' '" rest "}';;\n"
#define HELLO ANSWER("hello", "\"ok\":{\"conf\":\"/c\"}")
#define NOBODY ANSWER("hello", "\"ok\":{\"conf\":null}")
#define NO_JOBS ANSWER("poll", "\"ok\":{\"jobs\":[]},\"rpcs\":1")
#define UNFIT \
    ANSWER("poll", "\"error\":{\"code\":\"env\",\"message\":\"old\",\"unfit\":true},\"rpcs\":1")
#define STRANGE \
    ANSWER("poll", "\"error\":{\"code\":\"again\",\"message\":\"?\",\"unfit\":true},\"rpcs\":1")

static void test_by_itself_the_first_agent_is_taken_that_fits(void **state)
{
    static const struct {
        const char *slurm, *cli;     /* what the agents answer */
        const char *opened, *polled; /* the transport after open, and after a poll */
        bool ok;
    } cases[] = {
        { HELLO NO_JOBS, HELLO NO_JOBS, "slurm", "slurm", true },
        { NOBODY, HELLO NO_JOBS, "cli", "cli", true },
        { "*) exit 127;;", HELLO NO_JOBS, "cli", "cli", true },
        { HELLO UNFIT, HELLO NO_JOBS, "slurm", "cli", true },
        { HELLO STRANGE, HELLO NO_JOBS, "slurm", "cli", true },
        { HELLO UNFIT, NOBODY, "slurm", "slurm", false },
        { NOBODY UNFIT, NOBODY, "slurm", "slurm", false },
    };
    const struct hg_executor *slurm = &hg_executor_slurm;
    char dir[] = "/tmp/hg-exec-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("HPCGRID_TRANSPORT", "auto", 1);
    for (size_t i = 0; i < N_OF(cases); i++) {
        char *first = write_agent(dir, "first", cases[i].slurm);
        char *second = write_agent(dir, "second", cases[i].cli);
        struct hg_executor_jobs jobs;
        struct hg_executor_session *x;

        setenv("HPCGRID_SLURM_AGENT", first, 1);
        setenv("HPCGRID_CLI_AGENT", second, 1);
        x = slurm->open(NULL, 60, NULL);
        assert_non_null(x);
        assert_string_equal(slurm->facts(x)->transport, cases[i].opened);
        assert_int_equal(slurm->poll(x, &jobs, NULL), cases[i].ok ? 0 : -1);
        assert_string_equal(slurm->facts(x)->transport, cases[i].polled);
        slurm->close(x);
        free(first);
        free(second);
    }
    unsetenv("HPCGRID_TRANSPORT");
    unsetenv("HPCGRID_SLURM_AGENT");
    unsetenv("HPCGRID_CLI_AGENT");
    hg_fs_remove_tree(dir, NULL);
}

static void test_a_submission_is_sent_once_whatever_is_said_of_it(void **state)
{
    static const char *const answers[] = {
        HELLO ANSWER("submit", "\"ok\":{}"),
        HELLO ANSWER("submit", "\"ok\":{\"job_id\":0}"),
        HELLO ANSWER("submit",
                     "\"error\":{\"code\":\"ambiguous\",\"message\":\"x\",\"unfit\":true}"),
    };
    const struct hg_executor *slurm = &hg_executor_slurm;
    char dir[] = "/tmp/hg-exec-XXXXXX";
    json_t *job = json_object();

    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("HPCGRID_TRANSPORT", "auto", 1);
    for (size_t i = 0; i < N_OF(answers); i++) {
        char *first = write_agent(dir, "first", answers[i]);
        char *second = write_agent(dir, "second", HELLO ANSWER("submit", "\"ok\":{\"job_id\":7}"));
        struct hg_err err = HG_ERR_INIT;
        struct hg_executor_session *x;
        uint32_t id;

        setenv("HPCGRID_SLURM_AGENT", first, 1);
        setenv("HPCGRID_CLI_AGENT", second, 1);
        x = slurm->open(NULL, 60, NULL);
        assert_non_null(x);
        assert_int_equal(slurm->submit(x, job, &id, &err), -1);
        assert_int_equal(err.code, HG_E_AMBIGUOUS);
        assert_string_equal(slurm->facts(x)->transport, "slurm");
        slurm->close(x);
        free(first);
        free(second);
    }
    unsetenv("HPCGRID_TRANSPORT");
    unsetenv("HPCGRID_SLURM_AGENT");
    unsetenv("HPCGRID_CLI_AGENT");
    hg_fs_remove_tree(dir, NULL);
    json_decref(job);
}

static void test_every_transport_can_be_written_in_a_site(void **state)
{
    (void)state;
    for (const struct hg_transport *t = hg_transports; t->name; t++) {
        size_t i = 1;

        while (hg_site_transports[i] && strcmp(hg_site_transports[i], t->name) != 0)
            i++;
        assert_non_null(hg_site_transports[i]);
    }
}

/* ---- The scheduler in memory ---- */

static json_t *mock_job(const char *key, const char *array, const char *claim)
{
    return json_pack("{s:s,s:s,s:s,s:[s,s,s,s]}", "key", key, "array", array, "script",
                     "/r/batches/1.sh", "args", "--submission", claim, "--offset", "10");
}

static void test_the_scheduler_in_memory_does_what_it_is_told(void **state)
{
    const struct hg_executor *mock = &mock_executor;
    json_t *config = json_loads("{\"submits\":[\"again\",\"created\"],\"default\":{\"run_s\":2},"
                                "\"tasks\":{\"1:11\":[{\"run_s\":1,\"state\":\"FAILED\","
                                "\"result\":\"failed\"}]}}",
                                0, NULL);
    json_t *job = mock_job("k", "0-1", "1"), *twin = mock_job("l", "1", "1");
    struct hg_executor_session *x = mock->open(config, 1, NULL);
    struct hg_err err = HG_ERR_INIT;
    struct mock_attempt a;
    struct hg_executor_jobs jobs;
    uint32_t id;

    (void)state;
    assert_int_equal(mock->submit(x, job, &id, &err), -1);
    assert_int_equal(err.code, HG_E_AGAIN);
    err = (struct hg_err)HG_ERR_INIT;
    assert_int_equal(mock->submit(x, job, &id, &err), -1);
    assert_int_equal(err.code, HG_E_AMBIGUOUS);
    mock_advance(x, 1.5);
    assert_int_equal(mock->poll(x, &jobs, NULL), 0);
    assert_string_equal(jobs.items[1].state, "RUNNING");
    hg_executor_jobs_done(&jobs);
    mock_advance(x, 5);
    mock_attempt(x, 1, 11, 1, &a);
    assert_string_equal(a.status, "failed");
    mock_attempt(x, 1, 10, 1, &a);
    assert_string_equal(a.status, "ok");
    assert_int_equal(mock->submit(x, twin, &id, NULL), 0); /* its attempt is taken: it leaves */
    mock_advance(x, 9);
    assert_int_equal(mock_runs(x, 1, 11), 1);
    assert_int_equal(mock_doubles(x), 0);
    mock->close(x);
    json_decref(config);
    json_decref(job);
    json_decref(twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_sets_read_back_as_they_were_written),
        cmocka_unit_test(test_agent_that_gives_no_answer_leaves_only_a_submission_in_doubt),
        cmocka_unit_test(test_agent_is_started_again_after_its_death),
        cmocka_unit_test(test_answers_of_the_agent_are_decoded),
        cmocka_unit_test(test_an_answer_that_is_not_as_the_protocol_has_it_says_nothing),
        cmocka_unit_test(test_a_transport_is_asked_for_by_variable_site_or_agent),
        cmocka_unit_test(test_by_itself_the_first_agent_is_taken_that_fits),
        cmocka_unit_test(test_a_submission_is_sent_once_whatever_is_said_of_it),
        cmocka_unit_test(test_every_transport_can_be_written_in_a_site),
        cmocka_unit_test(test_the_scheduler_in_memory_does_what_it_is_told),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("exec", tests, NULL, NULL);
}
