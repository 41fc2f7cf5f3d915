/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/json.h"
#include "matrix/select.h"

static const char cell_text[] =
    "{\"nodes\": 4, \"lr\": 0.1, \"strategy\": \"ddp\", \"fast\": true, \"hidden\": [64,32], "
    "\"version\": \"2.1\", \"model.layers\": 12, "
    "\"tasks_per_node\": 2, \"repeat\": 3, \"text\": \"a b=2, c\"}";

static int match(const char *text)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_selector *s = hg_selector_parse(text, &err);
    json_t *cell = json_loads(cell_text, 0, NULL);
    int rc = s ? hg_selector_match(s, "rnn-ddp-cpu-2x1-5613912b3be8", cell, &err) : -2;

    assert_true(rc >= 0 || err.code == HG_E_USAGE || err.code == HG_E_INPUT);
    json_decref(cell);
    hg_selector_free(s);
    return rc;
}

static void test_selectors_pick_cells(void **state)
{
    static const struct {
        const char *text;
        int want; /* 1, 0; -1: fails on the cell; -2: does not parse */
    } cases[] = {
        { "nodes=4", 1 },
        { "nodes=4.0", 1 },
        { "nodes=2..8", 1 },
        { "nodes=5..8", 0 },
        { "lr=0.1", 1 },
        { "lr=0.05..0.1", 1 },
        { "nodes=2|4", 1 },
        { "nodes=2|3", 0 },
        { "nodes=1..2|4..6", 1 },
        { "lr>0.01", 1 },
        { "lr>0.1", 0 },
        { "lr>=0.1", 1 },
        { "lr<0.1", 0 },
        { "lr<=0.1", 1 },
        { "nodes<-4", 0 },
        { "lr > 0.01,nodes <= 4", 1 },
        { "lr >= 0.01, nodes < 4", 0 },
        { "ddp nodes > 3", 1 },
        { "strategy>2", 0 },
        { "wrap<3", 0 },
        { "tag=<x>", 0 },
        { "strategy!=dp", 1 },
        { "strategy!=dp|ddp", 0 },
        { "strategy=ddp,nodes=4", 1 },
        { "strategy=ddp,nodes=5", 0 },
        { "fast", 1 },
        { "!fast", 0 },
        { "!wrap", 1 },
        { "wrap", 0 },
        { "wrap!=x", 1 },
        { "fast=true", 1 },
        { "hidden=[64", 0 },
        { "version=2.1", 1 },
        { "nodes=four", 0 },
        { "model.layers=12", 1 },
        { "id=rnn-ddp", 1 },
        { "id=rnn-single", 0 },
        { "id!=rnn-single", 1 },
        { ".nodes > 2", 1 },
        { ".nodes > 2 and .strategy == \"dp\"", 0 },
        { ".wrap", 0 },
        { ".nodes", -1 },
        { ".nodes + \"x\"", -1 },
        { "empty", 0 },
        /* names */
        { "ddp", 1 },
        { "dp", 0 },
        { "4x2", 1 },
        { "2x2", 0 },
        { "ddp 4x2 lr=0.1, run 3", 1 },
        { "ddp 4x2 lr=0.1, run 2", 0 },
        { "ddp 4x1 lr=0.1, run 3", 0 },
        { "ddp lr=0.2", 0 },
        { "lr=0.1 nodes=4", 1 },
        { "run 3", 1 },
        { "no wrap", 1 },
        { "no lr", 0 },
        { "version=\"2.1\"", 1 },
        { "nodes=\"4\"", 0 },
        { "hidden=[64,32], run 3", 1 },
        { "hidden=[64,33], run 3", 0 },
        { "text=\"a b=2, c\" 4x2", 1 },
        { "text=\"a b=2, d\" 4x2", 0 },
        { "nodes==4", -2 },
        { "nodes=", -2 },
        { "", -2 },
        { ",", -2 },
        { "nodes=4,", -2 },
        { ".nodes >", -2 },
        { "(now) > 3", -2 },
        { "lr>", -2 },
        { "lr>fast", -2 },
        { "lr>1|2", -2 },
        { "lr>>1", -2 },
        { "id>3", -2 },
        { "!lr>3", -2 },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++)
        if (match(cases[i].text) != cases[i].want)
            fail_msg("%s gives %d", cases[i].text, match(cases[i].text));
}

static void test_no_selector_picks_everything(void **state)
{
    (void)state;
    assert_int_equal(hg_selector_match(NULL, "x", NULL, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selectors_pick_cells),
        cmocka_unit_test(test_no_selector_picks_everything),
    };

    return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}
