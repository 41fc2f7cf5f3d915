/* SPDX-License-Identifier: Apache-2.0 */
#include "data/gzfile.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

#include "base/fs.h"

#define CHUNK ((size_t)256 << 10)

static bool is_gzip(const unsigned char *p, size_t len)
{
    return len >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

/* One call of inflate into out. Returns zlib's code. */
static int inflate_chunk(z_stream *z, struct hg_buf *out)
{
    int code;

    if (hg_buf_reserve(out, CHUNK) < 0)
        return Z_MEM_ERROR;
    z->next_out = (unsigned char *)out->data + out->len;
    z->avail_out = CHUNK;
    code = inflate(z, Z_NO_FLUSH);
    out->len += CHUNK - z->avail_out;
    out->data[out->len] = '\0';
    return code;
}

static int unpack_failed(const char *name, int code, struct hg_err *err)
{
    if (code == Z_MEM_ERROR)
        return hg_err_oom(err);
    if (code == Z_BUF_ERROR || code == Z_OK)
        hg_err_set(err, HG_E_INPUT, "the gzip data ends too early; is the file cut off?");
    else
        hg_err_set(err, HG_E_INPUT, "the gzip data is damaged");
    return hg_err_at(err, name, NULL);
}

/* zlib counts what is left to read in an unsigned int: hand out large inputs in pieces. */
static void refill(z_stream *z, size_t *left)
{
    size_t piece = *left < (1u << 30) ? *left : (1u << 30);

    if (z->avail_in == 0) {
        z->avail_in = (unsigned)piece;
        *left -= piece;
    }
}

int wk_gzfile_unpack(const char *name, const void *data, size_t len, size_t max_bytes,
                     struct hg_buf *out, struct hg_err *err)
{
    z_stream z = { .next_in = (unsigned char *)(uintptr_t)data };
    size_t start = out->len, left = len;
    int code, rc = -1;

    if (!is_gzip(data, len)) {
        hg_buf_append(out, data, len);
        return out->failed ? hg_err_oom(err) : 0;
    }
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return hg_err_oom(err);
    for (;;) {
        refill(&z, &left);
        code = inflate_chunk(&z, out);
        if (out->len - start > max_bytes) {
            hg_err_set(err, HG_E_INPUT, "unpacks to more than %zu bytes", max_bytes);
            hg_err_at(err, name, NULL);
            break;
        }
        if (code == Z_STREAM_END) { /* another gzip member may follow */
            if (!is_gzip(z.next_in, z.avail_in + left)) {
                rc = 0;
                break;
            }
            code = inflateReset(&z);
        }
        if (code != Z_OK || (z.avail_in + left == 0 && z.avail_out != 0)) {
            unpack_failed(name, code, err);
            break;
        }
    }
    inflateEnd(&z);
    return rc;
}

int wk_gzfile_read(const char *path, size_t max_bytes, struct hg_buf *out, struct hg_err *err)
{
    struct hg_buf raw = HG_BUF_INIT;
    int rc = -1;

    if (hg_fs_read(path, max_bytes, &raw, err) == 0)
        rc = wk_gzfile_unpack(path, hg_buf_str(&raw), raw.len, max_bytes, out, err);
    hg_buf_done(&raw);
    return rc;
}
