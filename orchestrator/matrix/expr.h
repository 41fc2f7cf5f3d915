/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_EXPR_H
#define HG_MATRIX_EXPR_H

#include <jv.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* jq expressions over a cell. All expressions of a set are compiled as one program, because jq
 * compiles its own library each time (16 ms).
 *
 * An evaluation that burns more than HG_EXPR_LIMIT_S seconds of processor time cannot be interrupted
 * from outside libjq: the process prints the rule's place and ends with exit code 3. Nothing can have
 * been submitted then, because cells are made before anything is. The same happens, with its own
 * message, when an expression exhausts the memory.
 */
#define HG_EXPR_LIMIT_S 1

struct hg_exprs;

/* Whom to ask which cell an expression was at when it had to be given up: fn writes a text of at most
 * size bytes, and may neither allocate nor lock. NULL: nobody. */
void hg_exprs_describe(struct hg_exprs *x, void (*fn)(const void *context, char *out, size_t size),
                       const void *context);

/* What a scan of the text found; the truth or more. */
struct hg_expr_uses {
    char **names;  /* members of the cell it may read */
    bool *certain; /* per name: is it surely a member of the cell that is meant? */
    size_t n;
    bool all; /* it may read any member */
    bool hw;  /* it uses $hw */
};

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

#endif
