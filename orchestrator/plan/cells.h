/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_CELLS_H
#define HG_PLAN_CELLS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "matrix/names.h"
#include "plan/batch.h"

/* batches/<n>.cells.idx: for each line of the cells file the byte at which it begins, as 15 digits and a
 * newline, and one line more with the file's size. */
#define HG_PLAN_INDEX_LINE 16
void hg_plan_index_add(struct hg_buf *index, uint64_t place);

/* Write batches/<n>.cells.jsonl from the batch's text, and its index; of a known batch the lines that are others now, if there are any. */
int hg_plan_save_cells(const struct hg_batch *b, const char *dir, struct hg_err *err);

/* Read the ids of a batch's cells into it. INPUT if the file does not hold `cells` of them, or the index does not
 * go with it. */
int hg_plan_load_ids(struct hg_batch *b, size_t cells, const char *dir, struct hg_err *err);

/* One line of a cells file as an object: found by the index, nothing else is read. NOTFOUND after the
 * last line; INPUT names file and line where index and file do not go together. A new reference. */
json_t *hg_plan_read_cell(const char *dir, int batch, size_t line, struct hg_err *err);

/* Call visit for each line of a batch's cells file, in order: an object with id, baseline, added,
 * cell, lent. visit returns 0 to continue. Returns what it returned, or -1 with err set. */
int hg_plan_each_cell(const char *dir, int batch,
                      int (*visit)(size_t line, const json_t *cell, void *context), void *context,
                      struct hg_err *err);

/* Names for the cells of a run, its batches one after the other. NULL with err set. */
struct hg_names *hg_plan_names(const char *dir, struct hg_err *err);

/* Append the name of one of them, or its id where its file cannot be read. *names, NULL at first, is yours to free. */
void hg_plan_append_name(const char *dir, struct hg_names **names, int batch, size_t line,
                         const char *id, struct hg_buf *out);

#endif
