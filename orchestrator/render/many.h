/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_MANY_H
#define HG_RENDER_MANY_H

#include "render/lines.h"
#include "analysis/report.h"

/* A set of very many results: its lines of CSV, and how many are complete, without a table. A result takes some 100 bytes of memory; its
 * line waits in a file (render/lines.h). What is written is what hg_report_build and the CSV renderer would make of the set. */

/* So many results are too many for tables: above, `run` and `report --format csv` go this way. */
#define HG_MANY_MIN 50000

/* More than these get a digest (render/digest.h) in the other forms, unless they are asked for by an option: a result takes up to 9 KB
 * of memory in a table. */
#define HG_TABLES_MAX 100000

struct hg_many;

/* The lines of a report's results, which are few enough for memory, in order; style: as in hg_lines_create. Returns 0, or -1 with err set by put. */
int hg_report_write_lines(const struct hg_report *r, const struct hg_style *style,
                          hg_lines_put_fn put, void *context, struct hg_err *err);

/* Begin with the set's document without its results, which is taken over, also on failure. options: only metric, where, style and json_lines say something
 * here; lent, may be NULL. digest: for hg_many_report, without lines. NULL: the set has to be read as a whole, which says what is wrong with it. */
struct hg_many *hg_many_create(struct hg_json_doc *head, unsigned flags,
                               const struct hg_report_options *options, bool digest);
void hg_many_free(struct hg_many *m);

/* Add a result, lent for the call. Returns 0, or -1: with err not set as above. */
int hg_many_add(struct hg_many *m, const json_t *entry, struct hg_err *err);

/* All were added. Returns 0; 1: nothing is kept, add all once again (hg_lines_again); -1: with err not set as above. */
int hg_many_end(struct hg_many *m, struct hg_err *err);

/* Write the CSV. Returns 0, or -1 with err set. */
int hg_many_write(struct hg_many *m, hg_lines_put_fn put, void *context, struct hg_err *err);

/* A report without tables, with a digest of all cells as its listings; lent. Once, after hg_many_end, with `digest`. */
const struct hg_report *hg_many_report(struct hg_many *m);

/* Are the cells many repeats of few, so that tables can be read and made after all? With `digest`, after hg_many_end. */
bool hg_many_fits_tables(const struct hg_many *m);

/* Cells that are shown, after hg_many_end. */
size_t hg_many_cells(const struct hg_many *m);

/* All cells shown have a complete, valid result. */
bool hg_many_is_complete(const struct hg_many *m);

/* Append what a person wants to know first; only behind hg_many_write. run: its folder. */
void hg_many_summarize(const struct hg_many *m, const char *run, struct hg_buf *out);

/* The same of a report whose tables are too long to be printed. */
void hg_report_summarize(const struct hg_report *r, const char *run, struct hg_buf *out);

#endif
