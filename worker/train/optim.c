/* SPDX-License-Identifier: Apache-2.0 */
#include "train/optim.h"

#include <string.h>

#include "base/text.h"

static void adadelta_update(const struct wk_optim *o, struct wk_dev *dev, struct wk_span value,
                            struct wk_span gradient, const struct wk_span *slots, double lr)
{
    dev->backend->adadelta(dev, value, gradient, slots[0], slots[1], lr, o->rho, o->eps);
}

static const struct wk_optim_kind kinds[] = {
    { "adadelta", 2, adadelta_update },
};

const struct wk_optim_kind *wk_optim_get(const char *name, struct hg_err *err)
{
    const char *names[sizeof kinds / sizeof *kinds];
    size_t n = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
        names[n++] = kinds[i].name;
    }
    hg_err_set(err, HG_E_INPUT, "unknown optimizer \"%s\"", name);
    hg_text_suggest(err, name, names, n);
    return NULL;
}
