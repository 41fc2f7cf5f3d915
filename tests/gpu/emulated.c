/* SPDX-License-Identifier: Apache-2.0 */
/* The cuda backend on emulated kernels, as "emulated". */
#include <string.h>

#include "gpu/ops.h"

extern const struct wk_backend wk_backend_cuda;
void emu_seed(uint64_t seed);

const struct wk_backend *ops_backend(const char *name)
{
    return strcmp(name, "emulated") == 0 ? &wk_backend_cuda : NULL;
}

void ops_shuffle(uint64_t seed)
{
    emu_seed(seed);
}
