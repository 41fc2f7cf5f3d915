/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_ENTRY_H
#define HG_RESULTS_ENTRY_H

#include <jansson.h>
#include <stddef.h>

#include "base/json.h"
#include "results/result.h"

/* Decode item i of a set's "results". *r borrows from the entry; first, best and used are not known yet. Problems are added to errs with
 * their place in doc; the members that were found stand in *r all the same (cell: NULL, or anything). */
void hg_entry_read(const struct hg_json_doc *doc, size_t i, const json_t *entry,
                   struct hg_result *r, struct hg_errs *errs);

#endif
