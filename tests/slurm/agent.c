/* SPDX-License-Identifier: Apache-2.0 */
/* hpcgrid-slurm without a Slurm: the classes of error numbers, sbatch options as typed. */
#include "../unit/test.h"

#include <errno.h>
#include <slurm/slurm_errno.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "slurm/common/codes.h"
#include "slurm/libslurm/extra.h"

/* Generated from slurm_errno.h of the Slurm that is installed. */
static const struct {
    const char *name;
    int number;
} installed[] = {
#define X(name) { #name, name },
#include "slurm_errno_names.h"
#undef X
};

static void test_every_code_of_the_installed_slurm_has_a_class(void **state)
{
    (void)state;
    assert_true(N_OF(installed) > 200);
    for (size_t i = 0; i < N_OF(installed); i++)
        if (installed[i].number > 0 && !hg_agent_knows(installed[i].number))
            fail_msg("%s (%d) is not in codes.def", installed[i].name, installed[i].number);
}

static void test_a_controller_of_another_release_refuses_no_job(void **state)
{
    struct hg_agent_call call = { .err = HG_ERR_INIT, .submitting = true };

    (void)state;
    hg_buf_puts(&call.site, "Invalid Protocol Version 10752 from uid=4294967295: Incompatible "
                            "versions of client and server code");
    hg_agent_fail_number(&call, SLURM_ERROR, "", "submit");
    assert_int_equal(call.err.code, HG_E_ENV);
    assert_true(call.unfit);
    assert_non_null(strstr(call.err.text, "does not understand this libslurm (1005)"));
    hg_buf_done(&call.site);
}

static bool is_unfit(int number, bool submitting)
{
    struct hg_agent_call call = { .err = HG_ERR_INIT, .submitting = submitting };

    hg_agent_fail_number(&call, number, "", "poll");
    assert_int_equal(call.err.code, submitting ? HG_E_AMBIGUOUS : HG_E_AGAIN);
    return call.unfit;
}

static void test_answers_that_are_none_are_of_another_release_until_one_was_read(void **state)
{
    static const int strange[] = { SLURM_PROTOCOL_INSANE_MSG_LENGTH,
                                   SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT,
                                   ESLURM_PROTOCOL_INCOMPLETE_PACKET,
                                   5000 /* not in all releases */ };

    (void)state;
    for (size_t i = 0; i < N_OF(strange); i++) {
        assert_true(is_unfit(strange[i], false));
        assert_false(is_unfit(strange[i], true)); /* the job may be there */
    }
    assert_false(is_unfit(SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, false));
    hg_agent_understood();
    for (int i = 0; i < 4; i++)
        assert_false(is_unfit(strange[1], false));
    assert_true(is_unfit(strange[1], false)); /* the site got a new release meanwhile */
    hg_agent_understood();
    assert_false(is_unfit(strange[1], false));
}

static void test_only_certain_answers_are_final(void **state)
{
    static const struct {
        int number;
        const char *site;
        enum hg_err_code code;
    } cases[] = {
        { SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT, "", HG_E_AMBIGUOUS },
        { SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR, "", HG_E_AMBIGUOUS },
        { SLURMCTLD_COMMUNICATIONS_SEND_ERROR, "", HG_E_AMBIGUOUS },
        { SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR, "", HG_E_ENV },
        { SLURM_PROTOCOL_AUTHENTICATION_ERROR, "Munge encode failed: no socket", HG_E_ENV },
        { SLURM_PROTOCOL_AUTHENTICATION_ERROR, "Munge decode failed: expired", HG_E_AMBIGUOUS },
        { SLURM_PROTOCOL_AUTHENTICATION_ERROR, "", HG_E_AMBIGUOUS },
        { ESLURM_INVALID_PARTITION_NAME, "", HG_E_REFUSED },
        { ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE, "", HG_E_REFUSED },
        { ESLURM_ACCOUNTING_POLICY, "", HG_E_AGAIN },
        { 2007, "", HG_E_AGAIN }, /* Slurm 26.05: the job table is full */
        { ESLURM_INVALID_ARRAY, "", HG_E_REFUSED },
        { SLURM_ERROR, "the plugin's words", HG_E_REFUSED },
        { EAGAIN, "", HG_E_AGAIN },
        { ECONNREFUSED, "", HG_E_ENV },
        { ECONNRESET, "", HG_E_AMBIGUOUS },
        { EPIPE, "", HG_E_AMBIGUOUS },
        { 2999, "", HG_E_REFUSED },
        { 5999, "", HG_E_AMBIGUOUS },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        if (hg_agent_classify(cases[i].number, cases[i].site) != cases[i].code)
            fail_msg("%d with \"%s\" is class %d", cases[i].number, cases[i].site,
                     (int)hg_agent_classify(cases[i].number, cases[i].site));
}

static void test_errors_are_known_by_their_words_or_not_at_all(void **state)
{
    int known = 0;

    (void)state;
    for (size_t i = 0; i < N_OF(installed); i++) {
        char text[256];
        int number;

        snprintf(text, sizeof text, "%s", slurm_strerror(installed[i].number));
        number = hg_agent_number_of(text);

        known += number != 0;
        if (installed[i].number > 0 && number &&
            hg_agent_classify(number, "") != hg_agent_classify(installed[i].number, ""))
            fail_msg("%s (%d), \"%s\", is taken for %d", installed[i].name, installed[i].number,
                     text, number);
    }
    assert_true(known > 60);
    assert_int_equal(hg_agent_number_of("Unspecified error"), SLURM_ERROR);
    assert_int_equal(hg_agent_number_of("x: Connection reset by peer"), ECONNRESET);
    assert_int_equal(hg_agent_number_of("Job is not to the taste of this controller"), 0);
}

/* ---- options ---- */

static char *copies[8];

/* Runs words (separated by spaces) over a fresh descriptor. */
static int run_words(const char *text, job_desc_msg_t *desc, struct hg_agent_words *kept,
                     struct hg_err *err)
{
    static char buffer[512];
    struct hg_sbatch_options options = { 0 };
    size_t n = 0;
    int rc;

    snprintf(buffer, sizeof buffer, "%s", text);
    for (char *save = NULL, *w = strtok_r(buffer, " ", &save); w; w = strtok_r(NULL, " ", &save))
        copies[n++] = w;
    copies[n] = NULL;
    slurm_init_job_desc_msg(desc);
    *kept = (struct hg_agent_words){ 0 };
    *err = (struct hg_err)HG_ERR_INIT;
    rc = hg_sbatch_read(copies, &options, err);
    if (rc == 0)
        rc = hg_agent_extra(desc, &options, kept, err);
    HG_VEC_DONE(&options);
    return rc;
}

static void test_options_reach_the_fields_that_sbatch_fills(void **state)
{
    struct hg_agent_words k;
    struct hg_err err;
    job_desc_msg_t d;

    (void)state;
    assert_int_equal(run_words("--exclude=a1,a2 -w a3 --exclusive --hold", &d, &k, &err), 0);
    assert_string_equal(d.exc_nodes, "a1,a2");
    assert_string_equal(d.req_nodes, "a3");
    assert_int_equal(d.shared, JOB_SHARED_NONE);
    assert_int_equal(d.priority, 0);
    hg_agent_words_done(&k);

    assert_int_equal(
        run_words("--mail-type=END,fail --mail-user x@y --nice=-5 -d afterok:7", &d, &k, &err), 0);
    assert_int_equal(d.mail_type, MAIL_JOB_END | MAIL_JOB_FAIL);
    assert_string_equal(d.mail_user, "x@y");
    assert_int_equal(d.nice, NICE_OFFSET - 5);
    assert_string_equal(d.dependency, "afterok:7");
    hg_agent_words_done(&k);

    assert_int_equal(
        run_words("--mem-per-cpu=3G --threads-per-core=1 --time-min=1-2", &d, &k, &err), 0);
    assert_true(d.pn_min_memory == (3072 | MEM_PER_CPU));
    assert_int_equal(d.threads_per_core, 1);
    assert_int_equal(d.time_min, 26 * 60);
    hg_agent_words_done(&k);

    assert_int_equal(
        run_words("--gpu-bind=closest --cpus-per-gpu=8 --switches=2@1:30:00", &d, &k, &err), 0);
    assert_string_equal(d.tres_bind, HG_AGENT_GRES "gpu:closest");
    assert_string_equal(d.cpus_per_tres, HG_AGENT_GRES "gpu:8");
    assert_int_equal(d.req_switch, 2);
    assert_int_equal(d.wait4switch, 5400);
    hg_agent_words_done(&k);
}

static void test_begin_understands_slurms_times(void **state)
{
    struct hg_agent_words k;
    struct hg_err err;
    job_desc_msg_t d;
    time_t now = time(NULL);
    struct tm tm = { 0 };

    (void)state;
    assert_int_equal(run_words("--begin=now+2hours", &d, &k, &err), 0);
    assert_true(d.begin_time >= now + 7200 && d.begin_time <= now + 7210);
    assert_int_equal(run_words("-b 2031-02-03T04:05", &d, &k, &err), 0);
    localtime_r(&d.begin_time, &tm);
    assert_int_equal(tm.tm_year, 131);
    assert_int_equal(tm.tm_hour * 60 + tm.tm_min, 4 * 60 + 5);
    assert_int_equal(run_words("--begin=12:34", &d, &k, &err), 0);
    assert_true(d.begin_time >= now - 60 && d.begin_time <= now + 86460);
}

static void test_other_options_are_refused_by_name(void **state)
{
    static const struct {
        const char *words, *text;
    } cases[] = {
        { "--export=ALL", "sbatch option --export: use \"env\" of the workload or of the site" },
        { "-p a100", "sbatch option --partition: use \"partition\" of the site's hardware" },
        { "--time=5", "sbatch option --time: use \"time\"" },
        { "--exclud=a1", "sbatch option --exclud is not available here" },
        { "-Z", "sbatch option -Z is not available here" },
        { "words", "\"words\" is not an sbatch option" },
        { "--exclude", "sbatch option --exclude needs a value" },
        { "--hold=1", "sbatch option --hold does not take a value" },
        { "--nice=x", "--nice: \"x\" is not a number that Slurm accepts here" },
        { "--mem-per-cpu=-3", "--mem-per-cpu: \"-3\" is not a size" },
        { "--begin=soon",
          "--begin: \"soon\" is not a time such as now+2hours, 18:00 or 2026-11-20T18:00" },
    };
    struct hg_agent_words k;
    struct hg_err err;
    job_desc_msg_t d;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_int_equal(run_words(cases[i].words, &d, &k, &err), -1);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(err.code, HG_E_REFUSED);
        hg_agent_words_done(&k);
    }
    run_words("--exclud=a1", &d, &k, &err);
    assert_string_equal(err.hint, "did you mean --exclude?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_of_the_installed_slurm_has_a_class),
        cmocka_unit_test(test_only_certain_answers_are_final),
        cmocka_unit_test(test_a_controller_of_another_release_refuses_no_job),
        cmocka_unit_test(test_answers_that_are_none_are_of_another_release_until_one_was_read),
        cmocka_unit_test(test_errors_are_known_by_their_words_or_not_at_all),
        cmocka_unit_test(test_options_reach_the_fields_that_sbatch_fills),
        cmocka_unit_test(test_begin_understands_slurms_times),
        cmocka_unit_test(test_other_options_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
