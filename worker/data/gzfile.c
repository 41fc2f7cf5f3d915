/* SPDX-License-Identifier: Apache-2.0 */
#include "data/gzfile.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fs.h"

#define CHUNK ((size_t)256 << 10)

static bool is_gzip(const unsigned char *p, size_t len)
{
    return len >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

/* zlib reads gzip from files only: these bytes as one, without a name. NULL with errno set. */
static gzFile open_bytes(const void *data, size_t len)
{
    int fd = memfd_create("gzip", MFD_CLOEXEC);
    gzFile f = NULL;

    if (fd >= 0 && hg_fs_write_all(fd, data, len) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        f = gzdopen(fd, "r");
    if (!f && fd >= 0)
        close(fd);
    return f;
}

/* The rest of the file, at most max_bytes; damage is INPUT. */
static int read_all(gzFile f, size_t max_bytes, struct hg_buf *out, struct hg_err *err)
{
    size_t start = out->len;
    int n, code;

    do {
        hg_buf_reserve(out, CHUNK);
        n = gzread(f, out->data + out->len, CHUNK);
        out->len += n > 0 ? (size_t)n : 0;
        out->data[out->len] = '\0';
        if (out->len - start > max_bytes)
            return hg_err_set(err, HG_E_INPUT, "unpacks to more than %zu bytes", max_bytes);
    } while (n > 0);
    gzerror(f, &code);
    if (code == Z_BUF_ERROR)
        return hg_err_set(err, HG_E_INPUT, "the gzip data ends too early; is the file cut off?");
    return n < 0 ? hg_err_set(err, HG_E_INPUT, "the gzip data is damaged") : 0;
}

int wk_gzfile_unpack(const char *name, const void *data, size_t len, size_t max_bytes,
                     struct hg_buf *out, struct hg_err *err)
{
    gzFile f;
    int rc;

    if (!is_gzip(data, len)) {
        hg_buf_append(out, data, len);
        return 0;
    }
    f = open_bytes(data, len);
    if (!f)
        return hg_err_sys(err, "cannot unpack %s", name);
    gzbuffer(f, (unsigned)CHUNK);
    rc = read_all(f, max_bytes, out, err);
    gzclose(f);
    return rc < 0 ? hg_err_at(err, name, NULL) : 0;
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
