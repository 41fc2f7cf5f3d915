/* SPDX-License-Identifier: Apache-2.0 */
#include "train/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "train/revision.h"

#define CURVE_MAX 200 /* points of the loss curve, in addition to one an epoch */

void wk_result_done(struct wk_result *r)
{
    HG_VEC_DONE(&r->epoch_s);
    HG_VEC_DONE(&r->epoch_loss);
    HG_VEC_DONE(&r->step_s);
    HG_VEC_DONE(&r->step_loss);
    free(r->ranks);
    r->ranks = NULL;
    free(r->places);
    r->places = NULL;
    json_decref(r->comparable);
    json_decref(r->env);
    json_decref(r->profile);
    r->comparable = NULL;
}

static const char *error_kind(enum hg_err_code code)
{
    static const char *const names[] = { "none",        "usage",       "input",
                                         "environment", "environment", "ambiguous",
                                         "refused",     "notfound",    "bug" };

    return names[code];
}

static json_t *encode_missing(const struct wk_missing *m)
{
    json_t *o = json_pack("{s:i, s:s, s:i, s:s, s:I, s:s}", "rank", m->rank, "host", m->host, "pid",
                          m->pid, "how", wk_how_names[m->how], "step", (json_int_t)m->at.step,
                          "phase", wk_phase_names[m->at.phase % WK_PHASES]);

    return o ? o : json_null();
}

/* Where it happened, and who is missing. */
static void encode_verdict(const struct wk_verdict *v, json_t *e)
{
    int shown = v->n_missing < WK_MISSING_MAX ? v->n_missing : WK_MISSING_MAX;
    const struct wk_at *at = v->at.coll[0] || !shown ? &v->at : &v->missing[0].at;
    json_t *missing = json_array();

    json_object_set_new(e, "collective", v->at.coll[0] ? json_string(v->at.coll) : json_null());
    json_object_set_new(e, "step", json_integer(at->step));
    json_object_set_new(e, "phase", json_string(wk_phase_names[at->phase % WK_PHASES]));
    json_object_set_new(e, "comm_timeout", json_real(v->limit_s));
    for (int i = 0; i < shown; i++)
        json_array_append_new(missing, encode_missing(&v->missing[i]));
    json_object_set_new(e, "missing", missing);
}

static json_t *encode_error(const struct wk_result *r)
{
    json_t *e = json_object();

    json_object_set_new(e, "message", hg_json_text(r->error.text));
    json_object_set_new(e, "kind", json_string(error_kind(r->error.code)));
    if (r->error.hint[0])
        json_object_set_new(e, "hint", hg_json_text(r->error.hint));
    if (r->error.file[0])
        json_object_set_new(e, "file", hg_json_text(r->error.file));
    if (r->error.line)
        json_object_set_new(e, "line", json_integer(r->error.line));
    if (r->error.pointer[0])
        json_object_set_new(e, "pointer", hg_json_text(r->error.pointer));
    json_object_set_new(e, "rank", json_integer(r->error_rank));
    json_object_set_new(e, "host", json_string(r->error_host));
    if (r->verdict)
        encode_verdict(r->verdict, e);
    return e;
}

static json_t *encode_numbers(const double *items, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, hg_json_number(items[i]));
    return list;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The value below which a part q of the sorted values lies, interpolated. */
static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;

    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

static json_t *encode_steps(const struct wk_result *r)
{
    size_t n = r->step_s.n;
    double *sorted = hg_alloc((n + 1) * sizeof *sorted);
    json_t *o = json_object();

    if (n) {
        memcpy(sorted, r->step_s.items, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_doubles);
        json_object_set_new(o, "median", hg_json_number(quantile(sorted, n, 0.5)));
        json_object_set_new(o, "p95", hg_json_number(quantile(sorted, n, 0.95)));
    }
    free(sorted);
    return o;
}

/* Every step while there are few, else evenly spaced ones; the last is always there. */
static json_t *encode_curve(const struct wk_result *r)
{
    size_t n = r->step_loss.n, stride = (n + CURVE_MAX - 1) / CURVE_MAX;
    json_t *steps = json_array(), *losses = json_array();

    for (size_t i = 0; i < n; i++)
        if (i % stride == 0 || i == n - 1) {
            json_array_append_new(steps, json_integer((json_int_t)i + 1));
            json_array_append_new(losses, hg_json_number(r->step_loss.items[i]));
        }
    return json_pack("{s:o, s:o, s:o}", "epoch",
                     encode_numbers(r->epoch_loss.items, r->epoch_loss.n), "step", steps, "loss",
                     losses);
}

static json_t *encode_count(const struct wk_comm_count *c)
{
    json_t *o = json_pack("{s:I, s:I, s:o, s:o}", "calls", (json_int_t)c->calls, "payload_bytes",
                          (json_int_t)c->payload_bytes, "ring_bytes", hg_json_number(c->ring_bytes),
                          "seconds", hg_json_number(c->seconds));

    if (c->sent_bytes)
        json_object_set_new(o, "sent_bytes", json_integer((json_int_t)c->sent_bytes));
    return o;
}

static json_t *encode_comm(const struct wk_result *r, enum wk_plane plane)
{
    json_t *o = json_object();

    for (int coll = 0; coll < WK_COLLS; coll++) {
        const struct wk_comm_count *count = &r->counts[plane][coll];
        double expected = plane == WK_PLANE_TRAIN ? r->expected.ring_bytes[coll] : 0;
        json_t *entry;

        if (!count->calls && expected <= 0)
            continue;
        entry = encode_count(count);
        if (plane == WK_PLANE_TRAIN) {
            json_object_set_new(entry, "exposed_s", hg_json_number(count->exposed_s));
            json_object_set_new(entry, "expected_bytes", hg_json_number(expected));
            json_object_set_new(entry, "expected_calls", hg_json_number(r->expected.calls[coll]));
        }
        json_object_set_new(o, wk_coll_names[coll], entry);
    }
    return o;
}

static json_t *encode_mem(const uint64_t *bytes)
{
    json_t *o = json_object();

    for (int i = 0; i < WK_MEM_CLASSES; i++)
        json_object_set_new(o, wk_mem_names[i], json_integer((json_int_t)bytes[i]));
    return o;
}

/* The largest of all ranks, class by class. */
static json_t *encode_memory(const struct wk_result *r)
{
    uint64_t most[WK_MEM_CLASSES] = { 0 };

    for (int rank = 0; rank < r->world; rank++)
        for (int i = 0; i < WK_MEM_CLASSES; i++)
            if (r->ranks[rank].mem_bytes[i] > most[i])
                most[i] = r->ranks[rank].mem_bytes[i];
    return encode_mem(most);
}

static json_t *encode_expected_memory(const struct wk_result *r)
{
    json_t *o = json_object();

    for (int i = 0; i < WK_MEM_CLASSES; i++)
        if (r->expected.mem_bytes[i] >= 0)
            json_object_set_new(o, wk_mem_names[i], hg_json_number(r->expected.mem_bytes[i]));
    return o;
}

static json_t *encode_ranks(const struct wk_result *r)
{
    json_t *list = json_array();

    for (int rank = 0; rank < r->world; rank++) {
        const struct wk_rank_info *info = &r->ranks[rank];
        bool gpu = info->uuid[0];

        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:s*, s:s*, s:i, s:i, s:o, s:o}",
                                              "rank", info->rank, "host", info->host, "device",
                                              info->device, "pci", gpu ? info->pci : NULL, "uuid",
                                              gpu ? info->uuid : NULL, "pid", info->pid, "threads",
                                              info->threads, "comm_s", hg_json_number(info->comm_s),
                                              "memory", encode_mem(info->mem_bytes)));
    }
    return list;
}

/* Two results with comparable numbers agree here. */
static json_t *encode_comparable(const struct wk_result *r)
{
    json_int_t batch = (json_int_t)r->batch_rows * r->world * (r->accumulate ? r->accumulate : 1);
    json_t *o =
        json_pack("{s:s, s:s, s:b, s:s, s:I, s:I, s:b, s:s, s:s, s:i, s:s}", "model", r->model,
                  "precision", r->precision, "tf32", strcmp(r->precision, "tf32") == 0, "backend",
                  r->backend, "global_batch", batch, "epochs", (json_int_t)r->epochs, "dropout",
                  (int)r->dropout, "dataset", r->dataset, "dataset_hash", r->dataset_hash,
                  "samples", r->train_samples, "revision", WK_REVISION);

    if (r->comparable)
        json_object_update(o, r->comparable);
    return o;
}

static void encode_times(const struct wk_result *r, json_t *o)
{
    size_t steps = r->step_loss.n;

    json_object_set_new(o, "init_s", hg_json_number(r->init_s));
    json_object_set_new(o, "train_s", hg_json_number(r->train_s));
    json_object_set_new(o, "noise_s", hg_json_number(r->noise_s));
    json_object_set_new(o, "data_s", hg_json_number(r->data_s));
    json_object_set_new(o, "epoch_s", encode_numbers(r->epoch_s.items, r->epoch_s.n));
    json_object_set_new(o, "step_s", encode_steps(r));
    json_object_set_new(o, "steps", json_integer((json_int_t)steps));
    if (r->train_s > 0) {
        json_object_set_new(o, "samples_per_s", hg_json_number(r->trained_samples / r->train_s));
        json_object_set_new(o, "steps_per_s", hg_json_number((double)steps / r->train_s));
    }
}

static void encode_losses(const struct wk_result *r, json_t *o)
{
    size_t n = r->epoch_loss.n;

    json_object_set_new(o, "final_loss",
                        n ? hg_json_number(r->epoch_loss.items[n - 1]) : json_null());
    json_object_set_new(o, "loss", encode_curve(r));
    json_object_set_new(o, "diverged", json_boolean(r->diverged));
    if (r->evaluated) {
        json_t *eval = json_object();

        if (r->answers) {
            json_object_set_new(eval, "em", hg_json_number(r->exact));
            json_object_set_new(eval, "f1", hg_json_number(r->f1));
            json_object_set_new(eval, "questions", json_integer(r->questions));
        } else if (r->accuracy >= 0) {
            json_object_set_new(eval, "accuracy", hg_json_number(r->accuracy));
        }
        json_object_set_new(eval, "loss", hg_json_number(r->eval_loss));
        json_object_set_new(eval, "samples", json_integer(r->test_samples));
        json_object_set_new(o, "eval", eval);
        json_object_set_new(o, "eval_s", hg_json_number(r->eval_s));
    }
}

static void encode_work(const struct wk_result *r, json_t *o)
{
    json_object_update_new(o,
                           json_pack("{s:s, s:i, s:i, s:s, s:I, s:I, s:i}", "strategy", r->strategy,
                                     "world", r->world, "threads", r->threads, "communication",
                                     r->comm_name, "seed", (json_int_t)r->seed, "parameters",
                                     (json_int_t)r->params, "samples_padded", r->padded_samples));
    if (r->resumed)
        json_object_set_new(o, "resumed",
                            json_pack("{s:i, s:I}", "times", r->resumed, "after_step",
                                      (json_int_t)r->resumed_step));
    encode_times(r, o);
    encode_losses(r, o);
    json_object_set_new(o, "comm", encode_comm(r, WK_PLANE_TRAIN));
    json_object_set_new(o, "comm_control", encode_comm(r, WK_PLANE_CONTROL));
    if (r->has_expected)
        json_object_set_new(o, "memory_expected", encode_expected_memory(r));
    if (r->ranks) {
        json_object_set_new(o, "memory", encode_memory(r));
        json_object_set_new(o, "ranks", encode_ranks(r));
    }
    if (r->trace[0])
        json_object_set_new(o, "trace", json_string(r->trace));
    if (r->profile)
        json_object_set(o, "profile", r->profile);
    if (r->env)
        json_object_set(o, "env", r->env);
    json_object_set_new(o, "comparable", encode_comparable(r));
}

json_t *wk_result_encode(const struct wk_result *r)
{
    json_t *o = json_object();

    json_object_set_new(o, "schema", json_string("hpcgrid-workload/1"));
    json_object_set_new(o, "program", json_string("hpcgrid-worker"));
    json_object_set_new(o, "status",
                        json_string(r->stopped_with_checkpoint ? "checkpoint"
                                    : r->error.code            ? "failed"
                                                               : "ok"));
    if (r->error.code)
        json_object_set_new(o, "error", encode_error(r));
    if (r->model[0]) /* the cell was understood */
        encode_work(r, o);
    if (!r->ranks && r->places)
        json_object_set_new(o, "ranks", wk_places_encode(r->places, r->n_places));
    return o;
}

/* Another rank of this training wrote there: the file is no older than this process. Clocks of other machines may differ. */
static bool is_taken(const struct wk_result *r, const char *path, bool elsewhere)
{
    double age_s = hg_clock_mono_s() - r->start_mono_s, start_s;
    struct timespec now;
    struct stat st;

    clock_gettime(CLOCK_REALTIME, &now);
    start_s = (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - age_s;
    if (elsewhere)
        start_s = floor(start_s) - 1;
    return stat(path, &st) == 0 &&
           (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9 >= start_s;
}

int wk_result_save(const struct wk_result *r, const char *path, int rank, struct hg_err *err)
{
    json_t *o;
    int rc;

    if ((rank != 0 || r->error.code) && is_taken(r, path, rank != 0))
        return 0;
    o = wk_result_encode(r);
    rc = hg_json_save(path, o, err);
    json_decref(o);
    return rc;
}

void wk_result_format(const struct wk_result *r, struct hg_buf *out)
{
    char text[32];

    hg_text_duration_format(r->train_s, text);
    hg_buf_printf(out, "%s %s on %s: %d rank%s x %d thread%s, batch %d\n", r->model, r->strategy,
                  r->dataset, r->world, hg_text_s((unsigned long long)r->world), r->threads,
                  hg_text_s((unsigned long long)r->threads), r->batch_rows);
    hg_buf_printf(out, "trained   %s, %zu step%s, %.0f samples/s\n", text, r->step_loss.n,
                  hg_text_s(r->step_loss.n), r->train_s > 0 ? r->trained_samples / r->train_s : 0);
    if (r->epoch_loss.n)
        hg_buf_printf(out, "loss      %.4f\n",
                      fabs(r->epoch_loss.items[r->epoch_loss.n - 1])); /* NaN has a sign */
    if (r->evaluated && r->answers)
        hg_buf_printf(out, "answers   EM %.2f, F1 %.2f of %d question%s\n", r->exact, r->f1,
                      r->questions, hg_text_s((unsigned long long)r->questions));
    else if (r->evaluated && r->accuracy >= 0)
        hg_buf_printf(out, "accuracy  %.2f %% of %d test sample%s\n", 100 * r->accuracy,
                      r->test_samples, hg_text_s((unsigned long long)r->test_samples));
    if (r->diverged)
        hg_buf_puts(out, "diverged  a loss became NaN or infinite\n");
}
