/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a training are recorded: first `skip` steps are left alone, then rounds of `wait` steps left
 * alone, `warmup` steps that are watched but thrown away and `active` ones that are kept; `repeat` rounds, or as
 * many as there are (0). The same rule as torch.profiler's schedule. */
#ifndef WK_PROFILE_SCHEDULE_H
#define WK_PROFILE_SCHEDULE_H

struct wk_schedule {
    long skip, wait, warmup, active, repeat; /* active >= 1 */
};

enum wk_step_kind { WK_STEP_ALONE, WK_STEP_WARMUP, WK_STEP_RECORD };

/* Steps count from 0. */
enum wk_step_kind wk_schedule_at(const struct wk_schedule *s, long step);

#endif
