/* SPDX-License-Identifier: Apache-2.0 */
/* The parser that $HPCGRID_FUZZ names, for libFuzzer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *name = getenv("HPCGRID_FUZZ");
    const struct hg_fuzz_target *target = name ? hg_fuzz_find(name) : NULL;
    char *text = malloc(len + 1); /* of its own size, so that a byte too far is seen */

    hg_fuzz_expect(target, "HPCGRID_FUZZ names a parser");
    hg_fuzz_expect(text, "there is memory");
    if (len)
        memcpy(text, data, len);
    text[len] = '\0';
    target->run(text, len);
    free(text);
    return 0;
}
