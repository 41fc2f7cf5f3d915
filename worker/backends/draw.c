/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/draw.h"

#include <string.h>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels_draw.h"

static wk_draw_group *widest(void)
{
#ifdef __x86_64__
    const char *isa = wk_kernels_usable()[0]->isa;

    if (strcmp(isa, "avx512") == 0)
        return wk_draw_group_avx512;
    if (strcmp(isa, "avx2") == 0)
        return wk_draw_group_avx2;
#endif
    return wk_draw_group_base;
}

void wk_draw(uint64_t seed, uint32_t site, size_t first, enum wk_draw what, double *out, size_t n)
{
    wk_draw_group *group = widest();
    double some[WK_DRAW_GROUP];
    size_t at = 0;

    for (; n - at >= WK_DRAW_GROUP; at += WK_DRAW_GROUP)
        group(seed, site, (uint32_t)((first + at) / 4), what, out + at);
    if (at == n)
        return;
    group(seed, site, (uint32_t)((first + at) / 4), what, some);
    memcpy(out + at, some, (n - at) * sizeof *out);
}
