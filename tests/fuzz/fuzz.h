/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of files that people and foreign programs write, as functions of any bytes: whatever they
 * are given, they return, leak nothing and keep what is promised of them. */
#ifndef HG_TESTS_FUZZ_H
#define HG_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct hg_fuzz_target {
    const char *name;
    void (*run)(const char *text, size_t len); /* a NUL stands behind the text */
};

/* Each ends with an entry without a name. */
extern const struct hg_fuzz_target hg_fuzz_orchestrator[], hg_fuzz_agents[], hg_fuzz_worker[];

/* NULL if there is none of that name. */
const struct hg_fuzz_target *hg_fuzz_find(const char *name);

/* The bytes as a file, for parsers that take a path; lent until the next call. */
const char *hg_fuzz_file(const char *text, size_t len);

/* End the program, as a sanitizer would, unless what must be true is. */
void hg_fuzz_expect(bool is, const char *what);

/* Write errors down as people would see them, and free them. err may be NULL. */
void hg_fuzz_errors(struct hg_errs *errs, struct hg_err *err);

#endif
