/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_SEVERAL_H
#define HG_MATRIX_SEVERAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/words.h"
#include "matrix/site.h"

/* The sites that axes and include name, in the matrix's order. n is 0 if they name none, or the matrix has a "site". */
struct hg_several {
    struct hg_several_site {
        char *word; /* as the matrix has it: a name or a path */
        struct hg_site *site;
    } * items;
    size_t n, cap;
    struct hg_words missing;    /* words that mean no site: errs has them */
    const struct hg_site *here; /* the one whose cells are planned and counted; NULL: all */
};

/* Find the words of "site" in a part of the matrix (axes or include), however deep, and load their sites. Problems go to errs. */
void hg_several_add(struct hg_several *s, const struct hg_json_doc *doc, const json_t *part,
                    const char *pointer, const char *dir, struct hg_errs *errs);

/* Does the text of a matrix name sites in axes or include, and none for all? */
bool hg_several_in(const json_t *matrix);

/* By the site's name, or the matrix's word; NULL: none of them. */
struct hg_several_site *hg_several_find(const struct hg_several *s, const char *word);

/* Is it one of them, or was it reported? */
bool hg_several_knows(const struct hg_several *s, const char *word);

/* Hint: their names, and what to do ("; --site NAME"). Returns -1. */
int hg_several_hint(const struct hg_several *s, const char *what, struct hg_err *err);

void hg_several_done(struct hg_several *s);

#endif
