/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_EXPR_H
#define HG_MATRIX_EXPR_H

#include <jansson.h>
#include <jv.h>
#include <stddef.h>

#include "base/err.h"
#include "matrix/scan.h"

/* jq expressions over a cell. All expressions of a set are compiled as one program, because jq
 * compiles its own library each time (16 ms). While a set exists the watchdog ticks: an evaluation that does not
 * end, or exhausts the memory, ends the process. */
struct hg_exprs;

/* Set the function that names the cell an expression was at when the watchdog ended it (struct hg_watched). NULL: none. */
void hg_exprs_describe(struct hg_exprs *x, void (*fn)(const void *context, char *out, size_t size),
                       const void *context);

struct hg_exprs *hg_exprs_create(void);
void hg_exprs_free(struct hg_exprs *x);

/* Add an expression; place ("x.json:3:5: error: /exclude/0") is put in front of the message when it
 * does not end. Returns its number, or -1 with err set: INPUT when it uses what differs from run to
 * run (now, env, input). */
int hg_exprs_add(struct hg_exprs *x, const char *text, const char *place, struct hg_err *err);

size_t hg_exprs_count(const struct hg_exprs *x);
const struct hg_expr_uses *hg_exprs_uses(const struct hg_exprs *x, int i);
const char *hg_exprs_text(const struct hg_exprs *x, int i);

/* Compile the set. Returns 0, or -1 with the first bad expression's number in *bad and err set; call
 * hg_exprs_drop for it and compile again to hear of the next one. */
int hg_exprs_compile(struct hg_exprs *x, int *bad, struct hg_err *err);
void hg_exprs_drop(struct hg_exprs *x, int i);

/* Evaluate expression i over a cell (an object, consumed), with $hw (consumed). Returns 1 with the
 * one value it gave in *out, 0 if it gave none, or -1 with err set: a run-time error, or more than
 * one value. */
int hg_exprs_eval(struct hg_exprs *x, int i, jv cell, jv hw, jv *out, struct hg_err *err);

/* JSON text of a value, cut at 60 bytes, for messages; consumes v. */
void hg_expr_show(jv v, char out[static 64]);

/* Values of jq and of jansson. */

jv hg_jv_of_json(const json_t *json);

/* JSON of a value, numbers rounded; NULL if it holds NaN, an infinite number or a string with a NUL, which have no place in a cell.
 * Consumes v. */
json_t *hg_json_of_jv(jv v);

#endif
