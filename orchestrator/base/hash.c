/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Slicing by 8: slices[k][b] is the CRC of byte b with k zero bytes behind it, so that eight bytes need eight loads that do not wait for
 * each other. Filled before main, as threads may ask at once. */
static uint32_t slices[8][256];

__attribute__((constructor)) static void fill_slices(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
        slices[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            slices[k][i] = slices[0][slices[k - 1][i] & 0xff] ^ slices[k - 1][i] >> 8;
}

uint32_t hg_crc32c(uint32_t crc, const void *data, size_t n)
{
    const unsigned char *p = data;

    crc = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, 8);
        word = le64toh(word) ^ crc;
        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= slices[7 - k][word >> 8 * k & 0xff];
    }
    while (n--)
        crc = slices[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
    return ~crc;
}

uint64_t hg_hash64(const void *data, size_t n)
{
    return XXH3_64bits(data, n);
}

struct hg_hash128 hg_hash128(const void *data, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(data, n);

    return (struct hg_hash128){ h.high64, h.low64 };
}

void hg_hash128_hex(const void *data, size_t n, char out[static 33])
{
    struct hg_hash128 h = hg_hash128(data, n);

    snprintf(out, 33, "%016llx%016llx", (unsigned long long)h.high, (unsigned long long)h.low);
}
