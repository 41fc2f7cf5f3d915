/* SPDX-License-Identifier: Apache-2.0 */
#include "models/hooks.h"

int wk_before_forward(const struct wk_hooks *hooks, int unit, struct hg_err *err)
{
    return hooks ? hooks->before_forward(hooks->context, unit, err) : 0;
}

int wk_after_forward(const struct wk_hooks *hooks, int unit, struct hg_err *err)
{
    return hooks ? hooks->after_forward(hooks->context, unit, err) : 0;
}

int wk_before_backward(const struct wk_hooks *hooks, int unit, struct hg_err *err)
{
    return hooks ? hooks->before_backward(hooks->context, unit, err) : 0;
}

int wk_after_backward(const struct wk_hooks *hooks, int unit, struct hg_err *err)
{
    return hooks ? hooks->after_backward(hooks->context, unit, err) : 0;
}
