/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/schedule.h"

enum wk_step_kind wk_schedule_at(const struct wk_schedule *s, long step)
{
    long round = s->wait + s->warmup + s->active, at = step - s->skip;

    if (at < 0 || (s->repeat && at / round >= s->repeat))
        return WK_STEP_ALONE;
    at %= round;
    if (at < s->wait)
        return WK_STEP_ALONE;
    return at < s->wait + s->warmup ? WK_STEP_WARMUP : WK_STEP_RECORD;
}
