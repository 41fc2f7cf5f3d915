/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint32_t hg_crc32c(uint32_t crc, const void *data, size_t n)
{
    static uint32_t table[256];
    const unsigned char *p = data;

    if (!table[1]) { /* the same values whoever fills it first */
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;

            for (int k = 0; k < 8; k++)
                c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
            table[i] = c;
        }
    }
    crc = ~crc;
    while (n--)
        crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
    return ~crc;
}

uint64_t hg_hash64(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}

void hg_hash128_hex(const void *data, size_t n, char out[static 33])
{
    XXH128_hash_t h = XXH3_128bits(data, n);

    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}
