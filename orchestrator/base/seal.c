/* SPDX-License-Identifier: Apache-2.0 */
#include "base/seal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"

#define SEAL_LEN (sizeof ",\"crc\":\"00000000\"}" - 1)

static void format(const char *text, size_t len, char out[static SEAL_LEN + 1])
{
    snprintf(out, SEAL_LEN + 1, ",\"crc\":\"%08" PRIx32 "\"}", hg_crc32c(0, text, len));
}

void hg_seal_dump(const json_t *object, unsigned flags, struct hg_buf *out)
{
    size_t begin = out->len;
    char seal[SEAL_LEN + 1];

    hg_json_dump(object, flags, out);
    out->len -= flags & HG_JSON_INDENT ? 2 : 1; /* the closing brace, and the newline before it */
    format(out->data + begin, out->len - begin, seal);
    hg_buf_puts(out, seal);
    hg_buf_puts(out, "\n");
}

bool hg_seal_holds(const char *text, size_t len)
{
    char seal[SEAL_LEN + 1];

    if (len <= SEAL_LEN)
        return false;
    format(text, len - SEAL_LEN, seal);
    return memcmp(text + len - SEAL_LEN, seal, SEAL_LEN) == 0;
}
