/* SPDX-License-Identifier: Apache-2.0 */
/* Records some steps of a training: how long every op, every unit's passes and every collective took. While a
 * step is recorded the device's backend is replaced by one that times each op; other steps run
 * as if there were no profiler.
 *
 * On the CPU an op's span is its work. On a device that queues its work it is only the call. */
#ifndef WK_PROFILE_PROFILER_H
#define WK_PROFILE_PROFILER_H

#include <jansson.h>
#include <stddef.h>

#include "backends/backend.h"
#include "comm/comm.h"

/* Which steps of a training are recorded: first `skip` steps are left alone, then rounds of `wait` steps left
 * alone, `warmup` steps that are recorded and discarded and `active` ones that are kept; `repeat` rounds, or as
 * many as there are (0). The same rule as torch.profiler's schedule. */
struct wk_schedule {
    long skip, wait, warmup, active, repeat; /* active >= 1 */
};

enum wk_step_kind { WK_STEP_ALONE, WK_STEP_WARMUP, WK_STEP_RECORD };

/* Steps count from 0. */
enum wk_step_kind wk_schedule_at(const struct wk_schedule *s, long step);

enum wk_span_kind {
    WK_SPAN_STEP,     /* an optimizer step; number is which, from 0 */
    WK_SPAN_PHASE,    /* data, loss, update ... */
    WK_SPAN_FORWARD,  /* a unit's forward pass; name is the unit's */
    WK_SPAN_BACKWARD, /* its backward pass */
    WK_SPAN_OP,       /* an op of the backend */
    WK_SPAN_KINDS
};

/* Times in seconds of hg_clock_mono_s. self_s is without the spans inside. */
struct wk_timed {
    const char *name; /* lives as long as the program, or the model */
    enum wk_span_kind kind;
    long number;
    double start_s, end_s, self_s;
};

struct wk_profiler;

/* dev and comm must outlive it. End it with wk_profiler_free, which gives the device its
 * backend back. */
struct wk_profiler *wk_profiler_create(struct wk_dev *dev, struct wk_comm *comm,
                                       const struct wk_schedule *schedule);
void wk_profiler_free(struct wk_profiler *p);

/* Before step `step` (from 0), and after the last one with its number: ends the step before. */
void wk_profiler_step(struct wk_profiler *p, long step);

/* Spans nest; they must end in the step in which they began. Nothing happens without a profiler (NULL) or in a
 * step that is not watched. */
void wk_profiler_begin(struct wk_profiler *p, enum wk_span_kind kind, const char *name);
void wk_profiler_end(struct wk_profiler *p);

/* What was kept so far, in the order in which it ended. */
const struct wk_timed *wk_profiler_spans(const struct wk_profiler *p, size_t *n);
/* Spans that were dropped: at most WK_SPANS_MAX are kept. */
#define WK_SPANS_MAX ((size_t)2000000)
size_t wk_profiler_dropped(const struct wk_profiler *p);
long wk_profiler_steps(const struct wk_profiler *p); /* recorded ones */

/* Totals by name: {"steps": n, "ops": [{"name", "calls", "total_s", "self_s"}, ...]}, the largest self time first;
 * seconds of all recorded steps. A new reference. */
json_t *wk_profiler_table(const struct wk_profiler *p);

/* What it watches. */
const struct wk_dev *wk_profiler_dev(const struct wk_profiler *p);
const struct wk_comm *wk_profiler_comm(const struct wk_profiler *p);

#endif
