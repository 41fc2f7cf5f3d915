/* SPDX-License-Identifier: Apache-2.0 */
/* The strategies by name: limits, options, defaults. */
#ifndef WK_STRATEGIES_STRATEGIES_H
#define WK_STRATEGIES_STRATEGIES_H

#include "strategies/kind.h"

/* Names and limits of every strategy hpcgrid knows, from contract/strategies.def. */
struct wk_strategy_limits {
    const char *name;
    int max_nodes, max_tasks, max_devices; /* 0: none */
    const char *summary;
};
extern const struct wk_strategy_limits wk_strategy_limits[]; /* ends with a NULL name */

/* Which parameters are options of which strategies, from contract/strategy_options.def; ends with NULL. */
struct wk_strategy_option {
    const char *strategy, *parameter;
};
extern const struct wk_strategy_option wk_strategy_option_list[];

/* NULL: no strategy of that name. */
const struct wk_strategy_limits *wk_strategy_find(const char *name);

/* Can a cell with that strategy have that parameter? Everybody's and unknown ones: yes. */
bool wk_strategy_has_option(const char *strategy, const char *parameter);

/* Is it an option of any strategy? */
bool wk_strategy_is_option(const char *parameter);

/* Fails with INPUT: unknown name (with a suggestion), more ranks than it can use. */
const struct wk_strategy_kind *wk_strategy_get(const char *name, int world, struct hg_err *err);

/* The options of that strategy where a cell says nothing: its textbook, or what the framework it is known from
 * does (PyTorch's DDP, Lightning Fabric's FSDP and DeepSpeed). */
struct wk_strategy_options wk_strategy_defaults(const char *name, bool framework);

#endif
