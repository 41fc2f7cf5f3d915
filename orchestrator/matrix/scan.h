/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SCAN_H
#define HG_MATRIX_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A scan of jq text: which members of the cell it reads, and whether it may be used at all. It need not understand jq:
 * whatever it does not know to be harmless makes the expression one that reads every member, which costs time only. */

/* What a scan of the text found; the truth or more. */
struct hg_expr_uses {
    char **names;  /* members of the cell it may read */
    bool *certain; /* per name: is it surely a member of the cell that is meant? */
    size_t n;
    bool all;    /* it may read any member */
    bool hw;     /* it uses $hw */
    bool closed; /* brackets and strings end where they began: it can be joined with others */
};

/* Fill uses, which is zeroed; release it with hg_scan_done, also after a failure. INPUT if the text uses what
 * differs from run to run (now, env, input). */
int hg_scan(const char *text, struct hg_expr_uses *uses, struct hg_err *err);
void hg_scan_done(struct hg_expr_uses *uses);

/* Can a name begin with this character? */
bool hg_scan_is_name_start(char c);

#endif
