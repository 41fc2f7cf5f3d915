/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_PARAMS_H
#define HG_MATRIX_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

/* What hpcgrid-worker knows, from the tables in contract/. */

/* Limits of a strategy of hpcgrid-worker; 0: none. NULL if it has no such strategy. */
struct hg_strategy {
    const char *name;
    int max_nodes, max_tasks, max_devices;
    const char *summary;
};
const struct hg_strategy *hg_strategy_find(const char *name);

/* All of them; ends with an entry without a name. */
extern const struct hg_strategy hg_strategies[];

struct hg_param {
    const char *name;
    enum { HG_PARAM_INT, HG_PARAM_REAL, HG_PARAM_BOOL, HG_PARAM_STRING } kind;
    double min, max; /* both 0: any */
    const char *doc;
};
extern const struct hg_param hg_params[]; /* ends with an entry without a name */
const struct hg_param *hg_param_find(const char *name);

/* The words that a STRING may be, at most max into out. Returns how many; 0: any text. */
size_t hg_param_words(const struct hg_param *p, size_t max, const char *out[]);

/* Is this parameter an option of only some strategies, and of this one? */
bool hg_param_is_option(const char *name);
bool hg_strategy_has_option(const char *strategy, const char *name);
/* The strategies that have it: "ddp, fsdp". Lent until the next call. */
const char *hg_option_owners(const char *name);

#endif
