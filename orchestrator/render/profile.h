/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_PROFILE_H
#define HG_RENDER_PROFILE_H

#include "render/renderer.h"

/* The operators of the one good result shown that has a profile (`"trace": true`), the largest self time first, as torch.profiler prints
 * them: calls and times of all recorded steps of rank 0. Of two results: how they differ, per step. form: one with a `sheet`, or JSON.
 * Returns 0, or -1 with err set: INPUT if no result has a profile, or more than two. */
int hg_profile_render(const struct hg_report *r, const struct hg_renderer *form, struct hg_buf *out,
                      struct hg_err *err);

#endif
