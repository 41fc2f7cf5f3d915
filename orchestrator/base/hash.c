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

/* ---- SHA-1 ---- */

static uint32_t rotate(uint32_t x, int n)
{
    return x << n | x >> (32 - n);
}

static void add_block(struct hg_sha1 *s)
{
    static const uint32_t k[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
    uint32_t w[80], a = s->h[0], b = s->h[1], c = s->h[2], d = s->h[3], e = s->h[4];

    memcpy(w, s->block, sizeof s->block);
    for (int t = 0; t < 80; t++) {
        uint32_t f = t < 20   ? (b & c) | (~b & d)
                     : t < 40 ? b ^ c ^ d
                     : t < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t next;

        w[t] = t < 16 ? be32toh(w[t]) : rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        next = rotate(a, 5) + f + e + w[t] + k[t / 20];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    s->h[0] += a;
    s->h[1] += b;
    s->h[2] += c;
    s->h[3] += d;
    s->h[4] += e;
}

void hg_sha1_begin(struct hg_sha1 *s)
{
    *s = (struct hg_sha1){ .h = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 } };
}

void hg_sha1_add(struct hg_sha1 *s, const void *data, size_t n)
{
    const unsigned char *p = data;

    while (n) {
        size_t used = s->n % sizeof s->block, room = sizeof s->block - used,
               part = n < room ? n : room;

        memcpy(s->block + used, p, part);
        s->n += part;
        p += part;
        n -= part;
        if (part == room)
            add_block(s);
    }
}

void hg_sha1_end(struct hg_sha1 *s, unsigned char out[static 20])
{
    static const unsigned char pad[64] = { 0x80 };
    uint64_t bits = htobe64(s->n * 8);

    hg_sha1_add(s, pad, 1 + (119 - s->n % 64) % 64);
    hg_sha1_add(s, &bits, sizeof bits);
    for (int i = 0; i < 5; i++) {
        uint32_t word = htobe32(s->h[i]);

        memcpy(out + 4 * i, &word, sizeof word);
    }
}
