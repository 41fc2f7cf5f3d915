/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <sys/stat.h>

#include "base/json.h"
#include "base/seal.h"
#include "base/text.h"
#include "node/outcome.h"
#include "node/where.h"
#include "rundir/attempt.h"
#include "rundir/attempt_find.h"

static void write_file(const char *name, const void *data, size_t n)
{
    char *path = hg_fs_join(dir, name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void write_rank(int rank, const char *host, int cores, const char *rest)
{
    char name[32], *text = hg_str_printf("{\"rank\":%d,\"host\":\"%s\",\"cores\":%d%s}", rank, host,
                                         cores, rest);

    snprintf(name, sizeof name, "rank.%d.json", rank);
    write_file(name, text, strlen(text));
    free(text);
}

/* The result of a workload that ended with this wait status and wrote what lies in dir. */
static json_t *result_of(int status, long long cpus, bool gpu)
{
    json_t *line = json_pack("{s:s, s:{s:i}}", "id", "c-1", "cell", "n", 1);
    json_t *workload = json_pack("{s:[s]}", "command", "true");
    struct hg_outcome o = { .dir = dir,
                            .name = "1.0",
                            .run_key = "k",
                            .line = line,
                            .workload = workload,
                            .gpu = gpu,
                            .cpus_per_task = cpus,
                            .ended = true,
                            .status = status,
                            .wall_s = 1.5 };
    json_t *result = hg_outcome_result(&o);

    assert_non_null(result);
    json_decref(line);
    json_decref(workload);
    return result;
}

static bool is_true(const json_t *result, const char *key)
{
    return json_is_true(json_object_get(result, key));
}

static void test_ranks_of_one_host_are_held_against_its_cores(void **state)
{
    static const struct {
        const char *hosts[4];
        int cores;
        long long cpus;
        bool over;
    } cases[] = {
        { { "a", "a", "b", "b" }, 4, 2, false }, { { "a", "a", "a", "b" }, 4, 2, true },
        { { "a", "a", "a", "a" }, 4, 1, false }, { { "a", "b", "c", "d" }, 4, 5, true },
        { { "a", "a", "a", "a" }, 3, 1, true },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *result;

        for (int r = 0; r < 4; r++)
            write_rank(r, cases[i].hosts[r], cases[i].cores, "");
        result = result_of(0, cases[i].cpus, false);
        assert_int_equal(is_true(result, "oversubscribed"), cases[i].over);
        assert_int_equal(json_array_size(json_object_get(result, "ranks")), 4);
        json_decref(result);
    }
}

static void test_a_gpu_cell_on_a_cpu_is_a_rehearsal_if_rank_or_workload_says_so(void **state)
{
    static const struct {
        const char *rank, *workload;
        bool gpu, rehearsal;
    } cases[] = {
        { ",\"device_kind\":\"cpu\"", "{}", true, true },
        { ",\"device_kind\":\"cpu\"", "{}", false, false },
        { ",\"device_kind\":\"gpu\"", "{}", true, false },
        { ",\"device_kind\":\"gpu\"", "{\"backend\":\"cpu\"}", true, true },
        { ",\"device_kind\":\"gpu\"", "{\"backend\":\"cuda\"}", true, false },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        json_t *result;

        for (int r = 0; r < 4; r++)
            write_rank(r, "a", 8, cases[i].rank);
        write_file("workload.json", cases[i].workload, strlen(cases[i].workload));
        result = result_of(0, 1, cases[i].gpu);
        assert_int_equal(is_true(result, "rehearsal"), cases[i].rehearsal);
        json_decref(result);
    }
}

static void test_of_failed_ranks_the_first_is_named(void **state)
{
    json_t *result, *error;

    (void)state;
    setenv("HPCGRID_NOW", "6", 1); /* else these times would be those of a wrong clock */
    write_rank(0, "a", 8, ",\"signal\":9,\"end_s\":5.5");
    write_rank(1, "b", 8, ",\"exit_code\":3,\"end_s\":5.25");
    write_rank(2, "b", 8, ",\"exit_code\":0,\"end_s\":1");
    write_rank(3, "b", 8, ",\"signal\":15,\"end_s\":6");
    write_file("workload.json", "{}", 2);
    result = result_of(9 << 8, 1, false);
    error = json_object_get(result, "error");
    assert_int_equal(json_integer_value(json_object_get(error, "rank")), 1);
    assert_string_equal(json_string_value(json_object_get(error, "host")), "b");
    assert_string_equal(json_string_value(json_object_get(error, "message")), "exit code 3");
    json_decref(result);
    write_rank(1, "b", 8, ",\"signal\":9,\"oom\":true,\"end_s\":5.25");
    result = result_of(9 << 8, 1, false);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "oom");
    json_decref(result);
    unsetenv("HPCGRID_NOW");
}

static void test_a_good_result_that_a_later_attempt_follows_is_superseded(void **state)
{
    const struct hg_rundir rd = { .path = dir, .number = 1 };
    struct hg_attempt_group g = { .rd = &rd };
    json_t *result = result_of(0, 1, false);
    char *folders[] = { hg_fs_join(dir, "cells/1-000/c-1.1.0"),
                        hg_fs_join(dir, "cells/1-000/c-1.1.1"),
                        hg_fs_join(dir, "cells/1-000/c-1.2.3") };
    struct hg_buf text = HG_BUF_INIT;
    struct hg_attempt a;

    (void)state;
    for (size_t i = 0; i < N_OF(folders); i++)
        assert_int_equal(hg_fs_mkdirs(folders[i], 0700, NULL), 0);
    hg_seal_dump(result, HG_JSON_INDENT, &text);
    write_file("cells/1-000/c-1.1.0/claim.json", "{}", 2);
    write_file("cells/1-000/c-1.1.0/result.json", text.data, text.len);
    write_file("cells/1-000/c-1.2.3/claim.json", "{}", 2); /* of another claim */
    assert_int_equal(hg_attempt_find(&g, 1, 1, "c-1", 1, "k", &a, NULL), 0);
    assert_string_equal(a.status, "ok");
    assert_false(a.superseded);
    assert_true(a.open);
    write_file("cells/1-000/c-1.1.1/claim.json", "{}", 2);
    g.quick = true; /* as good where nothing was denied before */
    assert_int_equal(hg_attempt_find(&g, 1, 1, "c-1", 1, "k", &a, NULL), 0);
    assert_string_equal(a.status, "ok"); /* until there is a newer one */
    assert_int_equal(a.restarts, 0);
    assert_true(a.superseded);
    assert_false(a.open); /* who looks again later reads no claims */
    hg_attempt_group_forget(&g);
    for (size_t i = 0; i < N_OF(folders); i++)
        free(folders[i]);
    hg_buf_done(&text);
    json_decref(result);
}

static void test_the_last_words_keep_their_accents(void **state)
{
    static const char log[] = "\xc3\xa9t\xc3\xa9:\t\x1b[1m caf\xe9\n";
    const json_t *error;
    json_t *result;

    (void)state;
    write_file("err.log", log, sizeof log - 1);
    result = result_of(1 << 8, 1, false);
    error = json_object_get(result, "error");
    assert_string_equal(json_string_value(json_object_get(error, "tail")),
                        "\xc3\xa9t\xc3\xa9:\t?[1m caf\xef\xbf\xbd");
    json_decref(result);
    write_file("err.log", "", 0);
}

/* Whatever a workload writes there is a result, and it is JSON that can be read back. */
static void test_any_bytes_of_a_workload_give_a_valid_result(void **state)
{
    static const char whole[] =
        "{\"train_s\": 12.5, \"epoch_s\": [1, 2.5e0, NaN], \"eval\": {\"f1\": 88.5}, \"status\": "
        "\"ok\", \"ranks\": [{\"rank\": 1, \"x\": \"\\u00e9\\\"\"}, 7], \"error\": {\"message\": 3}, "
        "\"env\": {}, \"backend\": \"cpu\", \"comm\": null, \"a\": [[[[{}]]]], \"z\": -Infinity}";
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        char text[sizeof whole];
        struct hg_buf out = HG_BUF_INIT;
        json_t *result, *again;
        size_t n = sizeof whole - 1;

        memcpy(text, whole, sizeof whole);
        for (int j = 0; j < i % 5; j++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % n] =
                i % 2 ? "{}[],:\"\\0N-e "[(seed >> 20) % 13] : (char)(seed >> 50);
        }
        if (i % 7 == 3)
            n = (size_t)i % n;
        write_file("workload.json", text, n);
        result = result_of(0, 1, true);
        hg_json_dump(result, HG_JSON_INDENT, &out);
        again = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(again);
        assert_string_equal(json_string_value(json_object_get(again, "id")), "c-1");
        json_decref(again);
        json_decref(result);
        hg_buf_done(&out);
    }
}

static void test_names_of_attempts(void **state)
{
    static const char *const wrong[] = { "",     "1",   "1.",   ".1",   "1.2.3", "01.2",
                                         "1.02", "a.b", "-1.2", "1.2 ", "1.2x",  "4294967297.1" };
    unsigned s, r;

    (void)state;
    assert_true(hg_attempt_parse("12.3", &s, &r));
    assert_int_equal(s, 12);
    assert_int_equal(r, 3);
    for (size_t i = 0; i < N_OF(wrong); i++)
        assert_false(hg_attempt_parse(wrong[i], &s, &r));
    assert_false(hg_attempt_is_file_name("../x"));
    assert_false(hg_attempt_is_file_name(".x"));
    assert_true(hg_attempt_is_file_name("rnn-ddp-cpu-2x1-5613912b3be8"));
}

static void test_the_first_host_of_a_node_list(void **state)
{
    static const struct {
        const char *list, *want;
    } cases[] = {
        { "n1", "n1" },
        { "n1,n2", "n1" },
        { "a100-[02-04,7],b1", "a100-02" },
        { "a100-[7]", "a100-7" },
        { "rack[3-4]-ib,x", "rack3-ib" },
        { "[1-2]", "1" },
        { "", NULL },
        { "n[x]", NULL },
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        assert_int_equal(hg_text_first_host(cases[i].list, out, sizeof out), cases[i].want != NULL);
        if (cases[i].want)
            assert_string_equal(out, cases[i].want);
    }
    assert_false(hg_text_first_host(NULL, out, sizeof out));
}

static int add_host(void *context, const char *host)
{
    struct hg_buf *out = context;

    hg_buf_printf(out, "%s%s", out->len ? " " : "", host);
    return strcmp(host, "stop") == 0 ? 7 : 0;
}

static void test_the_hosts_of_a_node_list(void **state)
{
    static const struct {
        const char *list, *want;
        int rc;
    } cases[] = {
        { "n1", "n1", 0 },
        { "n1,n2", "n1 n2", 0 },
        { "a100-[02-04,7],b1", "a100-02 a100-03 a100-04 a100-7 b1", 0 },
        { "r[1-2]n[08-10]-ib", "r1n08-ib r1n09-ib r1n10-ib r2n08-ib r2n09-ib r2n10-ib", 0 },
        { "[1-2]", "1 2", 0 },
        { "a,stop,b", "a stop", 7 },
        { "", "", -1 },
        { ",", "", -1 },
        { "a,,b", "a", -1 },
        { "a[", "", -1 },
        { "a[1", "", -1 },
        { "a[]", "", -1 },
        { "a[2-1]", "", -1 },
        { "a[1,x]", "a1", -1 },
        { "a[1-]", "", -1 },
        { "a[0-999999999]", "", -1 },
    };
    struct hg_buf out = HG_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        int rc;

        hg_buf_clear(&out);
        rc = hg_text_each_host(cases[i].list, add_host, &out);
        if (rc != cases[i].rc || strcmp(hg_buf_str(&out), cases[i].want) != 0)
            fail_msg("%s: %d, \"%s\"", cases[i].list, rc, hg_buf_str(&out));
    }
    hg_buf_clear(&out);
    assert_int_equal(hg_text_each_host("a[0-9999]b[0-9999]", add_host, &out), -1);
    hg_buf_done(&out);
    assert_int_equal(hg_text_each_host(NULL, add_host, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_of_one_host_are_held_against_its_cores),
        cmocka_unit_test(test_a_gpu_cell_on_a_cpu_is_a_rehearsal_if_rank_or_workload_says_so),
        cmocka_unit_test(test_of_failed_ranks_the_first_is_named),
        cmocka_unit_test(test_a_good_result_that_a_later_attempt_follows_is_superseded),
        cmocka_unit_test(test_the_last_words_keep_their_accents),
        cmocka_unit_test(test_any_bytes_of_a_workload_give_a_valid_result),
        cmocka_unit_test(test_names_of_attempts),
        cmocka_unit_test(test_the_first_host_of_a_node_list),
        cmocka_unit_test(test_the_hosts_of_a_node_list),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
