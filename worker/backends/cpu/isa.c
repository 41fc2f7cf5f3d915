/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/isa.h"

#include <pthread.h>
#include <string.h>

static const struct wk_kernels *found[4];

static void find(void)
{
    size_t n = 0;

#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        found[n++] = &wk_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[n++] = &wk_kernels_avx2;
#endif
    found[n++] = &wk_kernels_base;
    found[n] = NULL;
}

const struct wk_kernels *const *wk_kernels_usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find);
    return found;
}

const struct wk_token_kernels *wk_token_kernels_get(const char *isa)
{
    static const struct wk_token_kernels *const all[] = {
#ifdef __x86_64__
        &wk_token_kernels_avx512,
        &wk_token_kernels_avx2,
#endif
        &wk_token_kernels_base,
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->isa, isa) == 0)
            return all[i];
    return NULL;
}
