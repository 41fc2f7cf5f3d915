/* SPDX-License-Identifier: Apache-2.0 */
/* Site files drafted from what agents say of a cluster. */
#include "test.h"

#include "base/json.h"
#include "cmd/sitedraft.h"
#include "matrix/site.h"

static json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);

    assert_non_null(value);
    return value;
}

static json_t *draft(const char *partitions, const char *nodes, const char *account,
                     struct hg_err *err)
{
    struct hg_cluster_facts facts = {
        .limits =
            parse("{\"cluster\": \"lab\", \"version\": \"25.05.1\", \"max_array_size\": 1001, "
                  "\"max_jobs\": 10000}"),
        .partitions = parse(partitions),
        .nodes = parse(nodes),
        .account = parse(account),
        .launcher = "srun",
    };
    json_t *site = hg_site_draft("lab", &facts, err);

    hg_cluster_facts_done(&facts);
    return site;
}

/* The hardware and the words of the site, which must be one that hpcgrid reads. */
static void expect(const char *partitions, const char *nodes, const char *account, const char *want)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_buf got = HG_BUF_INIT;
    json_t *site = draft(partitions, nodes, account, &(struct hg_err)HG_ERR_INIT);
    struct hg_json_doc doc = { .root = site };
    struct hg_site *read;

    assert_non_null(site);
    read = hg_site_decode(&doc, site, "", "lab", &errs);
    assert_non_null(read);
    hg_site_free(read);
    json_object_del(site, "_note");
    json_object_del(site, "_limits");
    json_object_del(site, "name");
    hg_json_dump(site, 0, &got);
    assert_string_equal(hg_buf_str(&got), want);
    hg_buf_done(&got);
    json_decref(site);
}

#define NO_ACCOUNT "{\"account\": \"\", \"qos\": \"\"}"

static void test_kinds_come_from_gres_and_limits_from_partitions(void **state)
{
    (void)state;
    expect("{\"partitions\": ["
           "{\"name\": \"main\", \"up\": true, \"default\": true, \"nodes\": \"c[1-2]\", "
           "\"max_time_s\": null, \"max_nodes\": null},"
           "{\"name\": \"gpu\", \"up\": true, \"nodes\": \"g[1-3]\", \"max_time_s\": 172800, "
           "\"max_nodes\": 2},"
           "{\"name\": \"gpu-debug\", \"up\": true, \"nodes\": \"g1\", \"max_time_s\": 1800, "
           "\"max_nodes\": 1},"
           "{\"name\": \"old\", \"up\": true, \"nodes\": \"o1\", \"max_time_s\": 3600},"
           "{\"name\": \"broken\", \"up\": false, \"nodes\": \"o1\"}]}",
           "{\"nodes\": ["
           "{\"name\": \"c1\", \"cpus\": 48, \"mem_mib\": 190000, \"gres\": \"\"},"
           "{\"name\": \"c2\", \"cpus\": 32, \"mem_mib\": 95000, \"gres\": \"(null)\"},"
           "{\"name\": \"g1\", \"cpus\": 64, \"mem_mib\": 515000, \"gres\": "
           "\"nvme:1,gpu:a100:4(S:0,1),mps:4\"},"
           "{\"name\": \"g2\", \"cpus\": 64, \"mem_mib\": 515000, \"gres\": \"gpu:a100:4(S:0-1)\"},"
           "{\"name\": \"g3\", \"cpus\": 72, \"mem_mib\": 255000, \"gres\": \"gpu:h100:2\"},"
           "{\"name\": \"o1\", \"cpus\": 8, \"mem_mib\": 1, \"gres\": \"gpu:2\"}]}",
           "{\"account\": \"physics\", \"qos\": \"normal\"}",
           "{\"launcher\":\"srun\",\"account\":\"physics\",\"qos\":\"normal\",\"default\":\"cpu\","
           "\"hardware\":{"
           "\"cpu\":{\"partition\":\"main\",\"max_nodes\":2,\"gpus_per_node\":0,"
           "\"cores_per_node\":32,\"device_mem\":\"92G\"},"
           "\"a100\":{\"partition\":\"gpu-debug\",\"gres\":\"gpu:a100\",\"max_nodes\":1,"
           "\"max_time\":\"00:30:00\",\"gpus_per_node\":4,\"cores_per_node\":64,"
           "\"cpus_per_gpu\":16,\"mem_per_gpu\":\"125G\"},"
           "\"gpu\":{\"partition\":\"old\",\"gres\":\"gpu\",\"max_nodes\":1,"
           "\"max_time\":\"01:00:00\",\"gpus_per_node\":2,\"cores_per_node\":8,"
           "\"cpus_per_gpu\":4},"
           "\"a100-gpu\":{\"partition\":\"gpu\",\"gres\":\"gpu:a100\",\"max_nodes\":2,"
           "\"max_time\":\"2-00:00:00\",\"gpus_per_node\":4,\"cores_per_node\":64,"
           "\"cpus_per_gpu\":16,\"mem_per_gpu\":\"125G\"},"
           "\"h100\":{\"partition\":\"gpu\",\"gres\":\"gpu:h100\",\"max_nodes\":1,"
           "\"max_time\":\"2-00:00:00\",\"gpus_per_node\":2,\"cores_per_node\":72,"
           "\"cpus_per_gpu\":36,\"mem_per_gpu\":\"124G\"}}}");
}

static void test_partitions_that_are_not_open_or_add_nothing_are_left_out(void **state)
{
    (void)state;
    expect("{\"partitions\": ["
           "{\"name\": \"all\", \"up\": true, \"default\": true, \"nodes\": \"c1,g1\"},"
           "{\"name\": \"cpu\", \"up\": true, \"nodes\": \"c1\"},"
           "{\"name\": \"theirs\", \"up\": true, \"nodes\": \"g1\", \"allow_accounts\": "
           "\"physics2,metaphysics\"},"
           "{\"name\": \"ours\", \"up\": true, \"nodes\": \"g1\", \"allow_accounts\": "
           "\"math,physics\", \"allow_qos\": \"gpu\"}]}",
           "{\"nodes\": ["
           "{\"name\": \"c1\", \"cpus\": 4, \"mem_mib\": 1, \"gres\": \"\"},"
           "{\"name\": \"g1\", \"cpus\": 4, \"mem_mib\": 1, \"gres\": \"gpu:t4/x:1\"}]}",
           "{\"account\": \"physics\", \"qos\": \"normal\"}",
           "{\"launcher\":\"srun\",\"account\":\"physics\",\"qos\":\"normal\",\"default\":\"cpu\","
           "\"hardware\":{"
           "\"cpu\":{\"partition\":\"cpu\",\"max_nodes\":1,\"gpus_per_node\":0,"
           "\"cores_per_node\":4},"
           "\"t4-x\":{\"partition\":\"ours\",\"gres\":\"gpu:t4/x\",\"max_nodes\":1,"
           "\"gpus_per_node\":1,\"cores_per_node\":4,\"cpus_per_gpu\":4,\"qos\":\"gpu\"}}}");
}

static void test_names_stay_different(void **state)
{
    struct hg_errs errs = HG_ERRS_INIT;
    json_t *site = draft("{\"partitions\": [{\"name\": \"p\", \"up\": true, \"nodes\": \"a,b,c\"},"
                         "{\"name\": \"p2\", \"up\": true, \"nodes\": \"b\", \"max_time_s\": 60}]}",
                         "{\"nodes\": [{\"name\": \"a\", \"cpus\": 1, \"gres\": \"gpu:x:1\"},"
                         "{\"name\": \"b\", \"cpus\": 1, \"gres\": \"gpu:x:2\"},"
                         "{\"name\": \"c\", \"cpus\": 1, \"gres\": \"gpu:x:3\"}]}",
                         NO_ACCOUNT, &(struct hg_err)HG_ERR_INIT);
    const json_t *hardware = json_object_get(site, "hardware");

    (void)state;
    assert_int_equal(json_object_size(hardware), 4);
    assert_non_null(json_object_get(hardware, "x"));
    assert_non_null(json_object_get(hardware, "x-p"));
    assert_non_null(json_object_get(hardware, "x-p-2"));
    assert_non_null(json_object_get(hardware, "x-p-3"));
    json_decref(site);
    hg_errs_done(&errs);
}

static void test_no_open_partition_is_an_error(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_null(draft("{\"partitions\": [{\"name\": \"p\", \"up\": false, \"nodes\": \"a\"}]}",
                      "{\"nodes\": [{\"name\": \"a\"}]}", NO_ACCOUNT, &err));
    assert_string_equal(err.text, "no site can be drafted: no partition is up and open to you");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_come_from_gres_and_limits_from_partitions),
        cmocka_unit_test(test_partitions_that_are_not_open_or_add_nothing_are_left_out),
        cmocka_unit_test(test_names_stay_different),
        cmocka_unit_test(test_no_open_partition_is_an_error),
    };

    return cmocka_run_group_tests_name("sitedraft", tests, NULL, NULL);
}
