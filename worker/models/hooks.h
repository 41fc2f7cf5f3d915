/* SPDX-License-Identifier: Apache-2.0 */
/* What surrounds a model's passes: a strategy brings values and takes gradients unit by unit, and ranks may share batch statistics. A pass
 * without hooks (NULL) runs by itself, on values and gradients that are there. */
#ifndef WK_MODELS_HOOKS_H
#define WK_MODELS_HOOKS_H

#include "backends/backend.h"
#include "base/err.h"

struct wk_hooks {
    void *context; /* first argument of all functions */
    /* Make the unit's values usable; release them. */
    int (*before_forward)(void *context, int unit, struct hg_err *err);
    int (*after_forward)(void *context, int unit, struct hg_err *err);
    /* The same for backward; after it the unit's gradients are complete on this rank. */
    int (*before_backward)(void *context, int unit, struct hg_err *err);
    int (*after_backward)(void *context, int unit, struct hg_err *err);
    /* Ranks that share batch statistics (0: each has its own), this one's number, and two collectives in place among them. */
    int ranks, rank;
    int (*all_gather)(void *context, struct wk_span whole, struct hg_err *err);
    int (*all_reduce)(void *context, struct wk_span whole, struct hg_err *err);
};

/* As models call them. */
int wk_before_forward(const struct wk_hooks *hooks, int unit, struct hg_err *err);
int wk_after_forward(const struct wk_hooks *hooks, int unit, struct hg_err *err);
int wk_before_backward(const struct wk_hooks *hooks, int unit, struct hg_err *err);
int wk_after_backward(const struct wk_hooks *hooks, int unit, struct hg_err *err);

#endif
