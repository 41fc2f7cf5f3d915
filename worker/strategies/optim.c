/* SPDX-License-Identifier: Apache-2.0 */
#include "strategies/optim.h"

#include <string.h>

#include "base/text.h"

static void adadelta_update(const struct wk_optim *o, struct wk_dev *dev, struct wk_span value,
                            struct wk_span gradient, const struct wk_span *slots,
                            const struct wk_update *u)
{
    const struct wk_adadelta how = { .lr = u->lr,
                                     .rho = o->rho,
                                     .eps = o->eps,
                                     .scale = 1,
                                     .copy = u->copy,
                                     .control = u->control };

    dev->backend->adadelta(dev, value, gradient, slots[0], slots[1], &how);
}

static void adamw_update(const struct wk_optim *o, struct wk_dev *dev, struct wk_span value,
                         struct wk_span gradient, const struct wk_span *slots,
                         const struct wk_update *u)
{
    const struct wk_adamw how = { .form = o->kind->form,
                                  .lr = u->lr,
                                  .beta1 = o->beta1,
                                  .beta2 = o->beta2,
                                  .eps = o->eps,
                                  .decay = u->decay,
                                  .scale = 1,
                                  .step = u->step,
                                  .copy = u->copy,
                                  .control = u->control,
                                  .spared = u->spared };

    dev->backend->adamw(dev, value, gradient, slots[0], slots[1], &how);
}

static const struct wk_optim_kind kinds[] = {
    { "adadelta", 2, adadelta_update, 0 },
    { "adamw", 2, adamw_update, WK_ADAMW_TORCH },
    { "adamw-hf", 2, adamw_update, WK_ADAMW_HF },
    { "adamw-google", 2, adamw_update, WK_ADAMW_GOOGLE },
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
