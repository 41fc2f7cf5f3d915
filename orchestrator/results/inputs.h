/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RESULTS_INPUTS_H
#define HG_RESULTS_INPUTS_H

#include <jansson.h>
#include <stdbool.h>

/* What a result was computed from, and on. */

/* Does this variable of the environment choose the network of the ranks, or how they use it: NCCL_SOCKET_IFNAME, UCX_TLS, OMPI_MCA_btl?
 * Not those that only make it talk. */
bool hg_inputs_is_network(const char *variable);

/* Members of `comparable` that may as well stand in the result itself or in its cell; ends with NULL. */
extern const char *const hg_inputs_keys[];

/* Those of a result that stand beside `comparable`, or in its settings: a new reference; NULL: none. */
json_t *hg_inputs_find(const json_t *entry);

/* The members of its `env`, and beside it, that describe hardware and software, not one host or moment: a new reference; NULL: none. */
json_t *hg_inputs_platform(const json_t *entry);

#endif
