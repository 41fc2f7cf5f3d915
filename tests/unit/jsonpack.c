/* SPDX-License-Identifier: Apache-2.0 */
/* base/jsonpack: what is taken out is what was put in. base/jsontext: the canonical text of what hg_json_dump wrote. */
#include "test.h"

#include <jansson.h>

#include "base/json.h"
#include "base/jsonpack.h"
#include "base/jsontext.h"
#include "base/map.h"

static const char *const values[] = {
    "{}",
    "[]",
    "{\"b\": 1, \"a\": -1, \"c\": 9223372036854775807, \"d\": -9223372036854775808}",
    "{\"x\": 0.1, \"y\": -1e-300, \"z\": 1.7976931348623157e308, \"w\": -0.0}",
    "{\"t\": true, \"f\": false, \"n\": null, \"s\": \"\", \"u\": \"\xc3\xa9\\u0000\\\"\\\\/\\n\"}",
    "{\"env\": {\"gpu\": \"A100\", \"driver\": \"570\", \"n\": 5}, \"l\": [1, [2.5, {\"k\": []}], \"x\"]}",
    "{\"env\": {\"gpu\": \"A100\", \"driver\": \"570\", \"n\": 5}, \"1\": 1, \"{}\": {}, \"[]\": {}, \"\": 2}",
    "{\"env\": {\"driver\": \"570\", \"gpu\": \"A100\", \"n\": 5}}",
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

static void test_values_come_out_as_they_went_in(void **state)
{
    struct hg_jsonpack *p = hg_jsonpack_create();
    size_t handles[3 * N_OF(values)];
    json_t *originals[N_OF(values)];

    (void)state;
    for (size_t i = 0; i < N_OF(values); i++) {
        originals[i] = json_loads(values[i], JSON_ALLOW_NUL, NULL);
        assert_non_null(originals[i]);
    }
    for (size_t i = 0; i < N_OF(handles); i++) {
        handles[i] = hg_jsonpack_add(p, originals[i % N_OF(values)]);
        assert_int_not_equal(handles[i], HG_MAP_NONE);
    }
    for (size_t i = 0; i < N_OF(handles); i++) {
        const json_t *wanted = originals[i % N_OF(values)];
        json_t *found = hg_jsonpack_load(p, handles[i]), *value;
        const char *name;

        assert_same(found, wanted);
        json_decref(found);
        json_object_foreach((json_t *)wanted, name, value) {
            json_t *member = hg_jsonpack_member(p, handles[i], name);

            assert_non_null(member);
            assert_same(member, value);
            json_decref(member);
        }
        assert_null(hg_jsonpack_member(p, handles[i], "absent"));
    }
    for (size_t i = 0; i < N_OF(values); i++)
        json_decref(originals[i]);
    hg_jsonpack_free(p);
}

static void test_what_comes_again_is_there_once(void **state)
{
    struct hg_jsonpack *p = hg_jsonpack_create();
    const json_t *first = NULL;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        json_t *value = json_loads(values[5], 0, NULL), *env;
        size_t handle = hg_jsonpack_add(p, value);

        env = hg_jsonpack_member(p, handle, "env");
        if (i == 1)
            first = env; /* the second time it is known to come again */
        if (i > 1)
            assert_ptr_equal(env, first);
        assert_ptr_equal(hg_jsonpack_share(p, json_object_get(value, "l")),
                         hg_jsonpack_share(p, json_object_get(value, "l")));
        json_decref(env);
        json_decref(value);
    }
    hg_jsonpack_free(p);
}

/* Packed as text a value is what it is when it is packed as a tree, and takes the same room. */
static void assert_packed_text(const char *text, const json_t *object)
{
    struct hg_jsonpack *p = hg_jsonpack_create();
    json_t *head = json_pack("{s: i}", "\x01head", 1), *wanted = json_copy(head);
    json_t *list = json_object_get(object, "l");

    json_object_update(wanted, (json_t *)object);
    for (int i = 0; i < 3; i++) { /* later ones share what came before */
        size_t handle = hg_jsonpack_add_text(p, head, text);
        json_t *found = hg_jsonpack_load(p, handle), *first = hg_jsonpack_first(p, handle, "l");

        assert_same(found, wanted);
        assert_true(json_array_size(list) ? json_equal(first, json_array_get(list, 0)) : !first);
        json_decref(first);
        json_decref(found);
    }
    json_decref(wanted);
    json_decref(head);
    hg_jsonpack_free(p);
}

static void test_canonical_text_is_that_of_dump(void **state)
{
    struct hg_json_canonical c = HG_JSON_CANONICAL_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(values); i++)
        for (unsigned flags = 0; flags <= HG_JSON_INDENT; flags += HG_JSON_INDENT) {
            json_t *value = json_loads(values[i], JSON_ALLOW_NUL, NULL), *again;
            struct hg_buf text = HG_BUF_INIT, wanted = HG_BUF_INIT;
            size_t n = json_object_size(value);

            hg_json_dump(value, flags, &text);
            hg_buf_puts(&text, "\n");
            hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &wanted);
            again = json_loadb(text.data, text.len, 0, NULL); /* NULL: there is a NUL in it */
            assert_true(hg_json_canonical_read(&c, text.data, text.len) == json_is_object(again));
            if (json_is_object(again)) {
                assert_packed_text(text.data, again);
                assert_string_equal(hg_buf_str(&c.text), hg_buf_str(&wanted));
                assert_int_equal(c.n, n);
            }
            for (size_t k = 0; k < c.n; k++) { /* the places of its members are those in the text */
                const struct hg_json_member *m = &c.items[k];
                char name[64], end = k + 1 < c.n ? ',' : '}';

                snprintf(name, sizeof name, "%.*s", (int)m->name_len, c.text.data + m->name);
                assert_ptr_equal(hg_json_canonical_find(&c, name), m);
                assert_int_equal(c.text.data[m->begin], '"');
                assert_int_equal(c.text.data[m->end], end);
                assert_int_equal(c.text.data[m->value - 1], ':');
            }
            hg_buf_done(&text);
            hg_buf_done(&wanted);
            json_decref(again);
            json_decref(value);
        }
    hg_json_canonical_done(&c);
}

static void test_what_is_odd_is_left_to_the_parser(void **state)
{
    static const char *const odd[] = { "",
                                       "1",
                                       "{",
                                       "{\"a\"",
                                       "{\"a\":",
                                       "{\"a\":}",
                                       "{\"a\":1",
                                       "{\"a\":1,}",
                                       "{\"a\":1,\"a\":2}",
                                       "{a:1}",
                                       "{\"a\":1} x",
                                       "{\"\xc3\xa9\":1}",
                                       "{\"a\":[}",
                                       "{\"a\":[1,}",
                                       "{\"a\\u0062\":1}",
                                       "{\"a\":\"",
                                       "{\"a\":\"\\",
                                       "{\"b\":1,\"a\":2,\"b\":3}",
                                       "{\"a\":01}",
                                       "{\"a\":1.}",
                                       "{\"a\":-}",
                                       "{\"a\":tru}",
                                       "{\"a\":1e}",
                                       "{\"a\":1e999}",
                                       "{\"a\":9223372036854775808}",
                                       "{\"a\":NaN}",
                                       "{\"a\":[1 2]}",
                                       "{\"a\":\"\xff\"}",
                                       "{\"a\":\"\x01\"}",
                                       "{\"a\":\"\\x\"}",
                                       "{\"a\":\"\\ud800\"}" };
    static const char usual[] = "{\"a\":1e-300,\"b\":9223372036854775807}";
    struct hg_json_canonical c = HG_JSON_CANONICAL_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(odd); i++)
        assert_false(hg_json_canonical_read(&c, odd[i], strlen(odd[i])));
    assert_true(hg_json_canonical_read(&c, usual, strlen(usual)));
    assert_true(hg_json_canonical_read(&c, " {} ", 4));
    assert_string_equal(hg_buf_str(&c.text), "{}");
    hg_json_canonical_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_out_as_they_went_in),
        cmocka_unit_test(test_what_comes_again_is_there_once),
        cmocka_unit_test(test_canonical_text_is_that_of_dump),
        cmocka_unit_test(test_what_is_odd_is_left_to_the_parser),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
