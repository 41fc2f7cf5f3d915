/* SPDX-License-Identifier: Apache-2.0 */
#include "render/renderer.h"

#include <string.h>

const struct hg_renderer *const hg_renderers[] = {
    &hg_renderer_text,
    &hg_renderer_md,
    &hg_renderer_csv,
    &hg_renderer_json,
    &hg_renderer_latex,
    &hg_renderer_html,
    NULL,
};

const struct hg_renderer *hg_renderer_find(const char *name)
{
    for (const struct hg_renderer *const *r = hg_renderers; *r; r++)
        if (strcmp((*r)->name, name) == 0)
            return *r;
    return NULL;
}
