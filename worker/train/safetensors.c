/* SPDX-License-Identifier: Apache-2.0 */
#include "train/safetensors.h"

#include <endian.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "the values of safetensors files are little-endian"
#endif

static const struct dtype {
    const char *name;
    unsigned bytes;
} dtypes[] = {
    { "F32", 4 }, { "F16", 2 }, { "BF16", 2 },    { "F64", 8 },     { "I64", 8 },
    { "I32", 4 }, { "I16", 2 }, { "I8", 1 },      { "U64", 8 },     { "U32", 4 },
    { "U16", 2 }, { "U8", 1 },  { "F8_E4M3", 1 }, { "F8_E5M2", 1 }, { "BOOL", 1 },
};

static unsigned dtype_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].bytes;
    return 0;
}

/* The file is invalid. */
static int __attribute__((format(printf, 3, 4)))
bad(const struct wk_st *st, struct hg_err *err, const char *format, ...)
{
    char why[512];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hg_err_set(err, HG_E_INPUT, "%s", why);
    return hg_err_at(err, st->path, "");
}

/* ---- Reading ---- */

static int map_file(struct wk_st *st, struct hg_err *err)
{
    int fd = open(st->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0) {
        if (fd >= 0)
            close(fd);
        hg_err_sys(err, "cannot read %s", st->path);
        if (err)
            err->code = HG_E_INPUT;
        return -1;
    }
    st->size = (size_t)info.st_size;
    if (S_ISREG(info.st_mode) && st->size > 0)
        st->map = mmap(NULL, st->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (st->map && st->map != MAP_FAILED)
        return 0;
    st->map = NULL;
    return bad(st, err, "not a safetensors file: %s",
               st->size ? "it cannot be mapped" : "it is empty or not a regular file");
}

/* The header's JSON; *data is where the values begin. */
static int read_header(struct wk_st *st, size_t *data, struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    uint64_t length = 0;

    if (st->size >= 8)
        memcpy(&length, st->map, 8);
    if (st->size < 8 || length > WK_ST_HEADER_MAX || length > st->size - 8 || length < 2 ||
        ((const char *)st->map)[8] != '{')
        return bad(st, err,
                   "not a safetensors file, or it was cut off: its %zu bytes do not hold the "
                   "header that they announce",
                   st->size);
    if (hg_json_parse(st->path, (const char *)st->map + 8, (size_t)length, &doc, err) < 0)
        return hg_err_wrap(err, "header of safetensors");
    st->header = json_incref(doc.root);
    hg_json_doc_done(&doc);
    *data = 8 + (size_t)length;
    return 0;
}

static int read_shape(struct wk_st_tensor *t, const json_t *shape)
{
    size_t i;
    const json_t *dim;

    if (!json_is_array(shape) || json_array_size(shape) > WK_ST_DIMS_MAX)
        return -1;
    t->n = 1;
    json_array_foreach(shape, i, dim) {
        json_int_t d = json_integer_value(dim);

        if (!json_is_integer(dim) || d < 0 || (d > 0 && t->n > (UINT64_MAX >> 8) / (uint64_t)d))
            return -1;
        t->dims[t->n_dims++] = (uint64_t)d;
        t->n *= (uint64_t)d;
    }
    return 0;
}

/* One entry; its offsets are relative to `data`. */
static int read_entry(struct wk_st *st, size_t data, const char *name, const json_t *entry,
                      struct wk_st_tensor *t, struct hg_err *err)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t begin = json_integer_value(json_array_get(offsets, 0));
    json_int_t end = json_integer_value(json_array_get(offsets, 1));
    uint64_t room = st->size - data;

    *t = (struct wk_st_tensor){ .name = name, .dtype = dtype };
    if (!dtype || !dtype_bytes(dtype))
        return bad(st, err, "tensor %s: unknown dtype \"%s\"", name, dtype ? dtype : "");
    if (read_shape(t, json_object_get(entry, "shape")) < 0)
        return bad(st, err, "tensor %s: the shape is not a list of at most %d sizes", name,
                   WK_ST_DIMS_MAX);
    if (json_array_size(offsets) != 2 || begin < 0 || end < begin || (uint64_t)end > room ||
        (uint64_t)(end - begin) != t->n * dtype_bytes(dtype))
        return bad(st, err,
                   "tensor %s: bytes %lld to %lld are not the %llu that its shape needs within the "
                   "%llu of the file",
                   name, (long long)begin, (long long)end,
                   (unsigned long long)(t->n * dtype_bytes(dtype)), (unsigned long long)room);
    t->data = (const unsigned char *)st->map + data + begin;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct wk_st_tensor *x = a, *y = b;

    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->n > y->n) - (x->n < y->n); /* empty ones first */
}

/* Every byte belongs to exactly one tensor. */
static int check_cover(const struct wk_st *st, size_t data, struct hg_err *err)
{
    const unsigned char *at = (const unsigned char *)st->map + data;
    const unsigned char *end = (const unsigned char *)st->map + st->size;

    for (size_t i = 0; i < st->n; i++) {
        const struct wk_st_tensor *t = &st->tensors[i];

        if (t->data != at)
            return bad(st, err, "tensor %s: %s before it", t->name,
                       t->data < at ? "it overlaps the one" : "bytes that belong to no tensor");
        at += t->n * dtype_bytes(t->dtype);
    }
    if (at == end)
        return 0;
    return bad(st, err, "%zu bytes at the end belong to no tensor", (size_t)(end - at));
}

static int read_entries(struct wk_st *st, size_t data, struct hg_err *err)
{
    const char *name;
    json_t *entry;

    st->tensors = hg_alloc_zeroed(json_object_size(st->header) + 1, sizeof *st->tensors);
    json_object_foreach(st->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (read_entry(st, data, name, entry, &st->tensors[st->n], err) < 0)
            return -1;
        st->n++;
    }
    qsort(st->tensors, st->n, sizeof *st->tensors, by_place);
    return check_cover(st, data, err);
}

int wk_st_open(const char *path, struct wk_st *st, struct hg_err *err)
{
    size_t data = 0;

    *st = (struct wk_st){ .path = hg_strdup(path) };
    if (map_file(st, err) == 0 && read_header(st, &data, err) == 0 &&
        read_entries(st, data, err) == 0)
        return 0;
    wk_st_close(st);
    return -1;
}

void wk_st_close(struct wk_st *st)
{
    if (st->map)
        munmap(st->map, st->size);
    json_decref(st->header);
    free(st->tensors);
    free(st->path);
    *st = (struct wk_st){ 0 };
}

const struct wk_st_tensor *wk_st_find(const struct wk_st *st, const char *name)
{
    for (size_t i = 0; i < st->n; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

const char *wk_st_metadata(const struct wk_st *st, const char *key)
{
    return json_string_value(json_object_get(json_object_get(st->header, "__metadata__"), key));
}

/* ---- Values ---- */

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 1023;

    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | rest << 13);
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * (float)rest * 0x1p-24f;
    return from_bits(sign | (exponent + 112) << 23 | rest << 13);
}

static uint16_t u16_at(const unsigned char *data, uint64_t i)
{
    uint16_t v;

    memcpy(&v, data + 2 * i, sizeof v);
    return v;
}

static void convert(const struct wk_st_tensor *t, wk_real *out)
{
    if (strcmp(t->dtype, WK_ST_REAL) == 0) {
        memcpy(out, t->data, t->n * sizeof *out);
        return;
    }
    for (uint64_t i = 0; i < t->n; i++) {
        float f;
        double d;

        if (t->dtype[0] == 'B') {
            out[i] = (wk_real)from_bits((uint32_t)u16_at(t->data, i) << 16);
        } else if (strcmp(t->dtype, "F16") == 0) {
            out[i] = (wk_real)from_half(u16_at(t->data, i));
        } else if (strcmp(t->dtype, "F32") == 0) {
            memcpy(&f, t->data + 4 * i, sizeof f);
            out[i] = (wk_real)f;
        } else {
            memcpy(&d, t->data + 8 * i, sizeof d);
            out[i] = (wk_real)d;
        }
    }
}

int wk_st_read_any(const struct wk_st *st, const struct wk_st_tensor *t, wk_real *out,
                   struct hg_err *err)
{
    if (t->dtype[0] != 'F' && strcmp(t->dtype, "BF16") != 0)
        return bad(st, err, "tensor %s: dtype %s, expected F32, F16, BF16 or F64", t->name,
                   t->dtype);
    if (dtype_bytes(t->dtype) == 1)
        return bad(st, err, "tensor %s: dtype %s is not supported", t->name, t->dtype);
    convert(t, out);
    return 0;
}

int wk_st_read(const struct wk_st *st, const struct wk_st_tensor *t, wk_real *out,
               struct hg_err *err)
{
    if (wk_st_read_any(st, t, out, err) < 0)
        return -1;
    for (uint64_t i = 0; i < t->n; i++)
        if (!isfinite(out[i]))
            return bad(st, err, "tensor %s: element %llu is not finite", t->name,
                       (unsigned long long)i);
    return 0;
}

void wk_st_shape_format(const struct wk_st_tensor *t, char out[static 128])
{
    int at = snprintf(out, 128, "[");

    for (int i = 0; i < t->n_dims && at < 100; i++)
        at += snprintf(out + at, 128 - (size_t)at, i ? ", %llu" : "%llu",
                       (unsigned long long)t->dims[i]);
    snprintf(out + at, 128 - (size_t)at, "]");
}

/* ---- Checksums ---- */

static const struct wk_st_tensor *find_checksums(const struct wk_st *st)
{
    const struct wk_st_tensor *t = wk_st_find(st, WK_ST_CHECKSUMS);

    return t && strcmp(t->dtype, "U64") == 0 && t->n == st->n ? t : NULL;
}

static uint64_t checksum_at(const struct wk_st_tensor *sums, size_t i)
{
    uint64_t v;

    memcpy(&v, sums->data + i * sizeof v, sizeof v);
    return v;
}

static int differs(const struct wk_st *st, const char *what, const char *name, struct hg_err *err)
{
    return bad(st, err, "damaged: the bytes of %s%s are not those that were written", what, name);
}

int wk_st_verify(const struct wk_st *st, bool must, struct hg_err *err)
{
    const struct wk_st_tensor *sums = find_checksums(st);

    if (!sums && must)
        return bad(st, err, "damaged: no checksums of its %zu tensors", st->n);
    if (!sums)
        return 0;
    if (hg_hash64(st->map, (size_t)(st->tensors[0].data - (unsigned char *)st->map)) !=
        checksum_at(sums, 0))
        return differs(st, "the header", "", err);
    for (size_t i = 0, k = 1; i < st->n; i++) {
        const struct wk_st_tensor *t = &st->tensors[i];

        if (t != sums && hg_hash64(t->data, t->n * dtype_bytes(t->dtype)) != checksum_at(sums, k++))
            return differs(st, "tensor ", t->name, err);
    }
    return 0;
}

uint64_t wk_st_sum(const struct wk_st *st)
{
    const struct wk_st_tensor *sums = find_checksums(st);

    return sums ? hg_hash64(sums->data, sums->n * sizeof(uint64_t)) : 0;
}

/* ---- Writing ---- */

struct wk_st_writer {
    char *path, *temporary;
    int fd;
    const struct wk_st_item *items;
    size_t n, next;
    uint64_t *sums; /* (1 + n) of the header and the items so far */
};

static size_t item_bytes(const struct wk_st_item *item)
{
    size_t bytes = dtype_bytes(item->dtype);

    for (int d = 0; d < item->n_dims; d++)
        bytes *= (size_t)item->dims[d];
    return bytes;
}

/* *at: where its bytes begin; moved past them. */
static void encode_item(json_t *header, const struct wk_st_item *item, uint64_t *at)
{
    json_t *shape = json_array();
    uint64_t end = *at + item_bytes(item);

    for (int d = 0; d < item->n_dims; d++)
        json_array_append_new(shape, json_integer((json_int_t)item->dims[d]));
    json_object_set_new(header, item->name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", item->dtype, "shape", shape,
                                  "data_offsets", (json_int_t)*at, (json_int_t)end));
    *at = end;
}

static struct wk_st_item checksums_item(const struct wk_st_writer *w)
{
    static char name[] = WK_ST_CHECKSUMS;

    return (
        struct wk_st_item){ .name = name, .dtype = "U64", .n_dims = 1, .dims = { 1 + w->n, 0 } };
}

static json_t *encode_header(const struct wk_st_writer *w, const json_t *metadata)
{
    json_t *header = json_object();
    struct wk_st_item checksums = checksums_item(w);
    uint64_t at = 0;

    if (metadata)
        json_object_set(header, "__metadata__", (json_t *)(uintptr_t)metadata);
    for (size_t i = 0; i < w->n; i++)
        encode_item(header, &w->items[i], &at);
    encode_item(header, &checksums, &at);
    return header;
}

static int write_bytes(const struct wk_st_writer *w, const void *data, size_t bytes,
                       struct hg_err *err)
{
    return hg_fs_write_all(w->fd, data, bytes) < 0
               ? hg_err_sys(err, "cannot write %s", w->temporary)
               : 0;
}

/* Its length and its text. */
static int write_header(struct wk_st_writer *w, const json_t *metadata, struct hg_err *err)
{
    json_t *header = encode_header(w, metadata);
    struct hg_buf text = HG_BUF_INIT;
    uint64_t length = 0;
    int rc;

    hg_buf_append(&text, &length, sizeof length);
    hg_json_dump(header, HG_JSON_COMPACT, &text);
    while (text.len % 8)
        hg_buf_puts(&text, " ");
    length = text.len - sizeof length;
    memcpy(text.data, &length, sizeof length);
    w->sums[0] = hg_hash64(text.data, text.len);
    rc = write_bytes(w, text.data, text.len, err);
    json_decref(header);
    hg_buf_done(&text);
    return rc;
}

struct wk_st_writer *wk_st_create(const char *path, const struct wk_st_item *items, size_t n,
                                  const json_t *metadata, struct hg_err *err)
{
    struct wk_st_writer *w = hg_alloc(sizeof *w);

    *w = (struct wk_st_writer){ .path = hg_strdup(path),
                                .temporary = hg_str_printf("%s.%ld.tmp", path, (long)getpid()),
                                .items = items,
                                .n = n,
                                .sums = hg_alloc_zeroed(1 + n, sizeof *w->sums) };
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (w->fd < 0)
        hg_err_sys(err, "cannot write %s", w->temporary);
    else if (write_header(w, metadata, err) == 0)
        return w;
    wk_st_abort(w);
    return NULL;
}

/* Count items without bytes: they are not written. */
static void skip_empty(struct wk_st_writer *w)
{
    for (; w->next < w->n && item_bytes(&w->items[w->next]) == 0; w->next++)
        w->sums[1 + w->next] = hg_hash64("", 0);
}

int wk_st_write(struct wk_st_writer *w, const void *data, size_t bytes, struct hg_err *err)
{
    skip_empty(w);
    if (w->next == w->n || item_bytes(&w->items[w->next]) != bytes)
        return hg_err_set(err, HG_E_BUG, "%s: %zu bytes for tensor %zu of %zu", w->path, bytes,
                          w->next + 1, w->n);
    w->sums[1 + w->next++] = hg_hash64(data, bytes);
    return write_bytes(w, data, bytes, err);
}

/* All is written: on the disk, under its own name. */
static int put_in_place(struct wk_st_writer *w, struct hg_err *err)
{
    char *folder = hg_fs_dirname(w->path);
    int fd = w->fd, rc = -1;

    w->fd = -1;
    if (fsync(fd) < 0) {
        hg_err_sys(err, "cannot write %s", w->temporary);
        close(fd);
    } else if (close(fd) < 0) {
        hg_err_sys(err, "cannot write %s", w->temporary);
    } else if (rename(w->temporary, w->path) < 0) {
        hg_err_sys(err, "cannot replace %s", w->path);
    } else {
        rc = hg_fs_sync_dir(folder, err);
    }
    free(folder);
    return rc;
}

int wk_st_commit(struct wk_st_writer *w, uint64_t *sum, struct hg_err *err)
{
    size_t bytes = (1 + w->n) * sizeof *w->sums;
    int rc = -1;

    skip_empty(w);
    if (sum)
        *sum = hg_hash64(w->sums, bytes);
    if (w->next < w->n)
        hg_err_set(err, HG_E_BUG, "%s: %zu of %zu tensors", w->path, w->next, w->n);
    else if (write_bytes(w, w->sums, bytes, err) == 0)
        rc = put_in_place(w, err);
    wk_st_abort(w);
    return rc;
}

void wk_st_abort(struct wk_st_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    unlink(w->temporary);
    free(w->sums);
    free(w->temporary);
    free(w->path);
    free(w);
}
