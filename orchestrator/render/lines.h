/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_LINES_H
#define HG_RENDER_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "results/results.h"
#include "typeset/style.h"

/* Results as lines of CSV: one for each cell and attempt, one column for each key of the cells and for each plain value in any
 * result. Which columns there are is known after the last result; until then the fields of each are kept as text, some hundred bytes,
 * in memory or, where they are many, in a file without a name ($TMPDIR, else /tmp). */
struct hg_lines;

/* memory_max: bytes of text that stay in memory; the style is lent. NULL: each line is a JSON array of values instead, and the first one
 * has pairs: a column's name and the type that SQL has for its values (INTEGER, REAL, BOOLEAN, TEXT; "": some of each). */
struct hg_lines *hg_lines_create(const struct hg_style *style, size_t memory_max);
void hg_lines_free(struct hg_lines *l);

/* Keep the line of a result, lent for the call. members: all that it has; its cell is taken from r. Returns 0, or -1 with err set: the
 * file cannot be written. */
int hg_lines_add(struct hg_lines *l, const struct hg_results *set, const struct hg_result *r,
                 const json_t *members, struct hg_err *err);

/* A list or an object stands in a line only where another result has a plain value of its name. true: such a value came after a list
 * that was left out. Nothing is kept any more then: add all results once again. */
bool hg_lines_again(struct hg_lines *l);

enum {
    HG_LINE_SHOWN = 1,
    HG_LINE_COUNTS = 2, /* the attempt that counts, and it is good */
    HG_LINE_MARKED = 4, /* remember its id */
};

/* Where the text goes, some whole lines at a time. 0, or -1 with err set. */
typedef int (*hg_lines_put_fn)(void *context, const char *text, size_t len, struct hg_err *err);

/* Write the header and the lines. keys: those of the cells that are columns, in this order; flags: HG_LINE_* of each result, in the
 * order of adding. Returns 0, or -1 with err set. */
int hg_lines_write(struct hg_lines *l, const char *const *keys, size_t n_keys,
                   const unsigned char *flags, hg_lines_put_fn put, void *context,
                   struct hg_err *err);

/* The id of the line that was marked; "" before it was written. Lent. */
const char *hg_lines_marked_id(const struct hg_lines *l);

/* Append a field: seconds are told by the name of the column, a list or an object is JSON. */
void hg_csv_append_json(const struct hg_style *style, const char *name, const json_t *value,
                        struct hg_buf *out);

/* Append the last columns of a line, each behind a separator: source and note of its set, as far as any of the sets has them, and what
 * made the table. set NULL: their names; style NULL: as in hg_lines_create. */
void hg_csv_append_origin(const struct hg_style *style, const struct hg_results *const *sets,
                          size_t n, const struct hg_results *set, struct hg_buf *out);

#endif
