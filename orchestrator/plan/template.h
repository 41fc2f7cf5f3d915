/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_TEMPLATE_H
#define HG_PLAN_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/words.h"
#include "base/buf.h"
#include "base/err.h"

/* {{key}} in a workload's command, launch, env and files, and in texts that hpcgrid-worker gets as parameters:
 *
 *   {{key}}    the cell's member: strings as they are, numbers and true/false as in JSON, lists and
 *              objects as JSON text
 *   {{key...}} each element of a list as a word; must be a word of its own
 *   {{key?text}}  the text if the member is true; false is like an absent member
 *   {{args}}   every parameter as --key=value, one word each; must be a word of its own
 *   {{dir}}    the attempt's folder        {{head}}     the first host of the job
 *   {{cell}}   file with the cell's JSON   {{result}}   file for the workload's own result
 *   {{id}}     the cell's id
 *
 * A word that names an absent member (or one that is null) is left out, and so is a list of words
 * as a whole. Braces around anything that is not a name stay as they are. Nothing is ever given to a
 * shell. (That each placeholder is some cell's key is checked when the matrix is loaded.) */
struct hg_template_vars {
    const json_t *cell; /* its members; lent, as are the others */
    const char *dir, *head, *id;
};

/* Append a member's value as a placeholder shows it; nothing for null. */
void hg_template_value(const json_t *value, struct hg_buf *out);

/* Render a list of strings and lists of strings, appending to words. */
int hg_template_words(const json_t *list, const struct hg_template_vars *vars,
                      struct hg_words *words, struct hg_err *err);

/* Render one text, appending to out. *absent is set when it names an absent member; what was
 * appended is then of no use. {{args}} becomes words with blanks between them. */
void hg_template_text(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                      bool *absent);

/* The same for a file: a line that names an absent member is left out. */
void hg_template_lines(const char *text, const struct hg_template_vars *vars, struct hg_buf *out);

#endif
