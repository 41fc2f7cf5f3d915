/* SPDX-License-Identifier: Apache-2.0 */
/* The loop against a scheduler in memory (unit/scheduler.h): scripted troubles, then random ones with a crash
 * at random moments. */
#include "drive/again.h"
#include "drive/check.h"
#include "drive/overlay.h"
#include "drive/requests.h"
#include "test.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "drive/drive.h"
#include "scheduler.h"
#include "rundir/events.h"
#include "rundir/lock.h"

#define DAY_S 86400.0

#ifdef __SANITIZE_ADDRESS__
/* A simulated crash leaves by longjmp; what was on its way is not freed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

/* No test here reads a result from a folder. */
int hg_attempt_find(struct hg_attempt_group *g, int batch, size_t line, const char *cell_id,
                    unsigned submission, const char *run_key, struct hg_attempt *a,
                    struct hg_err *err)
{
    (void)g;
    (void)batch;
    (void)line;
    (void)submission;
    (void)run_key;
    (void)a;
    return hg_err_set(err, HG_E_BUG, "asked the disk for %s", cell_id);
}

/* ---- A world: plan, folder, scheduler ---- */

struct world {
    void (*each_pass)(struct world *w); /* NULL: nothing else happens */
    char dir[32];
    struct hg_rundir rd;
    struct hg_plan plan;
    struct hg_batch batches[4];
    struct hg_executor_session *exec;
    struct hg_drive_options options;
    struct hg_drive *drive;
};

static const struct hg_executor *mock;

static double world_time(void *context)
{
    return mock_now(((struct world *)context)->exec);
}

static int world_attempt(void *context, int batch, uint32_t line, uint32_t claim,
                         struct hg_attempt *a, struct hg_err *err)
{
    struct world *w = context;
    struct mock_attempt found;

    (void)err;
    mock_attempt(w->exec, batch, line, claim, &found);
    *a = (struct hg_attempt){ .submission = claim,
                              .restarts = found.restarts,
                              .claimed = found.claimed,
                              .done = found.status[0] != '\0',
                              .open = found.claimed && !found.status[0],
                              .wall_s = found.status[0] ? 119 : 0 };
    a->left = found.left;
    if (found.alive) /* a heartbeat each 30 s, of another machine */
        a->claim.beat_s = floor(mock_now(w->exec) / 30);
    memcpy(a->status, found.status, sizeof a->status);
    return 0;
}

static void make_world(struct world *w, const char *config, const size_t *sizes, size_t n)
{
    json_error_t where;
    json_t *json = json_loads(config, 0, &where);

    if (!json)
        fail_msg("%s in %s", where.text, config);
    *w = (struct world){ .dir = "/tmp/hg-drive-XXXXXX" };
    assert_non_null(mkdtemp(w->dir));
    w->rd = (struct hg_rundir){ .path = w->dir, .number = 1 };
    w->plan = (struct hg_plan){ .items = w->batches, .n = n };
    for (size_t i = 0; i < n; i++) {
        char script[40];

        snprintf(script, sizeof script, "/r/batches/%zu.sh", i + 1);
        w->batches[i] =
            (struct hg_batch){ .number = (int)i + 1,
                               .n = sizes[i],
                               .together = (unsigned)json_integer_value(
                                   json_array_get(json_object_get(json, "together"), i)),
                               .job = json_pack("{s:s,s:s}", "name", "x", "script", script) };
    }
    w->exec = mock->open(json, 1, NULL);
    w->options = (struct hg_drive_options){
        .executor = mock,
        .session = w->exec,
        .deadline_s = 5,
        .visible_s = 3,
        .io = { world_time, world_time, world_attempt, NULL, w },
    };
    json_decref(json);
}

static void end_world(struct world *w)
{
    hg_drive_close(w->drive);
    mock->close(w->exec);
    for (size_t i = 0; i < w->plan.n; i++) {
        json_decref(w->batches[i].job);
        hg_ranges_done(&w->batches[i].removed);
    }
    hg_fs_remove_tree(w->dir, NULL);
}

static void open_drive(struct world *w)
{
    struct hg_err err = HG_ERR_INIT;

    w->drive = hg_drive_open(&w->rd, &w->plan, &w->options, &err);
    if (!w->drive)
        fail_msg("cannot open: %s", err.text);
}

/* Open it, and submit what may be submitted at first. */
static void start_drive(struct world *w)
{
    struct hg_drive_pass pass;

    open_drive(w);
    assert_int_equal(hg_drive_pass(w->drive, &pass, NULL), 0);
}

/* Passes until it is over. Returns virtual seconds, -1 if it is not over after a day. */
static double drive_to_end(struct world *w, struct hg_err *err)
{
    double start = mock_now(w->exec);
    struct hg_drive_pass pass;

    for (;;) {
        if (w->each_pass)
            w->each_pass(w);
        if (hg_drive_pass(w->drive, &pass, err) < 0)
            return -1;
        if (pass.over)
            return mock_now(w->exec) - start;
        if (mock_now(w->exec) - start > DAY_S)
            return -1;
        mock_advance(w->exec, pass.wait_s > 0.01 ? pass.wait_s : 0.01);
    }
}

static void drive_for(struct world *w, double seconds)
{
    double end = mock_now(w->exec) + seconds;
    struct hg_drive_pass pass;

    while (mock_now(w->exec) < end) {
        assert_int_equal(hg_drive_pass(w->drive, &pass, NULL), 0);
        assert_false(pass.over);
        mock_advance(w->exec, pass.wait_s > 0.01 ? pass.wait_s : 0.01);
    }
}

/* "ok 3, failed 1" */
static void format_counts(const struct hg_run_state *state, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (int s = 0; s < HG_CELL_STATES; s++)
        if (state->counts[s])
            used += (size_t)snprintf(out + used, size - used, "%s%s %zu", used ? ", " : "",
                                     hg_cell_state_names[s], state->counts[s]);
}

/* ---- Scenarios ---- */

#define NONE "{\"default\":{\"run_s\":2}"

static const struct scenario {
    const char *name, *config;
    size_t cells;
    long long running, max_queued;
    const char *counts;
    unsigned submits; /* requests; 0: any */
    double least_s, most_s;
} scenarios[] = {
    { "nothing goes wrong", NONE "}", 100, 0, 0, "ok 100", 1, 3, 20 },
    { "busy controller is asked again", NONE ",\"submits\":[\"again\",\"again\"]}", 10, 0, 0,
      "ok 10", 0, 8, 60 },
    { "controller that is down is waited for where it has the last word",
      NONE ",\"down\":[[0.5,300]],\"tasks\":{\"1:7\":[{\"result\":\"failed\"}]}}", 10, 0, 0,
      "ok 9, failed 1", 1, 300, 420 },
    { "job that was created is found", NONE ",\"submits\":[\"created\"]}", 10, 0, 0, "ok 10", 1, 3,
      20 },
    { "job that was not created is sent again when it cannot come any more",
      NONE ",\"submits\":[\"absent\"]}", 10, 0, 0, "ok 10", 2, 12, 60 },
    { "job that comes late is found", NONE ",\"submits\":[\"late:9\"]}", 10, 0, 0, "ok 10", 1, 12,
      60 },
    { "refusal ends the batch, not the run", NONE ",\"submits\":[\"refused\"]}", 10, 0, 0,
      "refused 10", 1, 0, 1 },
    { "two ambiguous ones in a row", NONE ",\"submits\":[\"absent\",\"created\"]}", 10, 0, 0,
      "ok 10", 2, 12, 60 },
    { "ambiguous while the controller goes down",
      NONE ",\"submits\":[\"absent\"],\"down\":[[0.5,100]]}", 10, 0, 0, "ok 10", 2, 100, 200 },
    { "accepted job that is forgotten is sent again",
      "{\"default\":{\"start_s\":3},\"submits\":[\"lost:1\"]}", 10, 0, 0, "ok 10", 2, 8, 60 },
    { "forgotten job that runs on is not run twice",
      "{\"default\":{\"start_s\":0,\"run_s\":30},\"submits\":[\"lost:1\"]}", 10, 0, 0, "ok 10", 1,
      30, 120 },
    { "job forgotten every time is given up",
      "{\"default\":{\"start_s\":9},\"submits\":[\"lost:1\",\"lost:1\",\"lost:1\",\"lost:1\",\"lost:1\"]}",
      2, 0, 0, "lost 2", 4, 10, 120 },
    { "arrays end at MaxArraySize", NONE ",\"max_array_size\":101}", 1000, 0, 0, "ok 1000", 10, 3,
      40 },
    { "a full job table is waited for", NONE ",\"max_jobs\":40,\"min_job_age_s\":5}", 200, 0, 0,
      "ok 200", 0, 20, 600 },
    { "a full table that others fill too", NONE ",\"submits\":[\"again\",\"again\",\"again\"]}", 64,
      0, 0, "ok 64", 0, 10, 300 },
    { "no more are queued than the site lets in", NONE "}", 50, 0, 10, "ok 50", 0, 10, 300 },
    { "no more run than limits.running", NONE "}", 50, 4, 0, "ok 50", 1, 25, 120 },
    { "limits.running over several arrays", NONE ",\"max_array_size\":10}", 50, 3, 0, "ok 50", 0,
      33, 300 },
    { "requeued job is one job",
      "{\"default\":{\"run_s\":2},\"tasks\":{\"1:0\":[{\"run_s\":1,\"requeue\":true},{}]}}", 3, 0,
      0, "ok 3", 1, 3, 60 },
    { "failed first run of a requeued job does not count",
      "{\"tasks\":{\"1:0\":[{\"requeue\":true},{\"requeue\":true},{\"state\":\"TIMEOUT\",\"result\":null}]}}",
      1, 0, 0, "timeout 1", 1, 120, 200 },
    { "Slurm's verdict where the node wrote none; a good one is not believed three times",
      "{\"default\":{\"result\":null},\"tasks\":{\"1:0\":[{\"state\":\"TIMEOUT\",\"result\":null}],"
      "\"1:1\":[{\"state\":\"OUT_OF_MEMORY\",\"result\":null}],\"1:2\":[{\"state\":\"NODE_FAIL\","
      "\"result\":null}],\"1:3\":[{\"state\":\"FAILED\",\"result\":null}]}}",
      5, 0, 0, "failed 2, timeout 1, oom 1, node_fail 1", 4, 480, 700 },
    { "Slurm knows why it ended what the node only knows to be told to end",
      "{\"default\":{\"result\":\"cancelled\",\"state\":\"CANCELLED\"},"
      "\"tasks\":{\"1:0\":[{\"state\":\"TIMEOUT\",\"result\":\"cancelled\"}],"
      "\"1:1\":[{\"state\":\"OUT_OF_MEMORY\",\"result\":\"cancelled\"}],\"1:2\":[{\"state\":\"NODE_FAIL\","
      "\"result\":\"timeout\"}],\"1:3\":[{\"state\":\"FAILED\",\"result\":\"cancelled\"}]}}",
      5, 0, 0, "timeout 1, oom 1, node_fail 1, cancelled 2", 1, 3, 60 },
    { "the node's word before Slurm's",
      "{\"default\":{\"state\":\"FAILED\",\"result\":\"oom\"},\"tasks\":{\"1:0\":[{\"state\":\"FAILED\","
      "\"result\":\"ok\"}]}}",
      2, 0, 0, "ok 1, oom 1", 1, 3, 60 },
    { "result that is seen late is waited for", "{\"default\":{\"result_delay_s\":2.5}}", 5, 0, 0,
      "ok 5", 1, 5, 30 },
    { "good results that Slurm does not notice end the run", "{\"default\":{\"late_s\":300}}", 200,
      0, 0, "ok 200", 1, 20, 90 },
    { "... nor does a controller that has gone away with them", NONE ",\"down\":[[2.5,900]]}", 10,
      0, 0, "ok 10", 1, 20, 200 },
    { "bad ones wait for Slurm", "{\"default\":{\"late_s\":300,\"result\":\"failed\"}}", 5, 0, 0,
      "failed 5", 1, 300, 420 },
    { "a requeued job's good result of before does not end it",
      "{\"tasks\":{\"1:0\":[{\"late_s\":9,\"requeue\":true},{\"start_s\":70,\"run_s\":70}]}}", 1, 0,
      0, "ok 1", 1, 140, 220 },
    { "task that leaves the table at once", "{\"default\":{\"vanish\":true,\"run_s\":20}}", 5, 0, 0,
      "ok 5", 1, 20, 60 },
    { "task that leaves the table and nothing behind: accounting knows",
      "{\"accounting\":true,\"default\":{\"vanish\":true,\"result\":null,\"state\":\"NODE_FAIL\"}}",
      2, 0, 0, "node_fail 2", 1, 120, 300 },
    { "task that leaves the table and nothing behind: nobody knows",
      "{\"default\":{\"vanish\":true,\"result\":null,\"run_s\":20}}", 2, 0, 0, "lost 2", 4, 480,
      1200 },
    { "task that is started beside itself: the first copy's result counts",
      "{\"default\":{\"run_s\":40,\"twice_s\":0.5}}", 9, 0, 0, "ok 9", 1, 40, 60 },
    { "... also when it takes a day's work", "{\"default\":{\"run_s\":9000,\"twice_s\":3}}", 2, 0,
      0, "ok 2", 1, 9000, 9100 },
    { "... a bad one, too", "{\"default\":{\"run_s\":40,\"twice_s\":0.5,\"result\":\"failed\"}}", 9,
      0, 0, "failed 9", 1, 40, 60 },
    { "... and when Slurm ends the first copy, the cell is sent again",
      "{\"tasks\":{\"1:0\":[{\"run_s\":9000,\"twice_s\":0.5,\"dies_s\":4}],"
      "\"1:1\":[{\"run_s\":9000,\"twice_s\":0.5,\"dies_s\":300}]},\"default\":{\"run_s\":20}}",
      2, 0, 0, "ok 2", 3, 300, 600 },
    { "... as is one that it ended in order to start it again",
      "{\"tasks\":{\"1:0\":[{\"run_s\":5,\"twice_s\":0.5,\"result\":\"cancelled\"}]}}", 1, 0, 0,
      "ok 1", 2, 5, 60 },
    { "... and when the second copy cannot start, because the first one is being ended",
      "{\"tasks\":{\"1:0\":[{\"run_s\":9000,\"twice_s\":0.5,\"dies_s\":0.2},{\"refused\":\"FAILED\"}],"
      "\"1:1\":[{\"run_s\":5,\"twice_s\":0.5,\"result\":\"cancelled\"},{\"refused\":\"FAILED\"}]}}",
      2, 0, 0, "ok 2", 0, 3, 300 },
    { "... also when there is no room for it before its old job is purged",
      "{\"max_jobs\":2,\"min_job_age_s\":60,\"tasks\":{\"1:0\":[{\"run_s\":5,\"twice_s\":0.5,\"result\":\"cancelled\"}]}}",
      2, 0, 0, "ok 2", 0, 5, 300 },
    { "... and when the end of another job is taken for its own",
      "{\"tasks\":{\"1:0\":[{\"run_s\":9000,\"twice_s\":0.5,\"dies_s\":0.2},{\"refused\":\"COMPLETED\"}]}}",
      1, 0, 0, "ok 1", 2, 3, 300 },
    { "... and when what was to end the first copy ends the second one; else a kill is a failure",
      "{\"tasks\":{\"1:0\":[{\"run_s\":9000,\"twice_s\":0.5,\"dies_s\":0.2},{\"run_s\":5,"
      "\"result\":null,\"state\":\"FAILED\",\"signal\":9}],"
      "\"1:1\":[{\"run_s\":5,\"result\":null,\"state\":\"FAILED\",\"signal\":9}]}}",
      2, 0, 0, "ok 1, failed 1", 2, 3, 300 },
    { "... and when it was requeued beside itself; a failure of the first copy counts",
      "{\"tasks\":{\"1:0\":[{\"run_s\":40,\"twice_s\":5,\"requeued\":true,\"result\":\"cancelled\"}],"
      "\"1:1\":[{\"run_s\":40,\"twice_s\":5,\"requeued\":true,\"result\":\"failed\"}],"
      "\"1:2\":[{\"run_s\":40,\"twice_s\":5,\"requeued\":true}]}}",
      3, 0, 0, "ok 2, failed 1", 2, 40, 300 },
    { "job that can never start is cancelled",
      "{\"default\":{\"held\":true,\"reason\":\"BadConstraints\"}}", 3, 0, 0, "failed 3", 1, 0,
      30 },
    { "launch failure is tried anew",
      "{\"tasks\":{\"1:0\":[{}]},\"default\":{\"held\":true,\"reason\":\"launch failed requeued held\"}}",
      2, 0, 0, "ok 1, failed 1", 4, 3, 120 },
    { "cells that share a job run one after another", NONE ",\"together\":[5]}", 50, 0, 0, "ok 50",
      1, 10, 20 },
    { "... and count once for limits.running", NONE ",\"together\":[5]}", 50, 4, 0, "ok 50", 1, 30,
      60 },
    { "... and for the job table", NONE ",\"together\":[5],\"max_jobs\":6,\"min_job_age_s\":5}", 50,
      0, 0, "ok 50", 2, 20, 120 },
    { "... and for max_queued", NONE ",\"together\":[5],\"tasks\":{\"1:0\":[{\"run_s\":150}]}}", 50,
      0, 2, "ok 50", 0, 150, 200 },
    { "one that fails does not keep the next one from its run",
      NONE ",\"together\":[4],\"tasks\":{\"1:1\":[{\"result\":\"failed\",\"state\":\"FAILED\"}]}}",
      8, 0, 0, "ok 7, failed 1", 1, 8, 20 },
    { "a shared job that dies half way: what had not begun is sent again",
      NONE ",\"together\":[4],\"tasks\":{\"1:1\":[{\"result\":null,\"state\":\"NODE_FAIL\"}]}}", 8,
      0, 0, "ok 7, node_fail 1", 2, 120, 200 },
    { "... also when Slurm shows its end no more",
      NONE ",\"together\":[4],\"tasks\":{\"1:2\":[{\"result\":null,\"vanish\":true}]}}", 4, 0, 0,
      "ok 4", 0, 120, 700 },
    { "polls that fail in between",
      NONE ",\"polls\":[\"again\",\"env\",\"ok\",\"again\",\"again\",\"ok\"]}", 10, 0, 0, "ok 10",
      1, 3, 60 },
};

static void test_every_trouble_has_its_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(scenarios); i++) {
        const struct scenario *s = &scenarios[i];
        struct hg_err err = HG_ERR_INIT;
        struct hg_executor_counts made;
        char counts[200];
        struct world w;
        double took;

        make_world(&w, s->config, &s->cells, 1);
        w.options.running = s->running;
        w.options.max_queued = s->max_queued;
        open_drive(&w);
        took = drive_to_end(&w, &err);
        format_counts(hg_drive_state(w.drive), counts, sizeof counts);
        made = mock->facts(w.exec)->counts;
        if (err.code)
            fail_msg("%s: %s", s->name, err.text);
        if (strcmp(counts, s->counts) != 0)
            fail_msg("%s: %s, wanted %s", s->name, counts, s->counts);
        if (s->submits && made.submits != s->submits)
            fail_msg("%s: %u submissions, wanted %u", s->name, made.submits, s->submits);
        if (took < s->least_s || took > s->most_s)
            fail_msg("%s: took %g s, wanted %g to %g", s->name, took, s->least_s, s->most_s);
        if (mock_doubles(w.exec))
            fail_msg("%s: %u doubled", s->name, mock_doubles(w.exec));
        if (s->running && mock_most_running(w.exec) > (unsigned)s->running)
            fail_msg("%s: %u ran at a time", s->name, mock_most_running(w.exec));
        assert_int_equal(hg_drive_finish(w.drive, NULL), 0);
        assert_int_equal(hg_drive_state(w.drive)->submits, made.submits);
        assert_int_equal(hg_drive_state(w.drive)->polls, made.polls);
        assert_int_equal(hg_drive_state(w.drive)->cancels, made.cancels);
        end_world(&w);
    }
}

/* Of a job that was requeued, which Slurm has not said yet: a good result, and a second attempt at work. */
static int superseded_attempt(void *context, int batch, uint32_t line, uint32_t claim,
                              struct hg_attempt *a, struct hg_err *err)
{
    int rc = world_attempt(context, batch, line, claim, a, err);

    if (!a->claimed)
        return rc;
    a->done = a->superseded = true;
    strcpy(a->status, "ok");
    return rc;
}

static void test_a_good_result_that_is_superseded_does_not_end_its_cell(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 1;
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":100}}", &cells, 1);
    w.options.io.attempt = superseded_attempt;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 100);
    end_world(&w);
}

/* Two copies came in the same instant, and each gave way to the other. */
static int given_up(void *context, int batch, uint32_t line, uint32_t claim, struct hg_attempt *a,
                    struct hg_err *err)
{
    int rc = world_attempt(context, batch, line, claim, a, err);

    a->open = false;
    return rc;
}

static void test_what_two_copies_left_to_each_other_is_sent_again(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 2;
    char counts[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"tasks\":{\"1:0\":[{\"result\":null},{}]}}", &cells, 1);
    w.options.io.attempt = given_up;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 2");
    assert_int_equal(mock_runs(w.exec, 1, 0), 2);
    end_world(&w);
}

static void test_nothing_is_submitted_when_the_controller_never_answers(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;
    size_t cells = 3;
    struct world w;

    (void)state;
    make_world(&w, "{\"down\":[[0,1e9]]}", &cells, 1);
    open_drive(&w);
    assert_int_equal(hg_drive_pass(w.drive, &pass, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_int_equal(hg_drive_state(w.drive)->submissions.n, 0);
    end_world(&w);
}

static void test_every_bad_batch_is_found_before_the_first_submission(void **state)
{
    struct hg_errs errs = HG_ERRS_INIT;
    size_t sizes[] = { 2, 2, 2 };
    struct world w;

    (void)state;
    make_world(&w, "{}", sizes, 3);
    for (int i = 0; i < 2; i++)
        json_object_set_new(w.batches[i * 2].job, "partition", json_string("nowhere"));
    open_drive(&w);
    assert_int_equal(hg_drive_check(w.drive, &errs), -1);
    assert_int_equal(errs.n, 2);
    assert_string_equal(errs.items[1].text,
                        "batch 3 (2 cells) would be refused: Invalid partition name specified");
    assert_int_equal(hg_drive_state(w.drive)->submits, 0);
    hg_errs_done(&errs);
    end_world(&w);
}

static void test_a_driver_whose_lock_was_taken_ends_though_it_has_nothing_to_write(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct hg_drive_pass pass;
    size_t cells = 3;
    struct hg_lock *thief;
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":5000}}", &cells, 1);
    open_drive(&w);
    assert_int_equal(hg_drive_pass(w.drive, &pass, &err), 0);
    thief = hg_lock_take(w.dir, "hpcgrid resume --steal", true, 0, &err);
    assert_non_null(thief);
    assert_int_equal(hg_drive_pass(w.drive, &pass, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_non_null(strstr(err.text, " was taken over by another process"));
    hg_lock_release(thief);
    end_world(&w);
}

static bool pick_even(void *context, int batch, uint32_t line)
{
    (void)context;
    (void)batch;
    return line % 2 == 0;
}

static void test_cancelled_cells_are_not_submitted_and_jobs_end(void **state)
{
    struct hg_run_state *reader;
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 10;
    char counts[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":50}}", &cells, 1);
    w.options.max_queued = 5;
    start_drive(&w);
    reader = hg_run_state_load(w.dir, NULL); /* somebody else, without the lock */
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_CANCEL, reader, pick_even, NULL, NULL), 0);
    assert_int_equal(hg_drive_fold_requests(w.dir, reader, NULL), 0);
    assert_int_equal(reader->counts[HG_CELL_CANCELLED], 2); /* cells 6 and 8 waited */
    hg_run_state_free(reader);
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 5, cancelled 5");
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(mock_runs(w.exec, 1, i), i % 2);
    end_world(&w);
}

static bool is_line_2(void *context, int batch, uint32_t line)
{
    return context == NULL && batch == 1 && line == 2;
}

/* Its job has to end for that. What was at work in it, and what came behind it, runs again in another one. */
static void test_cancelling_one_cell_of_a_job_leaves_the_others(void **state)
{
    static const struct {
        const char *config;
        size_t ok; /* when it is cancelled */
        unsigned runs[8];
    } cases[] = {
        { "{\"default\":{\"run_s\":50},\"together\":[4]}", 2, { 1, 2, 0, 1, 1, 1, 1, 1 } },
        { "{\"default\":{\"start_s\":100},\"together\":[4]}", 0, { 1, 1, 0, 1, 1, 1, 1, 1 } },
    };
    size_t cells = 8;
    char counts[200];

    (void)state;
    for (size_t c = 0; c < N_OF(cases); c++) {
        struct hg_err err = HG_ERR_INIT;
        struct world w;

        make_world(&w, cases[c].config, &cells, 1);
        open_drive(&w);
        drive_for(&w, 80);
        assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], cases[c].ok);
        assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_CANCEL, hg_drive_state(w.drive),
                                          is_line_2, NULL, NULL),
                         0);
        assert_true(drive_to_end(&w, &err) >= 0);
        format_counts(hg_drive_state(w.drive), counts, sizeof counts);
        assert_string_equal(counts, "ok 7, cancelled 1");
        for (uint32_t i = 0; i < cells; i++)
            assert_int_equal(mock_runs(w.exec, 1, i), cases[c].runs[i]);
        end_world(&w);
    }
}

/* Tasks that the scheduler holds, as an index set. */
static void format_held(const struct world *w, char *out, size_t size)
{
    struct hg_executor_jobs jobs;
    size_t used = 0;

    out[0] = '\0';
    assert_int_equal(mock->poll(w->exec, &jobs, NULL), 0);
    for (size_t i = 0; i < jobs.n; i++)
        if (strcmp(jobs.items[i].reason, "JobHeldUser") == 0)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "",
                                     jobs.items[i].tasks);
    hg_executor_jobs_done(&jobs);
}

static void test_held_cells_do_not_start_before_they_are_released(void **state)
{
    struct hg_run_state *reader;
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 10;
    char text[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":50,\"start_s\":5}}", &cells, 1);
    w.options.max_queued = 5;
    start_drive(&w);
    reader = hg_run_state_load(w.dir, NULL);
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_HOLD, reader, pick_even, NULL, NULL), 0);
    assert_int_equal(hg_drive_fold_requests(w.dir, reader, NULL), 0);
    assert_int_equal(hg_run_count_held(reader), 5);
    hg_run_state_free(reader);
    drive_for(&w, 1000);
    format_held(&w, text, sizeof text);
    assert_string_equal(text, "0,2,4"); /* the driver told the scheduler; 6 and 8 wait here */
    format_counts(hg_drive_state(w.drive), text, sizeof text);
    assert_string_equal(text, "waiting 2, pending 3, ok 5");
    hg_drive_close(w.drive); /* the next one knows it, too */
    open_drive(&w);
    drive_for(&w, 1000);
    assert_int_equal(hg_run_count_held(hg_drive_state(w.drive)), 5);
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_RELEASE, NULL, NULL, NULL, NULL), 0);
    assert_int_equal(mock->hold(w.exec, 1, "0,2,4", false, NULL), 0);
    assert_true(drive_to_end(&w, &err) >= 0);
    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(mock_runs(w.exec, 1, i), 1);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 10);
    end_world(&w);
}

static void test_holding_one_cell_of_a_job_holds_the_job(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 8;
    char text[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":5,\"start_s\":5},\"together\":[4]}", &cells, 1);
    start_drive(&w);
    assert_int_equal(
        hg_drive_request(&w.rd, HG_REQUEST_HOLD, hg_drive_state(w.drive), is_line_2, NULL, NULL),
        0);
    drive_for(&w, 500);
    format_held(&w, text, sizeof text);
    assert_string_equal(text, "0");
    format_counts(hg_drive_state(w.drive), text, sizeof text);
    assert_string_equal(text, "pending 4, ok 4");
    /* one of two that are held is released */
    assert_int_equal(
        hg_drive_request(&w.rd, HG_REQUEST_HOLD, hg_drive_state(w.drive), pick_even, NULL, NULL),
        0);
    assert_int_equal(
        hg_drive_request(&w.rd, HG_REQUEST_RELEASE, hg_drive_state(w.drive), is_line_2, NULL, NULL),
        0);
    drive_for(&w, 500);
    format_held(&w, text, sizeof text);
    assert_string_equal(text, "0");
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_PENDING], 4);
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_RELEASE, NULL, NULL, NULL, NULL), 0);
    assert_true(drive_to_end(&w, &err) >= 0);
    for (uint32_t i = 0; i < cells; i++)
        assert_int_equal(mock_runs(w.exec, 1, i), 1);
    end_world(&w);
}

static void test_a_held_run_holds_what_is_added_and_what_runs_again(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t sizes[] = { 3, 2 };
    char text[200];
    struct world w;

    (void)state;
    make_world(&w,
               "{\"default\":{\"run_s\":1},\"tasks\":{\"1:0\":[{\"result\":\"failed\"}],"
               "\"1:1\":[{\"run_s\":9,\"requeue\":true}]}}",
               sizes, 2);
    w.plan.n = 1;
    open_drive(&w);
    drive_for(&w, 5); /* line 1 is at work, and goes on until it is requeued */
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_HOLD, NULL, NULL, NULL, NULL), 0);
    drive_for(&w, 100);
    format_held(&w, text, sizeof text);
    assert_string_equal(text, "1");
    assert_int_equal(hg_drive_again(w.drive, 1u << HG_CELL_FAILED, NULL, NULL, NULL), 1);
    hg_drive_close(w.drive);
    w.plan.n = 2;
    open_drive(&w);
    drive_for(&w, 100);
    format_counts(hg_drive_state(w.drive), text, sizeof text);
    assert_string_equal(text, "waiting 3, pending 1, ok 1");
    assert_int_equal(hg_drive_request(&w.rd, HG_REQUEST_RELEASE, NULL, NULL, NULL, NULL), 0);
    assert_true(drive_to_end(&w, &err) >= 0); /* the driver carries it out, too */
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 5);
    end_world(&w);
}

/* Two wishes may lie there before the driver looks: the later one counts. */
static void test_wishes_count_in_their_order(void **state)
{
    static const enum hg_request last[] = { HG_REQUEST_HOLD, HG_REQUEST_RELEASE };
    struct hg_drive_pass pass;
    size_t cells = 3;

    (void)state;
    for (size_t i = 0; i < N_OF(last); i++) {
        struct world w;

        make_world(&w, "{}", &cells, 1);
        open_drive(&w);
        for (int k = 0; k < 6; k++)
            assert_int_equal(
                hg_drive_request(&w.rd, last[(i + 1 + (size_t)k) % 2], NULL, NULL, NULL, NULL), 0);
        assert_int_equal(hg_drive_pass(w.drive, &pass, NULL), 0);
        assert_int_equal(hg_run_count_held(hg_drive_state(w.drive)), i ? 0 : 3);
        assert_int_equal(hg_drive_state(w.drive)->submissions.n, i ? 1 : 0);
        end_world(&w);
    }
}

/* The journal must not get what it cannot be folded with. */
static void test_wishes_about_cells_that_a_run_has_not_do_nothing(void **state)
{
    static const char *const texts[] = {
        "{\"lines\":{\"1\":\"0-3\"}}",
        "{\"lines\":{\"1\":\"2-1\"}}",
        "{\"lines\":{\"2\":\"0\"}}",
        "{\"lines\":{\"0\":\"0\"}}",
        "{\"lines\":{\"x\":\"0\"}}",
        "{\"lines\":{\"1\":7}}",
        "[\"lines\"]",
        "{",
    };
    struct hg_err err = HG_ERR_INIT;
    struct hg_run_state *reader;
    size_t cells = 3;
    struct world w;

    (void)state;
    make_world(&w, "{}", &cells, 1);
    open_drive(&w);
    for (size_t i = 0; i < 2 * N_OF(texts); i++) {
        char path[80];

        snprintf(path, sizeof path, "%s/%s.%zu.x.json", w.dir, i % 2 ? "hold" : "cancel", i);
        assert_int_equal(hg_fs_replace(path, texts[i / 2], strlen(texts[i / 2]), 0644, NULL), 0);
    }
    reader = hg_run_state_load(w.dir, NULL);
    assert_int_equal(hg_drive_fold_requests(w.dir, reader, &err), 0);
    hg_run_state_free(reader);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 3);
    end_world(&w);
}

static void test_only_its_user_s_holds_are_let_go(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 2;
    struct world w;

    (void)state;
    make_world(&w, "{\"tasks\":{\"1:1\":[{\"held\":true,\"reason\":\"JobHeldAdmin\"}]}}", &cells,
               1);
    start_drive(&w);
    assert_int_equal(mock->hold(w.exec, 1, "0-1", true, &err), 0);
    assert_int_equal(mock->hold(w.exec, 1, "0-1", false, &err), -1);
    assert_int_equal(err.code, HG_E_REFUSED);
    end_world(&w);
}

/* Cancelled while its node fails, is just launching it, has it at its limit...: the wish counts. */
static void test_what_is_cancelled_is_cancelled_whatever_slurm_calls_its_end(void **state)
{
    static const char *const words[] = { "CANCELLED", "FAILED",        "NODE_FAIL", "TIMEOUT",
                                         "COMPLETED", "OUT_OF_MEMORY", "BOOT_FAIL", "GONE" };

    (void)state;
    for (size_t i = 0; i < 2 * N_OF(words); i++) {
        const char *word = words[i / 2];
        struct hg_drive_pass pass;
        struct hg_err err = HG_ERR_INIT;
        size_t cells = 6;
        char config[200], counts[200];
        struct world w;
        double took;

        snprintf(config, sizeof config,
                 "{\"min_job_age_s\":%d,\"default\":{\"start_s\":0,\"run_s\":5000,"
                 "\"cancelled\":\"%s\",\"result\":null}}",
                 i % 2 ? 300 : 3, word);
        make_world(&w, config, &cells, 1);
        open_drive(&w);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(hg_drive_pass(w.drive, &pass, NULL), 0);
            mock_advance(w.exec, 1);
        }
        assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_RUNNING], cells);
        assert_int_equal(
            hg_drive_request(&w.rd, HG_REQUEST_CANCEL, hg_drive_state(w.drive), NULL, NULL, NULL),
            0);
        took = drive_to_end(&w, &err);
        format_counts(hg_drive_state(w.drive), counts, sizeof counts);
        if (strcmp(counts, "cancelled 6") != 0 || took < 0 || took > 130)
            fail_msg("%s: %s after %g s", word, counts, took);
        end_world(&w);
    }
}

static void test_tasks_that_somebody_cancels_in_slurm_are_not_sent_again(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 6;
    char counts[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"start_s\":5,\"run_s\":20}}", &cells, 1);
    start_drive(&w);
    assert_int_equal(mock->cancel(w.exec, 1, "2-3", NULL), 0); /* scancel, behind our back */
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 4, cancelled 2");
    assert_string_equal(
        hg_run_text(hg_drive_state(w.drive), hg_run_cell_find(hg_drive_state(w.drive), 1, 2)),
        "in Slurm, not by hpcgrid");
    assert_int_equal(hg_drive_state(w.drive)->submissions.n, 1);
    end_world(&w);
}

static unsigned unheard;

/* The request arrives, the answer does not. */
static int cancel_unheard(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                          struct hg_err *err)
{
    if (mock->cancel(x, job_id, tasks, err) < 0)
        return -1;
    return unheard++ ? 0 : hg_err_set(err, HG_E_AGAIN, "no answer in time");
}

static void test_a_launch_failure_is_tried_anew_though_the_answer_got_lost(void **state)
{
    struct hg_executor deaf = *mock;
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 3;
    char counts[200];
    struct world w;

    (void)state;
    make_world(&w,
               "{\"tasks\":{\"1:1\":[{\"held\":true,\"reason\":\"launch failed requeued "
               "held\"},{}]}}",
               &cells, 1);
    deaf.cancel = cancel_unheard;
    w.options.executor = &deaf;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts,
                        "ok 2, failed 1"); /* held each time: tried so often, then given up */
    assert_int_equal(hg_drive_state(w.drive)->submissions.n, 4);
    end_world(&w);
}

static void test_only_what_is_picked_runs_again(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 4;
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"result\":\"failed\"}}", &cells, 1);
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(hg_drive_again(w.drive, 1u << HG_CELL_FAILED, is_line_2, NULL, NULL), 1);
    assert_true(drive_to_end(&w, &err) >= 0);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mock_runs(w.exec, 1, i), i == 2 ? 2 : 1);
    end_world(&w);
}

/* Each cause has its own number of tries; what a person cancels stays cancelled. */
static void test_the_matrix_says_what_runs_again(void **state)
{
    static const char config[] =
        "{\"default\":{\"result\":\"timeout\",\"run_s\":10},\"tasks\":{"
        "\"1:0\":[{\"result\":\"timeout\"},{\"state\":\"NODE_FAIL\",\"result\":null},{\"result\":\"ok\"}],"
        "\"1:2\":[{\"result\":\"oom\"}],"
        "\"1:3\":[{\"state\":\"PREEMPTED\",\"result\":null},"
        "{\"state\":\"PREEMPTED\",\"result\":\"cancelled\"},{\"result\":\"ok\"}]}}";
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 4;
    struct world w;
    char counts[200];

    (void)state;
    make_world(&w, config, &cells, 1);
    w.options.retry.most[HG_RETRY_TIMEOUT] = 2;
    w.options.retry.most[HG_RETRY_NODE_FAIL] = 1;
    w.options.retry.most[HG_RETRY_PREEMPTED] = 2;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 2, timeout 1, oom 1");
    assert_int_equal(mock_runs(w.exec, 1, 0), 3);
    assert_int_equal(mock_runs(w.exec, 1, 1), 3);
    assert_int_equal(mock_runs(w.exec, 1, 2), 1);
    assert_int_equal(mock_runs(w.exec, 1, 3), 3);
    /* the count is in the journal: whoever comes next does not begin anew */
    hg_drive_close(w.drive);
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(mock_runs(w.exec, 1, 1), 3);
    /* a person gives the tries back */
    assert_int_equal(hg_drive_again(w.drive, 1u << HG_CELL_TIMEOUT, NULL, NULL, NULL), 1);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(mock_runs(w.exec, 1, 1), 6);
    assert_int_equal(mock_doubles(w.exec), 0);
    end_world(&w);
}

/* The limits that were sent, "600,1200": those of the batch as 0. */
static void format_limits(const struct hg_run_state *state, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < state->submissions.n; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%.0f", used ? "," : "",
                                 state->submissions.items[i].time_s);
}

static void test_an_automatic_limit_is_raised_after_a_timeout(void **state)
{
    static const struct {
        double time_s, most_s;
        long long retry;
        size_t runs;
        const char *limits;
        size_t together; /* cells in one job; 0: one */
    } cases[] = {
        { 600, 0, 0, 3, "0,1200,2400", 0 },      /* as often as "auto" says */
        { 600, 0, 3, 4, "0,1200,2400,4800", 0 }, /* as "retry" says */
        { 600, 900, 0, 2, "0,900", 0 },          /* never beyond what the hardware allows */
        { 600, 600, 0, 1, "0", 0 },              /* a limit that cannot grow */
        { 600, 600, 1, 2, "0,600", 0 },          /* ... is tried again only for a person */
        { 0, 0, 0, 3, "0,240,240", 0 },          /* the partition's default: twice what it ran */
        { 600, 600, 0, 3, "0,600,600", 3 },      /* finished mates leave a cell more of a job */
        { 0, 0, 0, 3, "0,720,720", 3 },          /* ... which needs twice what all of them ran */
    };
    struct hg_err err = HG_ERR_INIT;
    char counts[200], limits[200], wanted[200], config[200];

    (void)state;
    for (size_t i = 0; i < N_OF(cases); i++) {
        size_t cells = cases[i].together ? cases[i].together : 1;
        struct world w;

        snprintf(config, sizeof config,
                 "{\"default\":{\"result\":\"timeout\",\"run_s\":10},\"together\":[%zu]}",
                 cases[i].together);
        make_world(&w, config, &cells, 1);
        w.batches[0].auto_time = true;
        w.batches[0].time_s = cases[i].time_s;
        w.batches[0].time_max_s = cases[i].most_s;
        w.options.retry.most[HG_RETRY_TIMEOUT] = cases[i].retry;
        open_drive(&w);
        assert_true(drive_to_end(&w, &err) >= 0);
        format_counts(hg_drive_state(w.drive), counts, sizeof counts);
        snprintf(wanted, sizeof wanted, "timeout %zu", cells);
        assert_string_equal(counts, wanted);
        assert_int_equal(mock_runs(w.exec, 1, 0), cases[i].runs);
        format_limits(hg_drive_state(w.drive), limits, sizeof limits);
        assert_string_equal(limits, cases[i].limits);
        end_world(&w);
    }
}

/* `sbatch batches/1.sh` by hand leaves results, and no journal. */
static void test_good_results_of_others_do_not_run_again(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 5;
    char path[64];
    struct world w;

    (void)state;
    make_world(&w, "{\"tasks\":{\"1:3\":[{\"result\":\"failed\"},{}]}}", &cells, 1);
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    hg_drive_close(w.drive);
    snprintf(path, sizeof path, "%s/events.jsonl", w.dir);
    assert_int_equal(unlink(path), 0);
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 4);
    assert_int_equal(hg_drive_state(w.drive)->submissions.n, 1);
    assert_string_equal(hg_drive_state(w.drive)->submissions.items[0].tasks, "0");
    assert_int_equal(hg_drive_state(w.drive)->submissions.items[0].offset, 3);
    end_world(&w);
}

static void test_a_plan_that_grew_runs_only_what_is_new(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    size_t sizes[] = { 5, 4 };
    struct world w;

    (void)state;
    make_world(&w, "{\"tasks\":{\"1:3\":[{\"result\":\"failed\"},{}]}}", sizes, 2);
    w.plan.n = 1;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    hg_drive_close(w.drive);
    w.plan.n = 2;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 8);
    assert_int_equal(
        hg_drive_again(w.drive, 1u << HG_CELL_FAILED | 1u << HG_CELL_TIMEOUT, NULL, NULL, NULL), 1);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 9);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(mock_runs(w.exec, 1, i), i == 3 ? 2 : 1);
    end_world(&w);
}

static void test_a_reader_sees_what_the_table_says(void **state)
{
    struct hg_run_state *reader;
    struct hg_executor_jobs jobs;
    size_t cells = 4;
    char counts[200];
    struct world w;

    (void)state;
    make_world(&w, "{\"default\":{\"run_s\":50,\"start_s\":2},\"tasks\":{\"1:0\":[{\"run_s\":1}]}}",
               &cells, 1);
    start_drive(&w);
    mock_advance(w.exec, 10);
    reader = hg_run_state_load(w.dir, NULL);
    assert_int_equal(mock->poll(w.exec, &jobs, NULL), 0);
    assert_int_equal(hg_drive_overlay(reader, &jobs, NULL), 0);
    format_counts(reader, counts, sizeof counts);
    assert_string_equal(counts, "running 3, ended 1");
    hg_executor_jobs_done(&jobs);
    hg_run_state_free(reader);
    end_world(&w);
}

static void test_a_full_disk_stops_it_before_the_request(void **state)
{
    struct hg_drive_pass pass;
    struct hg_err err = HG_ERR_INIT;
    size_t cells = 4;
    struct world w;
    int fd;
    char *path;

    (void)state;
    make_world(&w, "{}", &cells, 1);
    open_drive(&w);
    path = hg_fs_join(w.dir, "events.jsonl");
    fd = open(path,
              O_WRONLY | O_APPEND); /* somebody else's byte: the journal is not ours any more */
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    free(path);
    assert_int_equal(hg_drive_pass(w.drive, &pass, &err), -1);
    assert_int_equal(err.code, HG_E_ENV);
    assert_int_equal(mock->facts(w.exec)->counts.submits, 0);
    end_world(&w);
}

/* ---- Random troubles, and crashes at random moments ---- */

static jmp_buf crash;
static int crash_in = -1; /* calls of the world until the crash; -1: none */
static uint64_t seed;

static uint32_t rnd(uint32_t below)
{
    seed ^= seed << 13; /* xorshift64 */
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % below;
}

static void maybe_crash(void)
{
    if (crash_in > 0 && --crash_in == 0) {
        crash_in = -1;
        longjmp(crash, 1);
    }
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);

static off_t durable; /* bytes of the journal that have been synced */

/* The disk: a crash here may leave any part of what was not synced yet. */
int __wrap_fsync(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fcntl(fd, F_GETFL) & O_APPEND) {
        off_t kept = durable < st.st_size ? durable : st.st_size;

        if (crash_in == 1 && ftruncate(fd, kept + rnd((uint32_t)(st.st_size - kept) + 1)) < 0)
            abort();
        durable = crash_in == 1 ? kept : st.st_size;
    }
    maybe_crash();
    return 0; /* the test need not survive a power failure itself */
}

static int crashing_submit(struct hg_executor_session *x, const json_t *job, uint32_t *id,
                           struct hg_err *err)
{
    int rc;

    maybe_crash();
    rc = mock->submit(x, job, id, err);
    maybe_crash();
    return rc;
}

static int crashing_poll(struct hg_executor_session *x, struct hg_executor_jobs *jobs,
                         struct hg_err *err)
{
    maybe_crash();
    return mock->poll(x, jobs, err);
}

static int crashing_cancel(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                           struct hg_err *err)
{
    int rc;

    maybe_crash();
    rc = mock->cancel(x, job_id, tasks, err);
    maybe_crash();
    return rc;
}

static int crashing_hold(struct hg_executor_session *x, uint32_t job_id, const char *tasks,
                         bool held, struct hg_err *err)
{
    int rc;

    maybe_crash();
    rc = mock->hold(x, job_id, tasks, held, err);
    maybe_crash();
    return rc;
}

/* In some rounds people hold the run, or half of it, and let it go again. */
static unsigned passes, hold_at, release_at;
static bool hold_half;

static void ask_in_between(struct world *w)
{
    int left = crash_in;

    crash_in = -1; /* who asks does not crash */
    passes++;
    if (passes == hold_at)
        hg_drive_request(&w->rd, HG_REQUEST_HOLD, hg_drive_state(w->drive),
                         hold_half ? pick_even : NULL, NULL, NULL);
    if (passes == release_at) {
        const struct hg_run_state *state = hg_drive_state(w->drive);

        hg_drive_request(&w->rd, HG_REQUEST_RELEASE, state, NULL, NULL, NULL);
        for (size_t i = 0; i < state->submissions.n; i++) /* else the driver does it */
            if (hold_at % 2 && state->submissions.items[i].job_id)
                mock->hold(w->exec, state->submissions.items[i].job_id, NULL, false, NULL);
    }
    crash_in = left;
}

static json_t *random_config(const size_t *sizes, size_t n)
{
    static const char *const words[] = { "ok",     "ok",      "again",   "env",    "absent",
                                         "absent", "created", "created", "late:1", "late:9",
                                         "lost:0", "lost:2",  "lost:5" };
    static const int array_sizes[] = { 5, 17, 1001 }, job_counts[] = { 20, 60, 10000 };
    json_t *config = json_pack("{s:i,s:i,s:i,s:i,s:b,s:{s:f,s:f}}", "max_array_size",
                               array_sizes[rnd(3)], "max_jobs", job_counts[rnd(3)], "min_job_age_s",
                               rnd(2) ? 300 : 8, "ambiguous_s", 10, "accounting", (int)rnd(2),
                               "default", "start_s", rnd(40) / 10.0, "run_s", rnd(60) / 10.0);
    json_t *submits = json_array(), *polls = json_array(), *tasks = json_object();
    int losses = 0;

    for (uint32_t i = rnd(6); i > 0; i--) {
        uint32_t word = rnd(N_OF(words));

        if (strncmp(words[word], "lost", 4) == 0 && ++losses > 3) /* a fourth is given up */
            word = 0;
        json_array_append_new(submits, json_string(words[word]));
    }
    for (uint32_t i = rnd(8); i > 0; i--)
        json_array_append_new(polls, json_string(rnd(3) ? "ok" : rnd(2) ? "env" : "again"));
    for (uint32_t i = rnd(5); i > 0; i--) {
        static const char *const actions[] = {
            "[{\"result\":\"failed\",\"state\":\"FAILED\"}]",
            "[{\"requeue\":true},{\"run_s\":1}]",
            "[{\"result\":null,\"state\":\"NODE_FAIL\"}]",
            "[{\"result_delay_s\":2}]",
            "[{\"vanish\":true}]",
            "[{\"late_s\":100}]",
            "[{\"result\":\"failed\",\"late_s\":100}]",
            "[{\"run_s\":40,\"twice_s\":0.5}]",
            "[{\"run_s\":40,\"twice_s\":2,\"result\":\"failed\",\"state\":\"FAILED\"}]",
            "[{\"run_s\":900,\"twice_s\":0.5,\"dies_s\":4},{\"run_s\":1}]",
            "[{\"run_s\":900,\"twice_s\":3,\"dies_s\":300},{\"run_s\":1}]",
            "[{\"run_s\":5,\"twice_s\":0.5,\"result\":\"cancelled\"},{\"run_s\":1}]",
        };
        uint32_t b = rnd((uint32_t)n);
        char name[24];

        snprintf(name, sizeof name, "%u:%u", b + 1, rnd((uint32_t)sizes[b]));
        json_object_set_new(tasks, name, json_loads(actions[rnd(N_OF(actions))], 0, NULL));
    }
    json_object_set_new(config, "submits", submits);
    json_object_set_new(config, "polls", polls);
    json_object_set_new(config, "tasks", tasks);
    if (rnd(4) == 0)
        json_object_set_new(config, "down",
                            json_pack("[[i,i]]", (int)rnd(20) + 1, (int)rnd(200) + 20));
    return config;
}

/* Whole jobs: so many lines that share one, of the same number each. */
static void share_jobs(json_t *config, size_t *sizes, size_t n)
{
    json_t *together = json_array();

    for (size_t i = 0; i < n; i++) {
        uint32_t share = rnd(4) + 2;

        sizes[i] = (sizes[i] + share - 1) / share * share;
        json_array_append_new(together, json_integer(share));
    }
    json_object_set_new(config, "together", together);
}

/* The process is not really dead: what it held while it opened the run is let go here. */
static void bury(const char *dir)
{
    for (int i = 1; i < 20; i++) {
        char path[64];

        snprintf(path, sizeof path, "%s/lock.%d", dir, i);
        unlink(path);
    }
}

/* Run until it is over, through crashes. Static, because longjmp comes back here. */
static struct world w_random;

/* In every third round whoever continues has corrected something: batches ask for other resources, and each seventh cell
 * is not in the matrix any more. */
static bool corrects;

static bool is_taken_away(uint32_t line)
{
    return line % 7 == 3;
}

static void correct_plan(struct world *w)
{
    for (size_t b = 0; b < w->plan.n && corrects; b++) {
        struct hg_ranges *removed = &w->batches[b].removed;

        snprintf(w->batches[b].request, sizeof w->batches[b].request, "request %u", rnd(3));
        hg_ranges_done(removed);
        for (uint32_t i = 0; i < w->batches[b].n; i++)
            if (is_taken_away(i))
                hg_ranges_add(removed, i);
    }
}

static int run_through_crashes(unsigned *crashes)
{
    static volatile unsigned left;
    volatile double end = mock_now(w_random.exec) + 20 * DAY_S;
    struct hg_err err = HG_ERR_INIT;
    char counts[200];

    left = rnd(5);
    *crashes = 0;
    if (setjmp(crash)) {
        ++*crashes;
        left--;
        hg_drive_close(w_random.drive); /* frees, writes nothing */
        w_random.drive = NULL;
        bury(w_random.dir);
        mock_advance(w_random.exec, rnd(2) ? rnd(30) / 10.0 : rnd(400));
        correct_plan(&w_random);
    }
    crash_in = left ? (int)rnd(60) + 1 : -1;
    while (!w_random.drive) { /* the crash may come while it opens, too */
        w_random.drive = hg_drive_open(&w_random.rd, &w_random.plan, &w_random.options, &err);
        if (!w_random.drive) {
            print_error("cannot open: %s\n", err.text);
            return -1;
        }
    }
    while (mock_now(w_random.exec) < end) {
        double took;

        err = (struct hg_err)HG_ERR_INIT;
        took = drive_to_end(&w_random, &err);
        if (took >= 0) {
            crash_in = -1;
            return 0;
        }
        if (err.code != HG_E_ENV) /* the first contact may find it down */
            break;
        mock_advance(w_random.exec, 30);
    }
    crash_in = -1;
    format_counts(hg_drive_state(w_random.drive), counts, sizeof counts);
    print_error("not over: %s; %s\n", counts, err.text);
    return -1;
}

/* In every fifth round each batch is a noisy configuration: three cells first, the others once these have ended. */
static json_t *noisy_result(void *context, int batch, uint32_t line)
{
    (void)context;
    (void)batch;
    return json_pack("{s:i}", "train_s", line % 2 ? 10 : 99);
}

static void repeat_adaptively(struct world *w)
{
    static struct hg_turn list[3][64];

    for (size_t b = 0; b < w->plan.n; b++) {
        for (uint32_t i = 0; i < w->batches[b].n; i++)
            list[b][i] = (struct hg_turn){ (uint32_t)b + 1, i + 1 };
        w->batches[b].turns = list[b];
        w->plan.cells += w->batches[b].n;
    }
    w->options.repeats = (struct hg_repeats){ 0.05, 3, 64 };
    w->options.io.result = noisy_result;
}

/* Too few runs of its configuration were good to say anything. */
static bool is_rightly_unneeded(const struct hg_run_batch *b, const struct hg_run_cell *cell)
{
    size_t good = 0;

    for (size_t i = 0; i < b->n; i++)
        good += b->cells[i].state == HG_CELL_OK;
    return cell->state == HG_CELL_UNNEEDED && good < 3;
}

static const json_t *last_action(const json_t *config, size_t batch, uint32_t line, unsigned *runs)
{
    char name[24];
    const json_t *list;

    snprintf(name, sizeof name, "%zu:%u", batch + 1, line);
    list = json_object_get(json_object_get(config, "tasks"), name);
    *runs = list ? (unsigned)json_array_size(list) : 1;
    return list ? json_array_get(list, *runs - 1) : NULL;
}

/* Every cell came to the end its script has, and its workload was started no more often than that. */
static int audit(const json_t *config, bool lossy)
{
    const struct hg_run_state *state = hg_drive_state(w_random.drive);
    int bad = mock_doubles(w_random.exec) ? 1 : 0;

    for (size_t b = 0; b < state->batches.n; b++)
        for (uint32_t i = 0; i < state->batches.items[b].n; i++) {
            const struct hg_run_cell *cell = hg_run_cell_find(state, (int)b + 1, i);
            unsigned want, runs = mock_runs(w_random.exec, (int)b + 1, i);
            const json_t *action = last_action(config, b, i, &want);
            const json_t *result = json_object_get(action, "result");
            bool good = !result; /* scripted to end well */
            bool fine = runs == want && (cell->state == HG_CELL_OK) == good;

            if (cell->removed && runs <= want &&
                (cell->state == HG_CELL_REMOVED || cell->state == HG_CELL_OK))
                continue;
            /* The mock shows a job that it will forget together with the next one of the same id: what was meant for one is
             * done to the other. */
            if (corrects && lossy &&
                (cell->state == HG_CELL_CANCELLED ? runs <= want
                                                  : runs == want + 1 && cell->state == HG_CELL_OK))
                continue;
            if (!runs && is_rightly_unneeded(&state->batches.items[b], cell))
                continue;
            /* A job that was requeued or still ran when Slurm forgot it and hpcgrid died is given up;
             * its result counts when it comes. */
            if (lossy && !fine && hg_cell_is_over(cell) &&
                (want > 1 ? runs <= want : runs == 1 && cell->state == HG_CELL_LOST))
                continue;
            /* A copy that was sent because the first seemed absent takes over from it when it dies without a
             * result. */
            if (!fine && json_is_null(result) && runs == want + 1 && cell->state == HG_CELL_OK)
                continue;
            /* It shared a job: when that is requeued, what has failed in it runs again, and it is forgotten only once. */
            if (!fine && w_random.batches[b].together && cell->state == HG_CELL_OK &&
                (good ? runs < want : runs > want))
                continue;
            if (!fine) {
                print_error("cell %zu:%u: %s, started %u times, wanted %u\n", b + 1, i,
                            hg_cell_state_names[cell->state], runs, want);
                bad++;
            }
        }
    return bad;
}

static void test_random_crashes_lose_nothing_and_double_nothing(void **state)
{
    struct hg_executor crashing = *mock;
    const char *word = getenv("HPCGRID_ROUNDS");
    long rounds = word ? atol(word) : 1000, first = 0;
    unsigned crashes = 0, cells = 0;

    (void)state;
    if (getenv("HPCGRID_SEED")) {
        first = atol(getenv("HPCGRID_SEED"));
        rounds = 1;
    }
    crashing.submit = crashing_submit;
    crashing.poll = crashing_poll;
    crashing.cancel = crashing_cancel;
    crashing.hold = crashing_hold;
    for (long round = first; round < first + rounds; round++) {
        size_t sizes[3], n;
        unsigned more;
        json_t *config;
        char *text;
        int bad;

        seed = 0x9e3779b97f4a7c15u * (uint64_t)(round + 1);
        n = rnd(3) + 1;
        for (size_t i = 0; i < n; i++)
            sizes[i] = rnd(rnd(4) ? 12 : 40) + 1;
        config = random_config(sizes, n);
        if (round % 4 == 3) /* cells share jobs */
            share_jobs(config, sizes, n);
        for (size_t i = 0; i < n; i++)
            cells += (unsigned)sizes[i];
        text = json_dumps(config, 0);
        make_world(&w_random, text, sizes, n);
        durable = 0;
        w_random.options.executor = &crashing;
        w_random.options.near = rnd(2);
        w_random.options.running = rnd(3) ? 0 : rnd(6) + 1;
        if (round % 5 == 2)
            repeat_adaptively(&w_random);
        passes = 0;
        corrects = round % 3 == 2;
        for (size_t i = 0; i < n && corrects; i++)
            snprintf(w_random.batches[i].request, sizeof w_random.batches[i].request, "request");
        hold_half = round % 4 == 1;
        hold_at = round % 2 ? (unsigned)(round / 4 % 9) + 1 : 0;
        release_at = hold_at ? hold_at + 1 + (unsigned)(round / 36 % 40) : 0;
        w_random.each_pass = ask_in_between;
        bad = run_through_crashes(&more);
        bad = bad ? bad : audit(config, strstr(text, "lost") != NULL);
        if (bad)
            fail_msg("round %ld: %s", round, text);
        crashes += more;
        free(text);
        json_decref(config);
        end_world(&w_random);
    }
    print_message("%ld rounds, %u cells, %u crashes: 0 lost, 0 doubled\n", rounds, cells, crashes);
}

/* ---- Adaptive repeats ---- */

#define CASES 3
#define CASE_RUNS 10

static struct hg_turn turns[CASES * CASE_RUNS];

/* Case 0 is quiet, 1 needs a second round, 2 is noisy. */
static json_t *timed_result(void *context, int batch, uint32_t line)
{
    static const double spread[CASES] = { 0.1, 3, 40 };
    int run = (int)(line / CASES), sign = run % 2 ? -1 : 1;

    (void)context;
    (void)batch;
    return json_pack("{s:f}", "train_s", 100 + sign * spread[line % CASES] * (run > 0));
}

/* All first runs, then all second ones: line = run * CASES + case. */
static void make_cases(struct world *w, const char *config)
{
    size_t cells = CASES * CASE_RUNS;

    make_world(w, config, &cells, 1);
    for (uint32_t i = 0; i < cells; i++)
        turns[i] = (struct hg_turn){ i % CASES + 1, i / CASES + 1 };
    w->batches[0].turns = turns;
    w->plan.cells = cells;
    w->options.repeats = (struct hg_repeats){ 0.05, 3, CASE_RUNS };
    w->options.io.result = timed_result;
}

/* "3 5 10": how often each case was run */
static const char *runs_of_cases(const struct world *w)
{
    static char text[64];
    unsigned n[CASES] = { 0 };

    for (uint32_t i = 0; i < CASES * CASE_RUNS; i++)
        n[i % CASES] += mock_runs(w->exec, 1, i);
    snprintf(text, sizeof text, "%u %u %u", n[0], n[1], n[2]);
    return text;
}

static void test_noisy_cases_are_repeated_more_often(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    char counts[200];
    struct world w;

    (void)state;
    make_cases(&w, "{\"default\":{\"run_s\":2}}");
    open_drive(&w);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "waiting 9, not_needed 21");
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "3 6 10");
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 19, not_needed 11");
    hg_drive_close(w.drive); /* the next driver decides the same */
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "3 6 10");
    end_world(&w);
}

static void test_a_failed_repeat_is_not_replaced(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    char counts[200];
    struct world w;

    (void)state;
    /* case 0 has two good runs of three: too few to decide; case 2 loses one of its ten */
    make_cases(&w, "{\"tasks\":{\"1:3\":[{\"result\":\"failed\"},{}],"
                   "\"1:14\":[{\"result\":\"failed\"},{\"result\":\"failed\"}]}}");
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "3 6 10");
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 17, failed 2, not_needed 11");
    assert_int_equal(hg_drive_again(w.drive, 1u << HG_CELL_FAILED, NULL, NULL, NULL), 2);
    assert_true(drive_to_end(&w, &err) >= 0);
    format_counts(hg_drive_state(w.drive), counts, sizeof counts);
    assert_string_equal(counts, "ok 18, failed 1, not_needed 11");
    end_world(&w);
}

static void test_what_a_person_cancels_is_not_repeated(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct world w;

    (void)state;
    make_cases(&w, "{\"default\":{\"start_s\":0,\"run_s\":50}}");
    start_drive(&w);
    assert_int_equal(
        hg_drive_request(&w.rd, HG_REQUEST_CANCEL, hg_drive_state(w.drive), pick_even, NULL, NULL),
        0);
    assert_true(drive_to_end(&w, &err) >= 0); /* each case has even lines */
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_OK], 4);
    assert_int_equal(hg_drive_state(w.drive)->counts[HG_CELL_UNNEEDED], 21);
    end_world(&w);
}

static void test_rounds_end_at_the_budget(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct world w;

    (void)state;
    make_cases(&w, "{}");
    w.batches[0].gpu = true;
    w.batches[0].devices = 2;
    w.batches[0].time_s = 1800;  /* a GPU-hour each */
    w.options.gpu_hours = 9 + 4; /* three more for case 1, one for case 2 */
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "3 6 4");
    end_world(&w);
}

static void test_an_edited_rule_holds_for_what_comes(void **state)
{
    struct hg_err err = HG_ERR_INIT;
    struct world w;

    (void)state;
    make_cases(&w, "{}");
    w.options.repeats.until = 1;
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "3 3 6");
    hg_drive_close(w.drive);
    w.options.repeats = (struct hg_repeats){ 0.05, 4, 7 }; /* at least four, at most seven */
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "4 6 7");
    hg_drive_close(w.drive);
    w.options.repeats = (struct hg_repeats){ 0, CASE_RUNS, CASE_RUNS }; /* not adaptive any more */
    open_drive(&w);
    assert_true(drive_to_end(&w, &err) >= 0);
    assert_string_equal(runs_of_cases(&w), "10 10 10");
    end_world(&w);
}

/* A controller that dies at any call: the next one asks for the same runs, each once. */
static void test_rounds_survive_crashes(void **state)
{
    static volatile int at;
    struct hg_executor crashing = *mock;

    (void)state;
    crashing.submit = crashing_submit;
    crashing.poll = crashing_poll;
    for (at = 1; at <= 60; at++) {
        struct hg_err err = HG_ERR_INIT;

        make_cases(&w_random, "{\"default\":{\"run_s\":2}}");
        w_random.options.executor = &crashing;
        durable = 0;
        seed = (uint64_t)at;
        crash_in = at;
        if (setjmp(crash)) {
            hg_drive_close(w_random.drive);
            w_random.drive = NULL;
            bury(w_random.dir);
        }
        open_drive(&w_random);
        if (drive_to_end(&w_random, &err) < 0)
            fail_msg("crash at call %d: %s", at, err.text);
        if (strcmp(runs_of_cases(&w_random), "3 6 10") != 0)
            fail_msg("crash at call %d: %s", at, runs_of_cases(&w_random));
        assert_int_equal(mock_doubles(w_random.exec), 0);
        crash_in = -1;
        end_world(&w_random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_noisy_cases_are_repeated_more_often),
        cmocka_unit_test(test_a_failed_repeat_is_not_replaced),
        cmocka_unit_test(test_what_a_person_cancels_is_not_repeated),
        cmocka_unit_test(test_rounds_end_at_the_budget),
        cmocka_unit_test(test_an_edited_rule_holds_for_what_comes),
        cmocka_unit_test(test_rounds_survive_crashes),
        cmocka_unit_test(test_every_trouble_has_its_way_out),
        cmocka_unit_test(test_a_good_result_that_is_superseded_does_not_end_its_cell),
        cmocka_unit_test(test_what_two_copies_left_to_each_other_is_sent_again),
        cmocka_unit_test(test_nothing_is_submitted_when_the_controller_never_answers),
        cmocka_unit_test(test_every_bad_batch_is_found_before_the_first_submission),
        cmocka_unit_test(test_a_driver_whose_lock_was_taken_ends_though_it_has_nothing_to_write),
        cmocka_unit_test(test_cancelled_cells_are_not_submitted_and_jobs_end),
        cmocka_unit_test(test_cancelling_one_cell_of_a_job_leaves_the_others),
        cmocka_unit_test(test_holding_one_cell_of_a_job_holds_the_job),
        cmocka_unit_test(test_held_cells_do_not_start_before_they_are_released),
        cmocka_unit_test(test_a_held_run_holds_what_is_added_and_what_runs_again),
        cmocka_unit_test(test_wishes_count_in_their_order),
        cmocka_unit_test(test_wishes_about_cells_that_a_run_has_not_do_nothing),
        cmocka_unit_test(test_only_its_user_s_holds_are_let_go),
        cmocka_unit_test(test_what_is_cancelled_is_cancelled_whatever_slurm_calls_its_end),
        cmocka_unit_test(test_tasks_that_somebody_cancels_in_slurm_are_not_sent_again),
        cmocka_unit_test(test_a_launch_failure_is_tried_anew_though_the_answer_got_lost),
        cmocka_unit_test(test_only_what_is_picked_runs_again),
        cmocka_unit_test(test_the_matrix_says_what_runs_again),
        cmocka_unit_test(test_an_automatic_limit_is_raised_after_a_timeout),
        cmocka_unit_test(test_good_results_of_others_do_not_run_again),
        cmocka_unit_test(test_a_plan_that_grew_runs_only_what_is_new),
        cmocka_unit_test(test_a_reader_sees_what_the_table_says),
        cmocka_unit_test(test_a_full_disk_stops_it_before_the_request),
        cmocka_unit_test(test_random_crashes_lose_nothing_and_double_nothing),
    };

    setenv("HPCGRID_LOG", "error", 0);
    mock = &mock_executor;
    return cmocka_run_group_tests_name("drive", tests, NULL, NULL);
}
