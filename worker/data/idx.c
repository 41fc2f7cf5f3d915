/* SPDX-License-Identifier: Apache-2.0 */
#include "data/idx.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fs.h"

#define IDX_BYTES_MAX ((size_t)1 << 32)
#define IDX_TYPE_U8 0x08

struct reader {
    gzFile file;
    const char *path;
    struct hg_err *err;
};

static int wrong(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int wrong(struct reader *r, const char *fmt, ...)
{
    struct hg_buf text = HG_BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    hg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    hg_err_set(r->err, HG_E_INPUT, "%s", hg_buf_str(&text));
    hg_err_at(r->err, r->path, "");
    hg_buf_done(&text);
    return hg_err_hint(r->err, "fetch the file again");
}

/* Read up to n bytes; less only at the end of the file. Returns the count, or -1 with err set. */
static long long read_bytes(struct reader *r, void *to, size_t n)
{
    size_t have = 0;

    while (have < n) {
        unsigned want = n - have < (1u << 30) ? (unsigned)(n - have) : 1u << 30;
        int got = gzread(r->file, (char *)to + have, want), code = Z_OK;

        if (got <= 0) {
            const char *what = gzerror(r->file, &code);

            if (got < 0 && code == Z_ERRNO)
                return hg_err_sys(r->err, "cannot read %s", r->path);
            if (got < 0 ||
                code ==
                    Z_BUF_ERROR) /* gzread does not report a stream without its end as an error */
                return wrong(r, "damaged gzip data (%s)",
                             got < 0 ? what : "unexpected end of file");
            break;
        }
        have += (size_t)got;
    }
    return (long long)have;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int read_header(struct reader *r, int n_dims, struct wk_idx *idx)
{
    uint32_t magic = IDX_TYPE_U8 << 8 | (uint32_t)n_dims;
    uint8_t head[4 + 4 * 4];
    size_t size = 4 + 4 * (size_t)n_dims;
    long long got = read_bytes(r, head, size);

    if (got < 0)
        return -1;
    if (got >= 4 && big_endian(head) != magic)
        return wrong(
            r,
            "magic number %u (0x%08x) where %u is expected: not an IDX file of bytes with %d dimension%s",
            big_endian(head), big_endian(head), magic, n_dims, n_dims == 1 ? "" : "s");
    if ((size_t)got < size)
        return wrong(r, "the file ends after %lld bytes, inside its header of %zu", got, size);
    idx->n_dims = n_dims;
    idx->n = 1;
    for (int i = 0; i < n_dims; i++) {
        idx->dims[i] = big_endian(head + 4 + 4 * i);
        if (idx->dims[i] == 0)
            return wrong(r, "dimension %d is 0", i);
        if (idx->dims[i] > IDX_BYTES_MAX / idx->n)
            return wrong(r, "dimension %d is %u: more than %zu bytes in all, the header is damaged",
                         i, idx->dims[i], IDX_BYTES_MAX);
        idx->n *= idx->dims[i];
    }
    return 0;
}

/* The header may announce gigabytes that the file does not have: the memory grows with what is read. */
static int read_values(struct reader *r, struct wk_idx *idx)
{
    size_t have = 0, cap = 0;
    char extra;

    while (have < idx->n) {
        size_t step = idx->n - have < ((size_t)64 << 20) ? idx->n - have : (size_t)64 << 20;
        long long got;

        idx->data = hg_realloc(idx->data, cap + step);
        cap += step;
        got = read_bytes(r, idx->data + have, step);
        if (got < 0)
            return -1;
        have += (size_t)got;
        if ((size_t)got < step)
            return wrong(r, "cut short: the header announces %zu values, the file has %zu", idx->n,
                         have);
    }
    switch (read_bytes(r, &extra, 1)) {
    case 0:
        return 0;
    case 1:
        return wrong(r, "data after the last of %zu values", idx->n);
    default:
        return -1;
    }
}

int wk_idx_load(const char *path, int n_dims, struct wk_idx *idx, struct hg_err *err)
{
    struct reader r = { .path = path, .err = err };
    struct wk_idx made = { 0 };
    int fd = hg_fs_open_file(path, err), rc = -1;

    if (fd < 0)
        return -1;
    r.file = gzdopen(fd, "r");
    if (!r.file) /* for lack of memory only */
        hg_alloc_failed();
    gzbuffer(r.file, 1 << 17);
    if (read_header(&r, n_dims, &made) < 0 || read_values(&r, &made) < 0)
        goto out;
    *idx = made;
    made.data = NULL;
    rc = 0;
out:
    gzclose(r.file);
    wk_idx_done(&made);
    return rc;
}

void wk_idx_done(struct wk_idx *idx)
{
    free(idx->data);
    *idx = (struct wk_idx){ 0 };
}
