/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_CELLS_H
#define HG_CMD_CELLS_H

#include "base/words.h"
#include "matrix/cell.h"

/* What the commands that read a matrix have in common. */

/* Print the warnings of a walk, one a line, to stderr. */
void hg_cells_print_warnings(const struct hg_cells_count *count);

/* Say which cells a plan leaves out, on stderr: the first few by their names. planned: it was made to be run. */
struct hg_skips;
void hg_cells_print_skips(const struct hg_skips *skips, bool planned);

/* What happened to the cells, as lines "made 36  /axes 33, /include/0 3" on stdout. */
void hg_cells_print_count(const struct hg_matrix *m, const struct hg_cells_count *count);

/* The same as a JSON object; a new reference. */
json_t *hg_cells_count_json(const struct hg_matrix *m, const struct hg_cells_count *count);

/* Of a matrix with several sites, one of them chosen: where its other cells run, and the command that runs them there, one a line.
 * select: what -s said; NULL: nothing. */
void hg_cells_list_elsewhere(const struct hg_matrix *m, const struct hg_cells_count *count,
                             const char *select, struct hg_words *lines);

/* "runs", "skipped", "excluded", "merged" */
const char *hg_cells_fate_name(enum hg_cell_fate fate);

/* A value as a table shows it: strings bare, the rest as JSON. Appends. */
void hg_cells_show_value(const json_t *value, struct hg_buf *out);

#endif
