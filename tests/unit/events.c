/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
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

static void test_every_way_through_the_states(void **state)
{
    static const struct {
        const char *kind, *members, *cells; /* states of cells 0, 1, 2 afterwards */
    } steps[] = {
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
    for (size_t i = 0; i < N_OF(steps); i++) {
        char found[128];

        say(j, steps[i].kind, steps[i].members);
        if (!steps[i].cells)
            continue;
        snprintf(found, sizeof found, "%s %s %s", state_of(j, 1, 0), state_of(j, 1, 1),
                 state_of(j, 1, 2));
        if (strcmp(found, steps[i].cells) != 0)
            fail_msg("step %zu (%s): %s, wanted %s", i, steps[i].members, found, steps[i].cells);
    }
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
        { "cancel", "{\"batch\":1,\"lines\":\"0-3\"}" },
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

static void test_a_journal_is_followed_as_it_grows(void **state)
{
    struct hg_run_state *s = NULL;
    struct hg_journal *j = open_journal(1);
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
    hg_run_state_free(s);
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
        in_dir(test_records_that_contradict_the_others_are_errors),
        in_dir(test_every_prefix_replays_to_a_state_that_was),
        in_dir(test_every_flipped_bit_is_found),
        in_dir(test_torn_tail_is_cut_off_by_the_next_writer),
        in_dir(test_a_journal_is_followed_as_it_grows),
        in_dir(test_a_deposed_writer_changes_nothing),
        in_dir(test_records_are_kept_as_they_are),
        in_dir(test_lines_behind_a_newer_lock_do_not_count),
        in_dir(test_a_run_of_10000_cells_loads_at_once),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
