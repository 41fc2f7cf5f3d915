/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named tensors: 8 bytes with the header's length, the header (JSON: name -> dtype, shape, place), the values, little-endian.
 * Files come from elsewhere, so everything about them is checked. */
#ifndef WK_TRAIN_SAFETENSORS_H
#define WK_TRAIN_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/real.h"
#include "base/err.h"

#define WK_ST_DIMS_MAX 8
#define WK_ST_HEADER_MAX ((uint64_t)100000000)

struct wk_st_tensor {
    const char *name, *dtype; /* "F32", "BF16", ... */
    int n_dims;
    uint64_t dims[WK_ST_DIMS_MAX];
    uint64_t n;                /* elements */
    const unsigned char *data; /* in the file, n of dtype */
};

struct wk_st {
    char *path;
    struct wk_st_tensor *tensors; /* in the order of their data */
    size_t n;
    json_t *header; /* names live in it */
    void *map;
    size_t size;
};

/* Map a file and check its header: sizes, types, shapes, that the values cover the rest of the file without overlap or hole. Fails with
 * INPUT; *st is closed then. */
int wk_st_open(const char *path, struct wk_st *st, struct hg_err *err);
void wk_st_close(struct wk_st *st);

/* NULL if there is none of that name. */
const struct wk_st_tensor *wk_st_find(const struct wk_st *st, const char *name);

/* A text of the file's metadata, lent; NULL if there is none. */
const char *wk_st_metadata(const struct wk_st *st, const char *key);

/* All elements as reals, from F16, BF16, F32 or F64. Fails with INPUT: another type, a value that is not finite. */
int wk_st_read(const struct wk_st *st, const struct wk_st_tensor *t, wk_real *out,
               struct hg_err *err);
/* The same without a check of values: state may hold NaN. */
int wk_st_read_any(const struct wk_st *st, const struct wk_st_tensor *t, wk_real *out,
                   struct hg_err *err);

/* The tensor that files of wk_st_create end with: U64, XXH3-64 of the header and of every other tensor's bytes, in the order of the file. */
#define WK_ST_CHECKSUMS "hpcgrid.checksums"

/* Check every byte against the checksums. Fails with INPUT, naming the tensor that is not what was written. Files of others have no
 * checksums and pass, unless `must`. */
int wk_st_verify(const struct wk_st *st, bool must, struct hg_err *err);
/* One number for all the bytes: a hash of the checksums; 0 if there are none. */
uint64_t wk_st_sum(const struct wk_st *st);

/* "[768, 3072]" */
void wk_st_shape_format(const struct wk_st_tensor *t, char out[static 128]);

/* ---- Writing ---- */

struct wk_st_item {
    char *name;
    const char *dtype;
    int n_dims;
    uint64_t dims[2];
};

struct wk_st_writer;

/* Begin a file; values follow in the order of the items, which it borrows until then. metadata is an object of strings or NULL. What was
 * at path stays there until wk_st_commit. NULL with err set (ENV). */
struct wk_st_writer *wk_st_create(const char *path, const struct wk_st_item *items, size_t n,
                                  const json_t *metadata, struct hg_err *err);
/* The next tensor, whole; empty ones are left out. BUG: it has another size. */
int wk_st_write(struct wk_st_writer *w, const void *data, size_t bytes, struct hg_err *err);
/* Add the checksums (*sum: as wk_st_sum, unless NULL), bring it safely to the disk and put it in the place of the old one. Frees w also
 * when it fails; BUG: tensors are missing. */
int wk_st_commit(struct wk_st_writer *w, uint64_t *sum, struct hg_err *err);
/* Give up; takes NULL. */
void wk_st_abort(struct wk_st_writer *w);

#ifdef WK_REAL_F64
#define WK_ST_REAL "F64"
#else
#define WK_ST_REAL "F32"
#endif

#endif
