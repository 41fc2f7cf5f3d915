/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SELECT_H
#define HG_MATRIX_SELECT_H

#include <jansson.h>

#include "base/err.h"

/* A selector picks cells: "hardware=a100,nodes=2..8,lr>0.01,strategy!=dp" (all parts must hold; a value
 * list "a|b" is any of them; <, <=, > and >= compare numbers; "key" alone: the cell has it; "!key": it has not; "id=..." may be a
 * prefix), a name of a cell as hpcgrid
 * writes it ("ddp 2x2 lr=0.1, run 3"), or else a jq expression. */
struct hg_selector;
struct hg_grid;

/* NULL with err set (USAGE) if it is neither. */
struct hg_selector *hg_selector_parse(const char *text, struct hg_err *err);
void hg_selector_free(struct hg_selector *s);

/* 1: picked, 0: not, -1: err set (the jq expression failed on this cell). A NULL selector picks
 * everything. */
int hg_selector_match(const struct hg_selector *s, const char *id, const json_t *cell,
                      struct hg_err *err);

/* Does a cell of this matrix have every key that the selector names, and can it have the words? 0, or -1 with err set
 * (USAGE, with a suggestion): a typing mistake would pick nothing, or everything. Hardware of other sites is fine. */
int hg_selector_check(const struct hg_selector *s, const struct hg_grid *g, struct hg_err *err);

/* Remember a cell's keys and values, and after the last cell check that some cell had each key of the selector, and a value for it
 * that it names. 0, or -1 as above, with the values that there are; 0 if no cell was seen. */
void hg_selector_see(const struct hg_selector *s, const json_t *cell);
int hg_selector_check_seen(const struct hg_selector *s, struct hg_err *err);

/* No cell of a matrix was picked: say why. flags: of hg_cells_walk, which cells those were. Returns -1. */
struct hg_matrix;
int hg_selector_refuse(const struct hg_selector *s, const struct hg_matrix *m, unsigned flags,
                       struct hg_errs *errs);

/* The i-th key that a selector names, as often as it names it; NULL after the last, and of a jq
 * expression or a NULL selector. Lent by s. "id" is one, though no cell has it as a member. */
const char *hg_selector_key(const struct hg_selector *s, size_t i);

#endif
