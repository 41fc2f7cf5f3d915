/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_CODE_H
#define HG_ANALYSIS_CODE_H

#include <jansson.h>

#include "base/buf.h"
#include "analysis/builder.h"

/* Which code the results come from: `code` of a result (node/README.md). */

/* Did two results run different code? By the hash of the tracked files; where one has none, by revision and dirty; then by the programs
 * and scripts that both name. Unknown on one side is no difference, and hpcgrid-worker runs nothing from the folder. If so, mine and
 * theirs are what tells them apart: "33ac97501f-dirty" and "12ab34cd56". */
bool hg_code_differs(const json_t *a, const json_t *b, struct hg_buf *mine, struct hg_buf *theirs);

/* Say, one sentence for each, which code the runs of c ran other than the runs of its baseline (without one: of the table's first place of
 * the same set), and that its own runs differ. Two sets that are compared differ on purpose. Returns whether anything was said. */
bool hg_code_place(const struct hg_builder *b, const struct hg_table *t,
                   const struct hg_configuration *c, const struct hg_point *p,
                   void (*say)(void *context, const char *text), void *context);

/* Append "33ac97501f-dirty, 12ab34cd56 and 2 more": the code of the results of a set that count; nothing if it is not known. */
void hg_code_of_set(const struct hg_report *r, size_t set, struct hg_buf *out);

/* Add the listing "code" to the report, if its results ran different code: each with the number of its runs. */
void hg_code_list(struct hg_builder *b);

#endif
