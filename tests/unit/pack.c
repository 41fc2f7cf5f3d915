/* SPDX-License-Identifier: Apache-2.0 */
/* results/pack: what is taken out is what was put in. */
#include "test.h"

#include <jansson.h>

#include "base/json.h"
#include "results/pack.h"

static const char *const values[] = {
    "{}",
    "{\"b\": 1, \"a\": -1, \"c\": 9223372036854775807, \"d\": -9223372036854775808}",
    "{\"b\": 2, \"a\": 0.5, \"c\": 9223372036854775807, \"d\": \"\"}",
    "{\"x\": 0.1, \"y\": -1e-300, \"z\": 1.7976931348623157e308, \"w\": -0.0}",
    "{\"t\": true, \"f\": false, \"n\": null, \"s\": \"\", \"u\": \"\xc3\xa9\\\"\\\\/\\n\"}",
    "{\"env\": {\"gpu\": \"A100\", \"driver\": \"570\", \"n\": 5}, \"l\": [1, [2.5, {\"k\": []}], \"x\"]}",
    "{\"env\": {\"gpu\": \"A100\", \"driver\": \"570\", \"n\": 5}, \"1\": 1, \"{}\": {}, \"[]\": {}, \"\": 2}",
    "{\"env\": {\"driver\": \"570\", \"gpu\": \"A100\", \"n\": 5}, \"}\": [[], {}], \":\": \"s\"}",
    "{\"s\": \"a\\\"b\\\\c\\n\xc3\xa9\", \"l\": [\"\\u00e9\\t\", {}, []], \"e\": {\"a\": [\"}\"]}}",
    "{\"ranks\": [{\"rank\": 0, \"comm_s\": 0.5, \"memory\": {\"a\": 1, \"b\": 2}}, {\"rank\": 1, "
    "\"comm_s\": 0.25, \"memory\": {\"a\": 1, \"b\": 2}}]}",
};

/* Equal, members in the same order. */
static void assert_same(const json_t *a, const json_t *b)
{
    struct hg_buf x = HG_BUF_INIT, y = HG_BUF_INIT;

    hg_json_dump(a, HG_JSON_COMPACT, &x);
    hg_json_dump(b, HG_JSON_COMPACT, &y);
    assert_string_equal(hg_buf_str(&x), hg_buf_str(&y));
    hg_buf_done(&x);
    hg_buf_done(&y);
}

static void assert_packed(const struct hg_pack *p, const json_t *expected)
{
    json_t *found = hg_pack_load(p), *value;
    const char *name;

    assert_same(found, expected);
    json_decref(found);
    json_object_foreach((json_t *)expected, name, value) {
        json_t *member = hg_pack_member(p, name);

        assert_same(member, value);
        json_decref(member);
    }
    assert_null(hg_pack_member(p, "absent"));
}

static void test_objects_come_out_as_they_went_in(void **state)
{
    struct hg_store store = { 0 };
    struct hg_pack packs[3 * N_OF(values)];
    json_t *originals[N_OF(values)];

    (void)state;
    for (size_t i = 0; i < N_OF(values); i++)
        originals[i] = json_loads(values[i], 0, NULL);
    for (size_t i = 0; i < N_OF(packs); i++)
        packs[i] = hg_pack_make(&store, originals[i % N_OF(values)]);
    for (size_t i = 0; i < N_OF(packs); i++) {
        assert_packed(&packs[i], originals[i % N_OF(values)]);
        assert_ptr_equal(packs[i].shape, packs[i % N_OF(values)].shape);
        free(packs[i].scalars);
    }
    for (size_t i = 0; i < N_OF(values); i++)
        json_decref(originals[i]);
    hg_store_done(&store);
}

static void test_texts_and_values_that_are_equal_are_kept_once(void **state)
{
    json_t *a = json_loads(values[5], 0, NULL), *b = json_loads(values[5], 0, NULL);
    struct hg_store store = { 0 };
    char text[] = "a100";

    (void)state;
    assert_ptr_equal(hg_store_text(&store, text), hg_store_text(&store, "a100"));
    assert_ptr_not_equal(hg_store_text(&store, text), text);
    assert_string_equal(hg_store_text(&store, ""), "");
    assert_null(hg_store_text(&store, NULL));
    assert_ptr_equal(hg_store_value(&store, a), hg_store_value(&store, b));
    assert_ptr_not_equal(hg_store_value(&store, a),
                         hg_store_value(&store, json_object_get(a, "env")));
    assert_null(hg_store_value(&store, NULL));
    json_decref(a);
    json_decref(b);
    hg_store_done(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_come_out_as_they_went_in),
        cmocka_unit_test(test_texts_and_values_that_are_equal_are_kept_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
