/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_PLAN_TEMPLATE_H
#define HG_PLAN_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/matrix.h"

/* {{key}} in a workload's command, launch, env and files:
 *
 *   {{key}}    the cell's member: strings as they are, numbers and true/false as in JSON, lists and
 *              objects as JSON text
 *   {{args}}   every parameter as --key=value, one word each; stands alone in its word
 *   {{dir}}    the attempt's folder        {{head}}   the first host of the job
 *
 * A word that names an absent member (or one that is null) is left out, and so is a list of words
 * as a whole. Braces around anything that is no name stay as they are. Nothing is ever given to a
 * shell. */
struct hg_template_vars {
    const json_t *cell; /* its members; lent, as are the others */
    const char *dir, *head;
};

/* A list of words that ends with NULL, so that it serves as argv. */
struct hg_words {
    char **items;
    size_t n, cap;
};
#define HG_WORDS_INIT \
    {                 \
        0             \
    }
/* Append a copy. Returns 0, or -1 when memory is gone. */
int hg_words_push(struct hg_words *words, const char *word);
void hg_words_done(struct hg_words *words);

/* Is this member of a cell a parameter of the workload? Not where and how the job runs (site,
 * nodes, time ...), not repeat, not a note (_x). */
bool hg_template_is_parameter(const char *key);

/* Append a member's value as a placeholder shows it; nothing for null. */
void hg_template_value(const json_t *value, struct hg_buf *out);

/* Render a list of strings and lists of strings, appending to words. */
int hg_template_words(const json_t *list, const struct hg_template_vars *vars,
                      struct hg_words *words, struct hg_err *err);

/* Render one text, appending to out. *absent is set when it names an absent member; what was
 * appended is then of no use. {{args}} becomes words with blanks between them. */
int hg_template_text(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                     bool *absent, struct hg_err *err);

/* The same for a file: a line that names an absent member is left out. */
int hg_template_lines(const char *text, const struct hg_template_vars *vars, struct hg_buf *out,
                      struct hg_err *err);

/* Check the placeholders of a matrix's workload against the keys that its cells have (an object,
 * the values do not matter). Each that no cell has is added to errs with its place and a
 * suggestion. Returns 0, or -1 if anything was added. */
int hg_template_check(const struct hg_matrix *m, const json_t *keys, struct hg_errs *errs);

#endif
