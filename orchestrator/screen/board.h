/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SCREEN_BOARD_H
#define HG_SCREEN_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "rundir/rundir.h"

/* Which cell of a run stands where: rows and columns as in its report. The keys that split a report into tables are the first keys of
 * the rows, and each repeat has a column. */

struct hg_board_cell {
    int batch;
    uint32_t line;
    size_t next; /* another cell of the same place; HG_MAP_NONE: none */
    size_t row, column;
};

/* Columns with the same values but for `repeat` form a group, which has one label. */
struct hg_board_column {
    int label_width; /* columns of a terminal */
    int group;       /* columns of its group */
    bool last;       /* of its group */
};

struct hg_board {
    struct hg_board_cell *cells;
    size_t n;
    size_t n_rows, n_columns;
    size_t n_row_keys;               /* parts of a row's label */
    int *key_widths;                 /* the widest value of each */
    struct hg_board_column *columns; /* by column */
    struct hg_board_data *data;
};

/* Read the cells of a run that picks says (NULL: all). Free with hg_board_free. NULL with err set: no cell is picked, or the run cannot be
 * read. */
struct hg_board *hg_board_load(const struct hg_rundir *rd,
                               bool (*picks)(void *context, int batch, uint32_t line),
                               void *context, struct hg_err *err);
void hg_board_free(struct hg_board *b);

/* Take the next key of the rows to the columns; after the last one, the report's arrangement comes back. Returns its name; NULL: it is the
 * report's. */
const char *hg_board_turn(struct hg_board *b);

/* Sort by the next key: of the rows, or of the columns. Returns its name; NULL: there are not two. */
const char *hg_board_sort(struct hg_board *b, bool columns);

/* The first cell at a place; HG_MAP_NONE: there is none. */
size_t hg_board_at(const struct hg_board *b, size_t row, size_t column);

/* Append a part of a row's label, k < n_row_keys; the name of its key; what stands over a column. */
void hg_board_row_label(const struct hg_board *b, size_t row, size_t k, struct hg_buf *out);
void hg_board_row_key(const struct hg_board *b, size_t k, struct hg_buf *out);
void hg_board_column_label(const struct hg_board *b, size_t column, struct hg_buf *out);

/* Append what a cell is called; its id, lent; the report's metric, lent (NULL: the report does not say). */
void hg_board_append_name(const struct hg_board *b, size_t cell, struct hg_buf *out);
const char *hg_board_id(const struct hg_board *b, size_t cell);
const char *hg_board_metric(const struct hg_board *b);

#endif
