/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/seal.h"
#include "rundir/events.h"
#include "rundir/journal.h"

static char *journal_path(void)
{
    return hg_fs_join(dir, "events.jsonl");
}

static struct hg_journal *open_journal(uint32_t fence)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_journal *j = hg_journal_open(dir, fence, NULL, NULL, &err);

    if (!j)
        print_error("%s\n", err.text);
    assert_non_null(j);
    return j;
}

static void add(struct hg_journal *j, const char *kind, const char *members)
{
    assert_int_equal(hg_journal_add(j, 1000, kind, json_loads(members, 0, NULL), NULL), 0);
}

static void say(struct hg_journal *j, const char *kind, const char *members)
{
    struct hg_err err = HG_ERR_INIT;

    add(j, kind, members);
    if (hg_journal_commit(j, &err) < 0)
        fail_msg("%s: %s", members, err.text);
}

static const char *state_of(const struct hg_journal *j, int batch, uint32_t line)
{
    return hg_cell_state_names[hg_run_cell_find(hg_journal_state(j), batch, line)->state];
}

/* ---- The fold ---- */

struct step {
    const char *kind, *members;
    const char *cells; /* states of cells 0, 1, 2 afterwards; NULL: there are none */
};

static void walk(struct hg_journal *j, const struct step *steps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char found[128];

        say(j, steps[i].kind, steps[i].members);
        if (!steps[i].cells)
            continue;
        snprintf(found, sizeof found, "%s %s %s", state_of(j, 1, 0), state_of(j, 1, 1),
                 state_of(j, 1, 2));
        if (strcmp(found, steps[i].cells) != 0)
            fail_msg("step %zu (%s): %s, wanted %s", i, steps[i].members, found, steps[i].cells);
    }
}

static void test_every_way_through_the_states(void **state)
{
    static const struct step steps[] = {
        { "open", "{\"schema\":\"hpcgrid-events/1\"}", NULL },
        { "plan", "{\"batches\":[3]}", "waiting waiting waiting" },
        { "intent", "{\"submission\":1,\"claim\":1,\"key\":\"k1\",\"batch\":1,\"tasks\":\"0-1\"}",
          "intended intended waiting" },
        { "rejected", "{\"submission\":1,\"again\":true,\"text\":\"full\"}",
          "waiting waiting waiting" },
        { "intent", "{\"submission\":2,\"claim\":2,\"key\":\"k2\",\"batch\":1,\"tasks\":\"0-2\"}",
          "intended intended intended" },
        { "ambiguous", "{\"submission\":2,\"until\":1010,\"text\":\"timeout\"}",
          "ambiguous ambiguous ambiguous" },
        { "settled", "{\"submission\":2,\"found\":true,\"job\":9}", "pending pending pending" },
        { "state", "{\"submission\":2,\"tasks\":\"0\",\"state\":\"RUNNING\"}",
          "running pending pending" },
        { "lost", "{\"submission\":2,\"tasks\":\"1-2\"}", "running waiting waiting" },
        { "intent",
          "{\"submission\":3,\"claim\":2,\"key\":\"k3\",\"batch\":1,\"offset\":1,\"tasks\":\"0-1\"}",
          "running intended intended" },
        { "submitted", "{\"submission\":3,\"job\":10}", "running pending pending" },
        /* the old job is no longer heard for the cells it lost ... */
        { "state", "{\"submission\":2,\"state\":\"COMPLETED\"}", "ended pending pending" },
        /* ... but a result under the common claim counts, whoever wrote it */
        { "result", "{\"submission\":2,\"tasks\":\"0-1\",\"status\":\"ok\"}", "ok ok pending" },
        { "state",
          "{\"submission\":3,\"tasks\":\"1\",\"state\":\"PENDING\",\"restarts\":1,\"text\":"
          "\"BeginTime\"}",
          "ok ok pending" },
        { "cancel", "{\"batch\":1,\"lines\":\"0-2\"}", "ok ok pending" },
        { "verdict", "{\"submission\":3,\"tasks\":\"1\",\"status\":\"cancelled\"}",
          "ok ok cancelled" },
        { "again", "{\"batch\":1,\"lines\":\"2\"}", "ok ok waiting" },
        { "intent", "{\"submission\":4,\"claim\":4,\"key\":\"k4\",\"batch\":1,\"tasks\":\"2\"}",
          "ok ok intended" },
        { "rejected", "{\"submission\":4,\"text\":\"no such partition\"}", "ok ok refused" },
        { "again", "{\"batch\":1,\"lines\":\"2\"}", "ok ok waiting" },
        { "intent", "{\"submission\":5,\"claim\":5,\"key\":\"k5\",\"batch\":1,\"tasks\":\"2\"}",
          "ok ok intended" },
        { "settled", "{\"submission\":5,\"found\":false}", "ok ok waiting" },
        /* it was there after all */
        { "settled", "{\"submission\":5,\"found\":true}", "ok ok pending" },
        { "cancel", "{\"batch\":1,\"lines\":\"2\"}", "ok ok pending" },
        { "lost", "{\"submission\":5,\"tasks\":\"2\"}", "ok ok cancelled" },
        { "hold", "{\"batch\":1,\"lines\":\"0-2\"}", "ok ok cancelled" },
        { "release", "{\"batch\":1,\"lines\":\"2\"}", "ok ok cancelled" },
        { "hold", "{}", "ok ok cancelled" },
        { "plan", "{\"batches\":[3,2]}", "ok ok cancelled" },
    };
    struct hg_journal *j = open_journal(1);

    (void)state;
    walk(j, steps, N_OF(steps));
    assert_int_equal(hg_journal_state(j)->counts[HG_CELL_WAITING], 2);
    assert_int_equal(hg_journal_state(j)->counts[HG_CELL_OK], 2);
    assert_int_equal(hg_journal_state(j)->cells, 5);
    assert_int_equal(hg_run_count_held(hg_journal_state(j)),
                     2); /* those of the batch that came later */
    say(j, "again", "{\"batch\":1,\"lines\":\"2\"}");
    assert_int_equal(hg_run_count_held(hg_journal_state(j)), 3);
    say(j, "release", "{\"batch\":2,\"lines\":\"1\"}");
    assert_int_equal(hg_run_count_held(hg_journal_state(j)), 2);
    say(j, "release", "{}");
    assert_int_equal(hg_run_count_held(hg_journal_state(j)), 0);
    hg_journal_close(j);
}

/* What comes late, twice, or from a submission that the cell has left. */
static void test_records_that_no_longer_concern_a_cell_change_nothing(void **state)
{
    static const struct step steps[] = {
        { "open", "{\"schema\":\"hpcgrid-events/1\",\"cluster\":\"lumi\"}", NULL },
        { "plan", "{\"batches\":[3],\"removed\":[\"\",\"0\"]}", "waiting waiting waiting" },
        { "receipt", "{}", "waiting waiting waiting" },
        { "intent", "{\"submission\":1,\"claim\":1,\"batch\":1,\"tasks\":\"0-1\"}",
          "intended intended waiting" },
        { "again", "{\"batch\":1,\"lines\":\"0-1\"}", "intended intended waiting" },
        { "submitted", "{\"submission\":1,\"job\":7}", "pending pending waiting" },
        { "submitted", "{\"submission\":1,\"job\":7}", "pending pending waiting" },
        { "ambiguous", "{\"submission\":1}", "pending pending waiting" },
        { "rejected", "{\"submission\":1}", "pending pending waiting" },
        { "settled", "{\"submission\":1}", "pending pending waiting" },
        { "lost", "{\"submission\":1,\"tasks\":\"1\"}", "pending waiting waiting" },
        { "intent", "{\"submission\":2,\"claim\":2,\"batch\":1,\"tasks\":\"1\"}",
          "pending intended waiting" },
        { "submitted", "{\"submission\":1,\"job\":7}", "pending intended waiting" },
        { "ambiguous", "{\"submission\":1}", "pending intended waiting" },
        { "rejected", "{\"submission\":1}", "pending intended waiting" },
        { "settled", "{\"submission\":1}", "pending intended waiting" },
        { "settled", "{\"submission\":1,\"found\":true}", "pending intended waiting" },
        { "lost", "{\"submission\":1,\"tasks\":\"1\"}", "pending intended waiting" },
        { "result", "{\"submission\":1,\"tasks\":\"1\",\"status\":\"ok\"}",
          "pending intended waiting" },
        /* a claim goes on with another submission */
        { "settled", "{\"submission\":2}", "pending waiting waiting" },
        { "intent", "{\"submission\":3,\"claim\":2,\"batch\":1,\"tasks\":\"1\"}",
          "pending intended waiting" },
        { "settled", "{\"submission\":2,\"found\":true}", "pending intended waiting" },
        { "cancel", "{\"batch\":1,\"lines\":\"1\"}", "pending intended waiting" },
        { "rejected", "{\"submission\":3}", "pending cancelled waiting" },
        { "recalled", "{\"submission\":3}", "pending cancelled waiting" },
        { "adopted", "{\"batch\":1,\"lines\":\"0-2\"}", "pending cancelled ok" },
        { "state", "{\"submission\":1,\"tasks\":\"0\",\"state\":\"SUSPENDED\",\"start\":5}",
          "running cancelled ok" },
        { "state", "{\"submission\":1,\"tasks\":\"0\",\"state\":\"RUNNING\",\"restarts\":1}",
          "running cancelled ok" },
        { "state", "{\"submission\":1,\"tasks\":\"0\",\"state\":\"RUNNING\",\"restarts\":1}",
          "running cancelled ok" },
        { "plan", "{\"batches\":[3],\"removed\":[\"0\"]}", "running cancelled ok" },
        { "plan", "{\"batches\":[3],\"removed\":[\"\"]}", "running cancelled ok" },
        { "recalled", "{\"submission\":1,\"tasks\":\"0\"}", "waiting cancelled ok" },
        { "intent", "{\"submission\":4,\"claim\":1,\"batch\":1,\"tasks\":\"0\"}",
          "intended cancelled ok" },
        { "result", "{\"submission\":4,\"status\":\"of the next release\",\"restarts\":2}",
          "failed cancelled ok" },
        { "state", "{\"submission\":4,\"state\":\"RUNNING\"}", "failed cancelled ok" },
        { "lost", "{\"submission\":4}", "failed cancelled ok" },
        /* the matrix loses two of them and gets them back */
        { "plan", "{\"batches\":[3],\"removed\":[\"0-1\"]}", "removed removed ok" },
        { "again", "{\"batch\":1,\"lines\":\"0\"}", "removed removed ok" },
        { "plan", "{\"batches\":[3],\"removed\":[null]}", "waiting cancelled ok" },
        { "plan", "{\"batches\":[3],\"spare\":[\"0-1\"]}", "not_needed cancelled ok" },
        { "cancel", "{\"batch\":1,\"lines\":\"0\"}", "not_needed cancelled ok" },
        { "need", "{\"batch\":1,\"lines\":\"0-2\"}", "not_needed cancelled ok" },
    };
    struct hg_journal *j = open_journal(1);
    const struct hg_run_state *s = hg_journal_state(j);

    (void)state;
    walk(j, steps, N_OF(steps));
    assert_string_equal(s->cluster, "lumi");
    assert_int_equal(hg_run_cell_find(s, 1, 1)->losses, 1); /* what was recalled is not lost */
    hg_journal_close(j);
}

/* A cell counts its losses up to what its byte holds. */
static void test_losses_are_counted_to_255(void **state)
{
    struct hg_run_state *s = hg_run_state_create();

    (void)state;
    assert_int_equal(hg_run_state_apply(s, "plan", json_pack("{s:[i]}", "batches", 1), NULL), 0);
    for (int i = 1; i <= 300; i++) {
        json_t *intent = json_pack("{s:i, s:i, s:i, s:s}", "submission", i, "claim", 1, "batch", 1,
                                   "tasks", "0");

        assert_int_equal(hg_run_state_apply(s, "intent", intent, NULL), 0);
        assert_int_equal(hg_run_state_apply(s, "lost", json_pack("{s:i}", "submission", i), NULL),
                         0);
        assert_int_equal(hg_run_cell_find(s, 1, 0)->losses, i < 255 ? i : 255);
    }
    hg_run_state_free(s);
}

static void test_a_plan_of_too_many_batches_is_an_error(void **state)
{
    struct hg_run_state *s = hg_run_state_create();
    struct hg_err err = HG_ERR_INIT;
    json_t *list = json_array();

    (void)state;
    for (int i = 0; i <= 1000000; i++)
        json_array_append_new(list, json_integer(0));
    assert_int_equal(hg_run_state_apply(s, "plan", json_pack("{s:o}", "batches", list), &err), -1);
    assert_int_equal(err.code, HG_E_INPUT);
    assert_int_equal(hg_run_state_apply(s, "plan", NULL, &err), -1); /* not UTF-8 */
    hg_run_state_free(s);
}

static void test_records_that_contradict_the_others_are_errors(void **state)
{
    static const struct {
        const char *kind, *members;
    } bad[] = {
        { "plan", "{\"batches\":[1]}" },
        { "plan", "{\"batches\":[3,1e9,999999999999]}" },
        { "submitted", "{\"submission\":1}" },
        { "intent", "{\"submission\":2,\"claim\":2,\"batch\":1,\"tasks\":\"0\"}" },
        { "intent", "{\"submission\":1,\"batch\":1,\"tasks\":\"0\"}" },
        { "intent", "{\"submission\":1,\"claim\":1,\"batch\":2,\"tasks\":\"0\"}" },
        { "intent", "{\"submission\":1,\"claim\":1,\"batch\":1,\"tasks\":\"3\"}" },
        { "intent",
          "{\"submission\":1,\"claim\":1,\"batch\":1,\"offset\":4294967295,\"tasks\":\"1\"}" },
        { "intent", "{\"submission\":1,\"claim\":1,\"batch\":1,\"tasks\":\"x\"}" },
        { "intent", "{\"submission\":1,\"claim\":1,\"together\":0,\"batch\":1,\"tasks\":\"0\"}" },
        { "state", "{\"submission\":0,\"state\":\"RUNNING\"}" },
        { "plan", "{\"batches\":[3],\"removed\":[\"x\"]}" },
        { "plan", "{\"batches\":[3],\"spare\":[\"3\"]}" },
        { "cancel", "{\"batch\":1,\"lines\":\"0-3\"}" },
        { "cancel", "{\"batch\":1,\"lines\":\"2-4,6\"}" },
        { "cancel", "{\"batch\":-1,\"lines\":\"0\"}" },
        { "hold", "{\"batch\":2,\"lines\":\"0\"}" },
        { "release", "{\"batch\":1,\"lines\":\"x\"}" },
        { "future", "{}" },
        { "open", "{\"schema\":\"hpcgrid-events/2\"}" },
    };

    (void)state;
    for (size_t i = 0; i < N_OF(bad); i++) {
        struct hg_journal *j = open_journal(1);
        struct hg_err err = HG_ERR_INIT;
        char *path = journal_path();

        say(j, "plan", "{\"batches\":[3]}");
        add(j, bad[i].kind, bad[i].members);
        assert_int_equal(hg_journal_commit(j, &err), -1);
        assert_int_equal(err.code, HG_E_INPUT);
        hg_journal_close(j);
        unlink(path);
        free(path);
    }
}

/* ---- The file ---- */

#define RECORDS 64

struct snapshot {
    size_t end; /* of the record in the file */
    size_t counts[HG_CELL_STATES];
};

/* A journal of 64 records of every kind; snaps[n] is the state after n of them. */
static void write_journal(struct snapshot snaps[RECORDS + 1])
{
    struct hg_journal *j = open_journal(1);
    char *path = journal_path();
    char members[160];

    memset(snaps, 0, (RECORDS + 1) * sizeof *snaps);
    for (int i = 1; i <= RECORDS; i++) {
        int sub = (i - 3) / 4 + 1;
        struct stat st;

        if (i == 1) {
            add(j, "open", "{\"schema\":\"hpcgrid-events/1\"}");
        } else if (i == 2) {
            add(j, "plan", "{\"batches\":[40]}");
        } else if ((i - 3) % 4 == 0) {
            snprintf(members, sizeof members,
                     "{\"submission\":%d,\"claim\":%d,\"key\":\"%032d\",\"batch\":1,"
                     "\"offset\":%d,\"tasks\":\"0-1\",\"rpc\":[1,2,0]}",
                     sub, sub, sub, sub * 2);
            add(j, "intent", members);
        } else if ((i - 3) % 4 == 1) {
            snprintf(members, sizeof members, "{\"submission\":%d,\"job\":%d}", sub, sub + 100);
            add(j, "submitted", members);
        } else {
            snprintf(
                members, sizeof members,
                "{\"submission\":%d,\"tasks\":\"%d\",\"status\":\"%s\",\"text\":\"a \\\"b\\\"\"}",
                sub, (i - 3) % 4 - 2, (i - 3) % 4 == 2 ? "ok" : "failed");
            add(j, "result", members);
        }
        assert_int_equal(hg_journal_commit(j, NULL), 0);
        stat(path, &st);
        snaps[i].end = (size_t)st.st_size;
        memcpy(snaps[i].counts, hg_journal_state(j)->counts, sizeof snaps[i].counts);
    }
    hg_journal_close(j);
    free(path);
}

static void test_every_prefix_replays_to_a_state_that_was(void **state)
{
    struct snapshot snaps[RECORDS + 1];
    struct hg_buf text = HG_BUF_INIT;
    char *path = journal_path();
    size_t done = 0;

    (void)state;
    write_journal(snaps);
    assert_int_equal(hg_fs_read(path, 1 << 20, &text, NULL), 0);
    for (size_t len = 0; len <= text.len; len++) {
        struct hg_run_state *s = hg_run_state_create();
        size_t used;

        while (done < RECORDS && snaps[done + 1].end <= len)
            done++;
        assert_int_equal(hg_run_state_fold(s, path, text.data, len, &used, NULL), 0);
        assert_int_equal(used, snaps[done].end);
        assert_int_equal(s->seq, done);
        assert_int_equal(s->torn, len > used);
        assert_memory_equal(s->counts, snaps[done].counts, sizeof s->counts);
        hg_run_state_free(s);
    }
    assert_int_equal(done, RECORDS);
    hg_buf_done(&text);
    free(path);
}

/* Fold the journal from start on with one bit flipped; the line that is damaged. */
static int fold_flipped(struct hg_run_state *s, const char *path, struct hg_buf *text, size_t start,
                        size_t bit)
{
    struct hg_err err = HG_ERR_INIT;
    size_t used;

    text->data[bit / 8] ^= (char)(1 << bit % 8);
    if (hg_run_state_fold(s, path, text->data + start, text->len - start, &used, &err) == 0)
        fail_msg("bit %zu of byte %zu was not noticed", bit % 8, bit / 8);
    text->data[bit / 8] ^= (char)(1 << bit % 8);
    return err.line;
}

static void test_every_flipped_bit_is_found(void **state)
{
    struct hg_run_state *s = hg_run_state_create();
    struct snapshot snaps[RECORDS + 1];
    struct hg_buf text = HG_BUF_INIT;
    char *path = journal_path();
    size_t used;

    (void)state;
    write_journal(snaps);
    assert_int_equal(hg_fs_read(path, 1 << 20, &text, NULL), 0);
    for (int i = 1; i <= RECORDS; i++) {
        size_t start = snaps[i - 1].end, end = snaps[i].end;

        for (size_t bit = start * 8; bit < end * 8; bit++) {
            assert_int_equal(fold_flipped(s, path, &text, start, bit), i);
            assert_int_equal(s->seq, i - 1);
            if (bit % 97 == 0) { /* the whole file takes long */
                struct hg_run_state *all = hg_run_state_create();

                assert_int_equal(fold_flipped(all, path, &text, 0, bit), i);
                hg_run_state_free(all);
            }
        }
        assert_int_equal(hg_run_state_fold(s, path, text.data + start, end - start, &used, NULL),
                         0);
        assert_memory_equal(s->counts, snaps[i].counts, sizeof s->counts);
    }
    hg_run_state_free(s);
    hg_buf_done(&text);
    free(path);
}

static void test_torn_tail_is_cut_off_by_the_next_writer(void **state)
{
    struct snapshot snaps[RECORDS + 1];
    char *path = journal_path();
    struct hg_run_state *s;
    struct hg_journal *j;

    (void)state;
    write_journal(snaps);
    assert_int_equal(truncate(path, (off_t)snaps[RECORDS].end - 7), 0);
    s = hg_run_state_load(dir, NULL);
    assert_true(s->torn);
    hg_run_state_free(s);
    setenv("HPCGRID_LOG", "error", 1);
    j = open_journal(2);
    assert_int_equal(hg_journal_state(j)->seq, RECORDS - 1);
    say(j, "result", "{\"submission\":1,\"tasks\":\"0\",\"status\":\"ok\"}");
    hg_journal_close(j);
    s = hg_run_state_load(dir, NULL);
    assert_false(s->torn);
    assert_int_equal(s->seq, RECORDS);
    assert_int_equal(s->fence, 2);
    hg_run_state_free(s);
    free(path);
}

/* A record that is whole, but not the next one; one without its newline that something follows; something else than a record. */
static void test_a_tail_that_no_cut_write_leaves_is_damage(void **state)
{
    static const struct {
        int seq;
        const char *behind;
        bool torn;
    } tails[] = { { 2, "\n", false }, { 1, "x", false }, { 1, "", true } };
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    for (size_t i = 0; i < N_OF(tails); i++) {
        struct hg_run_state *s = hg_run_state_create();
        struct hg_buf text = HG_BUF_INIT;
        json_t *record = json_pack("{s:i, s:s}", "seq", tails[i].seq, "kind", "receipt");
        size_t used;

        hg_seal_dump(record, HG_JSON_COMPACT, &text);
        text.len--;
        hg_buf_puts(&text, tails[i].behind);
        assert_int_equal(hg_run_state_fold(s, "f", text.data, text.len, &used, &err),
                         tails[i].torn ? 0 : -1);
        assert_int_equal(s->torn, tails[i].torn);
        assert_int_equal(hg_run_state_fold(s, "f", "garbage", 7, &used, &err), -1);
        json_decref(record);
        hg_buf_done(&text);
        hg_run_state_free(s);
    }
}

static void test_a_journal_is_followed_as_it_grows(void **state)
{
    struct hg_run_state *s = NULL;
    struct hg_journal *j = open_journal(1);
    struct hg_err err = HG_ERR_INIT;
    char *path = journal_path();
    size_t used = 0, before;

    (void)state;
    say(j, "plan", "{\"batches\":[4]}");
    assert_int_equal(hg_run_state_follow(dir, &s, &used, NULL), 0);
    assert_int_equal(s->counts[HG_CELL_WAITING], 4);
    before = used;
    say(j, "plan", "{\"batches\":[4,2]}");
    assert_int_equal(hg_run_state_follow(dir, &s, &used, NULL), 0);
    assert_int_equal(s->counts[HG_CELL_WAITING], 6);
    assert_true(used > before);
    before = used;
    assert_int_equal(hg_run_state_follow(dir, &s, &used, NULL), 0); /* nothing new */
    assert_int_equal(used, before);
    assert_int_equal(s->seq, 2);
    hg_journal_close(j);
    assert_int_equal(truncate(path, 0), 0); /* another one in its place */
    j = open_journal(1);
    say(j, "plan", "{\"batches\":[1]}");
    assert_int_equal(hg_run_state_follow(dir, &s, &used, NULL), 0);
    assert_int_equal(s->counts[HG_CELL_WAITING], 1);
    hg_journal_close(j);
    unlink(path);
    assert_int_equal(hg_run_state_follow(dir, &s, &used, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_null(hg_run_state_load(dir, NULL));
    assert_int_equal(mkdir(path, 0700), 0); /* it is there, and cannot be read */
    assert_null(hg_run_state_load(dir, NULL));
    hg_run_state_free(s);
    free(path);
}

static void test_a_deposed_writer_changes_nothing(void **state)
{
    struct hg_journal *old = open_journal(1), *new;
    struct hg_err err = HG_ERR_INIT;
    struct hg_run_state *s;

    (void)state;
    say(old, "plan", "{\"batches\":[1]}");
    new = open_journal(2);
    say(new, "open", "{\"schema\":\"hpcgrid-events/1\"}");
    add(old, "cancel", "{\"batch\":1,\"lines\":\"0\"}");
    assert_int_equal(hg_journal_commit(old, &err), -1); /* the file has grown under it */
    hg_journal_close(old);
    assert_null(hg_journal_open(dir, 2, NULL, NULL, NULL)); /* a fence is never used twice */
    hg_journal_close(new);
    s = hg_run_state_load(dir, NULL);
    assert_int_equal(s->counts[HG_CELL_WAITING], 1);
    hg_run_state_free(s);
}

static void test_records_are_kept_as_they_are(void **state)
{
    static const char *const texts[] = { "first", "second", "first", "" };
    struct hg_journal *j = open_journal(1);
    const struct hg_run_state *s = hg_journal_state(j);
    const struct hg_submission *sub;

    (void)state;
    say(j, "plan", "{\"batches\":[2,6],\"spare\":[\"\",\"1,5\"]}");
    assert_string_equal(state_of(j, 1, 1), "waiting");
    assert_string_equal(state_of(j, 2, 1), "not_needed");
    assert_string_equal(state_of(j, 2, 5), "not_needed");
    assert_int_equal(s->counts[HG_CELL_UNNEEDED], 2);
    say(j, "need", "{\"batch\":2,\"lines\":\"5\"}");
    assert_string_equal(state_of(j, 2, 5), "waiting");
    say(j, "intent",
        "{\"submission\":1,\"claim\":1,\"batch\":2,\"offset\":2,\"tasks\":\"0-3\",\"key\":\"k\",\"request\":\"r\","
        "\"running_max\":3,\"time_s\":60,\"until\":1234.5}");
    say(j, "submitted", "{\"submission\":1,\"job\":17}");
    sub = &s->submissions.items[0];
    assert_int_equal(sub->job_id, 17);
    assert_int_equal(sub->batch, 2);
    assert_int_equal(sub->offset, 2);
    assert_int_equal(sub->n_tasks, 4);
    assert_int_equal(sub->running_max, 3);
    assert_int_equal(sub->together, 1);
    assert_true(sub->time_s == 60 && sub->until_s == 1234.5 && sub->t == 1000);
    assert_string_equal(sub->key, "k");
    assert_string_equal(sub->request, "r");
    for (int i = 0; i < 4; i++) {
        char members[128];

        snprintf(members, sizeof members,
                 "{\"submission\":1,\"tasks\":\"%d\",\"state\":\"PENDING\",\"text\":\"%s\"}", i,
                 texts[i]);
        say(j, "state", members);
    }
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(hg_run_text(s, hg_run_cell_find(s, 2, i + 2)), texts[i]);
    hg_journal_close(j);
}

static void test_lines_behind_a_newer_lock_do_not_count(void **state)
{
    char *path = journal_path();
    struct hg_buf kept = HG_BUF_INIT;
    struct hg_journal *old = open_journal(1), *new;
    struct hg_run_state *s;
    int fd;

    (void)state;
    say(old, "plan", "{\"batches\":[1]}");
    say(old, "cancel", "{\"batch\":1,\"lines\":\"0\"}");
    hg_journal_close(old);
    assert_int_equal(hg_fs_read(path, 1 << 20, &kept, NULL), 0);
    unlink(path);
    new = open_journal(2);
    say(new, "plan", "{\"batches\":[1]}");
    hg_journal_close(new);
    fd = open(path, O_WRONLY | O_APPEND); /* what it had under way arrives late */
    assert_int_equal(hg_fs_write_all(fd, kept.data, kept.len), 0);
    close(fd);
    s = hg_run_state_load(dir, NULL);
    assert_non_null(s);
    assert_int_equal(s->deposed, 2);
    assert_int_equal(s->counts[HG_CELL_WAITING], 1);
    hg_run_state_free(s);
    hg_buf_done(&kept);
    free(path);
}

static void test_a_run_of_10000_cells_loads_at_once(void **state)
{
    struct hg_journal *j = open_journal(1);
    struct hg_run_state *s;
    char members[160];

    (void)state;
    add(j, "open", "{\"schema\":\"hpcgrid-events/1\"}");
    add(j, "plan", "{\"batches\":[5000,5000]}");
    for (int i = 0; i < 10; i++) {
        snprintf(members, sizeof members,
                 "{\"submission\":%d,\"claim\":%d,\"key\":\"%032d\",\"batch\":%d,\"offset\":%d,"
                 "\"tasks\":\"0-999\"}",
                 i + 1, i + 1, i, i / 5 + 1, i % 5 * 1000);
        add(j, "intent", members);
    }
    for (int i = 0; i < 10000; i++) { /* the worst case: every result was news of its own */
        snprintf(members, sizeof members,
                 "{\"submission\":%d,\"tasks\":\"%d\",\"status\":\"ok\",\"rpc\":[0,1,0]}",
                 i / 1000 + 1, i % 1000);
        add(j, "result", members);
    }
    assert_int_equal(hg_journal_commit(j, NULL), 0);
    hg_journal_close(j);
    s = hg_run_state_load(dir, NULL);
    assert_int_equal(s->counts[HG_CELL_OK], 10000);
    assert_int_equal(s->polls, 10000);
    hg_run_state_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_dir(test_every_way_through_the_states),
        in_dir(test_records_that_no_longer_concern_a_cell_change_nothing),
        cmocka_unit_test(test_losses_are_counted_to_255),
        cmocka_unit_test(test_a_plan_of_too_many_batches_is_an_error),
        in_dir(test_records_that_contradict_the_others_are_errors),
        in_dir(test_every_prefix_replays_to_a_state_that_was),
        in_dir(test_every_flipped_bit_is_found),
        in_dir(test_torn_tail_is_cut_off_by_the_next_writer),
        cmocka_unit_test(test_a_tail_that_no_cut_write_leaves_is_damage),
        in_dir(test_a_journal_is_followed_as_it_grows),
        in_dir(test_a_deposed_writer_changes_nothing),
        in_dir(test_records_are_kept_as_they_are),
        in_dir(test_lines_behind_a_newer_lock_do_not_count),
        in_dir(test_a_run_of_10000_cells_loads_at_once),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
