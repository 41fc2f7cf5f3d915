/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "matrix/site.h"

static void test_every_site_that_ships_is_right(void **state)
{
    static const char *const names[] = { "box",      "laptop", "cesga-ft3",    "juwels-booster",
                                         "karolina", "lumi",   "marenostrum5", "perlmutter",
                                         "snellius", "vega" };

    (void)state;
    setenv("SBATCH_ACCOUNT", "p", 1);
    for (size_t i = 0; i < N_OF(names); i++) {
        struct hg_errs errs = HG_ERRS_INIT;
        struct hg_site *site = hg_site_find(names[i], &errs);

        assert_non_null(site);
        assert_string_equal(site->name, names[i]);
        assert_non_null(hg_site_find_hardware(site, site->default_hardware));
        assert_int_equal(errs.n, 0);
        hg_site_free(site);
    }
    unsetenv("SBATCH_ACCOUNT");
}

static void test_finisterrae_asks_for_what_it_wants(void **state)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_site *site = hg_site_find("cesga-ft3", &errs);
    const struct hg_hardware *a100 = hg_site_find_hardware(site, "a100");

    (void)state;
    assert_string_equal(a100->gres, "gpu:a100");
    assert_int_equal(a100->cpus_per_gpu, 32);
    assert_int_equal(a100->gpus_per_node, 2);
    assert_non_null(a100->mem_per_gpu);
    assert_string_equal(site->modules[0], "cesga/2020");
    hg_site_free(site);
}

static void test_defaults_of_a_site(void **state)
{
    static const char text[] = "{\"hardware\": {\"only\": {\"gpus_per_node\": 1}}}";
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_site *site;

    (void)state;
    assert_int_equal(hg_json_parse("m.json", text, strlen(text), &doc, NULL), 0);
    site = hg_site_from_value(&doc, doc.root, "", ".", &errs);
    assert_non_null(site);
    assert_string_equal(site->name, "inline");
    assert_string_equal(site->launcher, "srun --mpi=pmix");
    assert_string_equal(site->default_hardware, "only");
    assert_int_equal(site->signal_lead_s, 120);
    assert_string_equal(site->hardware[0].backend, "cuda");
    assert_null(hg_site_find_hardware(site, "other"));
    hg_site_free(site);
    hg_json_doc_done(&doc);
}

static void test_a_site_survives_its_run_file(void **state)
{
    char path[] = "/tmp/hg-site-XXXXXX.json";
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_site *site = hg_site_find("cesga-ft3", &errs), *again;
    int fd = mkstemps(path, 5);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(hg_json_save(path, site->json, NULL), 0);
    again = hg_site_load(path, &errs);
    assert_non_null(again);
    assert_string_equal(again->name, "cesga-ft3");
    assert_true(hg_json_equal(site->json, again->json));
    assert_int_equal(again->n_hardware, site->n_hardware);
    unlink(path);
    hg_site_free(site);
    hg_site_free(again);
}

static void test_sites_of_ones_own_are_found(void **state)
{
    char dir[] = "/tmp/hg-sites-XXXXXX";
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_site *site;
    char *path;

    (void)state;
    assert_non_null(mkdtemp(dir));
    path = hg_fs_join(dir, "mine.json");
    assert_int_equal(hg_fs_replace(path, "{\"hardware\":{\"x\":{}}}", 21, 0644, NULL), 0);
    assert_null(hg_site_find("mine", &errs));
    assert_int_equal(errs.items[0].code, HG_E_INPUT);
    setenv("HPCGRID_SITES", dir, 1);
    site = hg_site_find("mine", &errs);
    assert_non_null(site);
    assert_string_equal(site->name, "mine");
    hg_site_free(site);
    site = hg_site_find(path, &errs);
    assert_non_null(site);
    hg_site_free(site);
    unsetenv("HPCGRID_SITES");
    unlink(path);
    rmdir(dir);
    free(path);
    hg_errs_done(&errs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_site_that_ships_is_right),
        cmocka_unit_test(test_finisterrae_asks_for_what_it_wants),
        cmocka_unit_test(test_defaults_of_a_site),
        cmocka_unit_test(test_a_site_survives_its_run_file),
        cmocka_unit_test(test_sites_of_ones_own_are_found),
    };

    return cmocka_run_group_tests_name("site", tests, NULL, NULL);
}
