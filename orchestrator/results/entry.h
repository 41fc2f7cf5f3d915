/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_ENTRY_H
#define HG_RESULTS_ENTRY_H

#include <jansson.h>
#include <stddef.h>

#include "base/json.h"
#include "results/result.h"

/* The place in a document that is being checked, and where problems go. */
struct hg_check {
    const struct hg_json_doc *doc;
    struct hg_errs *errs;
    struct hg_buf pointer; /* RFC 6901; not NULL */
};

/* The value at the pointer, or at a member below it, is not what it should be. Returns the error, for hg_err_hint. */
struct hg_err *hg_check_wrong(struct hg_check *c, const char *member, const char *expected,
                              const json_t *found);

/* Cut the pointer back to a length that it had. */
void hg_check_leave(struct hg_check *c, size_t len);

/* A member, which may be absent or null: "". */
const char *hg_check_string(struct hg_check *c, const json_t *object, const char *member);

/* Decode item i of a set's "results"; published: of a file of people, in which `n`, `sd`, `footnote` and `not_comparable` have a
 * meaning. *r borrows from the entry; first, best and used are not known yet. Problems are added to errs with
 * their place in doc; *r still has the members that were found (cell: NULL, or anything). */
void hg_entry_read(const struct hg_json_doc *doc, size_t i, const json_t *entry, bool published,
                   struct hg_result *r, struct hg_errs *errs);

#endif
