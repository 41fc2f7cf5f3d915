/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows of itself: which steps are recorded, how spans nest, and the bytes of event files. */
#include "worker.h"

#include <glob.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "profile/profiler.h"
#include "profile/tfevents.h"

/* As torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2) says. */
static void test_the_schedule_is_torchs(void **state)
{
    const struct wk_schedule s = { .skip = 1, .wait = 1, .warmup = 1, .active = 2, .repeat = 2 };
    const struct wk_schedule forever = { .active = 3, .wait = 1 };
    char kinds[13] = "";

    (void)state;
    for (long step = 0; step < 12; step++)
        kinds[step] = ".wR"[wk_schedule_at(&s, step)];
    assert_string_equal(kinds, "..wRR.wRR...");
    for (long step = 0; step < 12; step++)
        kinds[step] = ".wR"[wk_schedule_at(&forever, step)];
    assert_string_equal(kinds, ".RRR.RRR.RRR");
}

/* ---- Ops ---- */

/* Whatever computes or moves data is timed: an op that is missing would be in no profile. */
static void test_every_op_is_timed(void **state)
{
    static const struct wk_schedule always = { .active = 1 };
    typedef void any(void);
    any *inner[sizeof(struct wk_backend) / sizeof(any *)], *timed[sizeof inner / sizeof *inner];
    size_t first = offsetof(struct wk_backend, fill) / sizeof(any *);
    struct wk_backend from;
    struct wk_dev dev = { .backend = &from };
    struct wk_comm comm = { .world = 1 };
    struct wk_profiler *p;

    (void)state;
    memset(&from, 0x11, sizeof from);
    p = wk_profiler_create(&dev, &comm, &always);
    wk_profiler_step(p, 0);
    memcpy(inner, &from, sizeof from);
    memcpy(timed, dev.backend, sizeof from);
    for (size_t i = first; i < sizeof inner / sizeof *inner; i++)
        if (inner[i] == timed[i])
            fail_msg("op %zu behind fill is not timed", i - first);
    assert_true(dev.backend->upload != from.upload && dev.backend->download != from.download);
    wk_profiler_free(p);
}

static void test_spans_nest_and_only_recorded_steps_are_kept(void **state)
{
    const struct wk_schedule schedule = { .warmup = 1, .active = 1, .repeat = 1 };
    struct hg_err err = HG_ERR_INIT;
    struct wk_dev *dev = open_cpu(1);
    const struct wk_backend *own = dev->backend;
    struct wk_comm comm = { .world = 1 };
    struct wk_profiler *p = wk_profiler_create(dev, &comm, &schedule);
    const struct wk_timed *spans;
    struct wk_span x = WK_NONE;
    double inside_s;
    json_t *table;
    size_t n;

    (void)state;
    assert_int_equal(wk_dev_alloc(dev, WK_MEM_ACTIVATIONS, WK_REAL, 100, &x, &err), 0);
    for (long step = 0; step < 3; step++) {
        wk_profiler_step(p, step);
        assert_int_equal(dev->backend != own, step < 2);
        wk_profiler_begin(p, WK_SPAN_FORWARD, "layer");
        dev->backend->fill(dev, x, 1);
        dev->backend->scale(dev, x, 2);
        wk_profiler_end(p);
        if (step == 1) /* left open, as by a failure: the step's end closes it */
            wk_profiler_begin(p, WK_SPAN_BACKWARD, "layer");
    }
    wk_profiler_step(p, 3);
    spans = wk_profiler_spans(p, &n);
    assert_int_equal(n, 5);
    assert_string_equal(spans[0].name, "fill");
    assert_string_equal(spans[1].name, "scale");
    assert_int_equal(spans[2].kind, WK_SPAN_FORWARD);
    assert_int_equal(spans[3].kind, WK_SPAN_BACKWARD);
    assert_int_equal(spans[4].kind, WK_SPAN_STEP);
    assert_int_equal(spans[4].number, 1);
    assert_true(spans[2].start_s <= spans[0].start_s && spans[0].end_s <= spans[1].start_s &&
                spans[1].end_s <= spans[2].end_s && spans[3].end_s <= spans[4].end_s);
    inside_s = spans[0].end_s - spans[0].start_s + spans[1].end_s - spans[1].start_s;
    assert_true(fabs(spans[2].self_s + inside_s - (spans[2].end_s - spans[2].start_s)) < 1e-9);
    table = wk_profiler_table(p);
    assert_int_equal(json_integer_value(json_object_get(table, "steps")), 1);
    assert_int_equal(json_array_size(json_object_get(table, "ops")), 2);
    json_decref(table);
    wk_profiler_free(p);
    assert_ptr_equal(dev->backend, own);
    assert_null(dev->profiler);
    wk_dev_free(dev, WK_MEM_ACTIVATIONS, &x);
    dev->backend->close(dev);
}

/* ---- Event files; the expected bytes were made with TensorBoard's own messages ---- */

static void to_hex(const struct hg_buf *bytes, struct hg_buf *hex)
{
    for (size_t i = 0; i < bytes->len; i++)
        hg_buf_printf(hex, "%02x", (unsigned char)bytes->data[i]);
}

static void read_events(const char *dir, struct hg_buf *hex)
{
    struct hg_buf bytes = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    char pattern[64];
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.1700000000.*", dir);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_int_equal(hg_fs_read(found.gl_pathv[0], 1 << 20, &bytes, &err), 0);
    globfree(&found);
    to_hex(&bytes, hex);
    hg_buf_done(&bytes);
}

static void test_event_files_are_tensorboards(void **state)
{
    static const char *const metrics[] = { "loss", NULL };
    static const char *const parts[] = {
        /* the first record: version */
        "1a0d627261696e2e4576656e743a32",
        /* loss 1.5 at step 7, the whole record with both checksums */
        "1a00000000000000129bd82d0900000040fc54d94110072a0d0a0b0a046c6f7373150000c03fd46e200f",
        /* the settings of a session, sorted, and how it ended */
        "0a0f0a026c72120911691d554d1075ff3e0a110a08737472617465677912051a03646470",
        "220b0801110000004ffc54d941",
        /* a tensor without elements stands beside each message */
        "4206080112021200",
    };
    json_t *settings = json_pack("{s:s, s:f, s:n}", "strategy", "ddp", "lr", 3e-5, "gone");
    char dir[] = "/tmp/hg-profile-XXXXXX";
    struct hg_buf hex = HG_BUF_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct wk_tfevents *t;

    (void)state;
    assert_non_null(mkdtemp(dir));
    t = wk_tfevents_open(dir, 1700000000.0, &err);
    assert_non_null(t);
    wk_tfevents_settings(t, settings, metrics, "g", 1700000000.0);
    wk_tfevents_scalar(t, "loss", 7, 1700000000.0, 1.5);
    wk_tfevents_end(t, true, 1700000060.0);
    assert_int_equal(wk_tfevents_close(t, &err), 0);
    read_events(dir, &hex);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(hg_buf_str(&hex), parts[i]))
            fail_msg("%s is not in %s", parts[i], hg_buf_str(&hex));
    hg_buf_done(&hex);
    json_decref(settings);
    hg_fs_remove_tree(dir, NULL);
}

static void test_a_folder_that_is_not_there_is_said(void **state)
{
    struct hg_err err = HG_ERR_INIT;

    (void)state;
    assert_null(wk_tfevents_open("/nowhere", 1, &err));
    assert_int_equal(err.code, HG_E_ENV);
    assert_int_equal(wk_tfevents_close(NULL, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_schedule_is_torchs),
        cmocka_unit_test(test_every_op_is_timed),
        cmocka_unit_test(test_spans_nest_and_only_recorded_steps_are_kept),
        cmocka_unit_test(test_event_files_are_tensorboards),
        cmocka_unit_test(test_a_folder_that_is_not_there_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
