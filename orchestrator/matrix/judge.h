/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_JUDGE_H
#define HG_MATRIX_JUDGE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/words.h"
#include "matrix/several.h"

/* Who judges a member: the site for hardware, the table of hpcgrid-worker if that is the workload.
 */
struct hg_judge {
    const struct hg_site *site; /* NULL: hardware is not judged */
    bool worker;
    const struct hg_several *several; /* NULL: one site */
};

/* May a cell have this key? USAGE of a reserved word, odd characters, a parameter hpcgrid-worker
 * does not know: INPUT with a suggestion. */
int hg_key_judge(const struct hg_judge *j, const char *key, struct hg_err *err);

/* Is this value right for the key? null is right everywhere. */
int hg_member_judge(const struct hg_judge *j, const char *key, const json_t *value,
                    struct hg_err *err);

/* Append the words of a value of kind HG_KEY_WORDS: a text is split at blanks, a list is taken as it is. */
void hg_member_words(const json_t *value, struct hg_words *out);

#endif
