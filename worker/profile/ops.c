/* SPDX-License-Identifier: Apache-2.0 */
/* One function per op that takes the time around the device's own. A test holds this list against struct
 * wk_backend: an op that is missing here would not be in any profile. */
#include "profile/profiler.h"

#define OP(name, params, args)                               \
    static void timed_##name params                          \
    {                                                        \
        wk_profiler_begin(dev->profiler, WK_SPAN_OP, #name); \
        wk_profiler_inner(dev->profiler)->name args;         \
        wk_profiler_end(dev->profiler);                      \
    }

#define DEV struct wk_dev *dev
#define SPAN struct wk_span
#define PACK const struct wk_packing *p

#include "profile/ops.def"
#undef OP

void wk_profile_ops(struct wk_backend *out, const struct wk_backend *inner)
{
    *out = *inner;
#define OP(name, params, args) \
    if (inner->name)           \
        out->name = timed_##name;
#include "profile/ops.def"
#undef OP
}
