/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_RANKS_H
#define HG_RENDER_RANKS_H

#include "render/renderer.h"

/* The ranks of every good result shown, one line each: the keys that tell the cells apart, rank, host,
 * device, and the times real_s, user_s, sys_s as measured. form: one with a `sheet`. Returns 0, or -1
 * with err set: INPUT if no result lists its ranks. */
int hg_ranks_render(const struct hg_report *r, const struct hg_renderer *form, struct hg_buf *out,
                    struct hg_err *err);

#endif
