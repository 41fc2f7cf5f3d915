/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/attempt.h"

#include <string.h>

int hg_drive_find_claimed(struct hg_drive *d, int batch, uint32_t line, uint32_t claim,
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

int hg_drive_find_attempt(struct hg_drive *d, const struct hg_submission *sub, uint32_t line,
                          struct hg_attempt *a, struct hg_err *err)
{
    return hg_drive_find_claimed(d, sub->batch, line, sub->claim, a, err);
}

bool hg_drive_is_good(const struct hg_attempt *a)
{
    return a->done && strcmp(a->status, "ok") == 0;
}
