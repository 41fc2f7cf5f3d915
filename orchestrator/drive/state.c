/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define AWAY_SAY_S 60.0 /* a controller restarts in less: nothing to report */

double hg_drive_now(const struct hg_drive *d)
{
    return d->o.io.now ? d->o.io.now(d->o.io.context) : hg_clock_wall_s();
}

double hg_drive_mono(const struct hg_drive *d)
{
    return d->o.io.mono ? d->o.io.mono(d->o.io.context) : hg_clock_mono_s();
}

bool hg_drive_stopped(const struct hg_drive *d)
{
    return d->o.stop && *d->o.stop;
}

const struct hg_submission *hg_drive_submission(const struct hg_drive *d, uint32_t number)
{
    return &d->state->submissions.items[number - 1];
}

bool hg_drive_is_outdated(const struct hg_drive *d, const struct hg_submission *sub)
{
    return *sub->request && strcmp(sub->request, d->plan->items[sub->batch - 1].request) != 0;
}

uint8_t hg_drive_raises(const struct hg_drive *d, int batch, const struct hg_run_cell *cell)
{
    return d->plan->items[batch - 1].auto_time ? cell->retries[HG_RETRY_TIMEOUT] : 0;
}

int hg_drive_find_attempt(struct hg_drive *d, int batch, uint32_t line, uint32_t claim,
                          struct hg_attempt *a, struct hg_err *err)
{
    *a = (struct hg_attempt){ 0 };
    if (d->o.io.attempt)
        return d->o.io.attempt(d->o.io.context, batch, line, claim, a, err);
    if (line >= d->plan->items[batch - 1].n)
        return 0;
    return hg_attempt_find(&d->group, batch, line, d->plan->items[batch - 1].ids[line], claim,
                           d->plan->run_key, a, err);
}

bool hg_drive_is_good(const struct hg_attempt *a)
{
    return a->done && strcmp(a->status, "ok") == 0;
}

void hg_drive_away(struct hg_drive *d, const struct hg_err *why)
{
    double mono = hg_drive_mono(d), step = 1, most = d->o.near ? 2 : 60;
    unsigned char random[2];
    char hex[5];

    if (!d->away_since_s) {
        d->away_since_s = mono;
        d->said_away = false;
        hg_debug("no answer: %s", why->text);
    } else if (!d->said_away && mono - d->away_since_s > AWAY_SAY_S) {
        hg_warn("no answer from Slurm for %.0f s (%s); jobs keep running; still waiting",
                mono - d->away_since_s, why->text);
        d->said_away = true;
    }
    for (unsigned i = 0; i < d->failures && step < most; i++)
        step *= 2;
    d->failures++;
    hg_text_random_hex(2, hex);
    random[0] = (unsigned char)strtoul(hex, NULL, 16);
    step = fmin(step, most) * (0.75 + 0.5 * random[0] / 255.0); /* not all at once */
    d->retry_due_s = mono + step;
}
