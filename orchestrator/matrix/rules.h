/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_RULES_H
#define HG_MATRIX_RULES_H

#include "matrix/draft.h"

/* "exclude": objects that match, and jq expressions. */
void hg_rules_parse(struct hg_draft *p);

/* "derive": jq expressions for members that a cell lacks. */
void hg_rules_parse_derive(struct hg_draft *p);

/* "baseline": members that are put over a cell. */
void hg_rules_parse_baseline(struct hg_draft *p);

/* Compile all expressions, and check that the members they surely read exist. Last of all. */
void hg_rules_compile(struct hg_draft *p);

#endif
