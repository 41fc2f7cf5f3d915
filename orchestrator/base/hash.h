/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_HASH_H
#define HG_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, as in iSCSI and TensorBoard files): "123456789" gives 0xe3069283. Feed
 * pieces by passing the last value as crc; start with 0. */
uint32_t hg_crc32c(uint32_t crc, const void *data, size_t n);

/* XXH3, 64 and 128 bits, seed 0; what `xxhsum -H3` and `xxhsum -H2` print. The 128-bit form as 32
 * hex digits. */
struct hg_hash128 {
    uint64_t high, low;
};
struct hg_hash128 hg_hash128(const void *data, size_t n);
uint64_t hg_hash64(const void *data, size_t n);
void hg_hash128_hex(const void *data, size_t n, char out[static 33]);

/* SHA-1 (RFC 3174), because git names contents by it; not for secrets. Begin, feed pieces, end. */
struct hg_sha1 {
    uint32_t h[5];
    uint64_t n; /* bytes so far */
    unsigned char block[64];
};
void hg_sha1_begin(struct hg_sha1 *s);
void hg_sha1_add(struct hg_sha1 *s, const void *data, size_t n);
void hg_sha1_end(struct hg_sha1 *s, unsigned char out[static 20]);

#endif
