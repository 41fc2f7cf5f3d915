/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_RENDERERS_H
#define HG_RENDER_RENDERERS_H

#include "render/renderer.h"

/* All formats, in the order of the help: FORM(x) is hg_renderer_x in x.c. */
#define HG_RENDERERS(FORM) \
    FORM(text)             \
    FORM(md)               \
    FORM(csv)              \
    FORM(json)             \
    FORM(latex)            \
    FORM(sentences)        \
    FORM(html)

/* " text md csv ...", a string constant for help and messages. */
#define HG_RENDERER_NAMES HG_RENDERERS(HG_RENDERER_NAME)
#define HG_RENDERER_NAME(form) " " #form

#define HG_RENDERER_DECLARE(form) extern const struct hg_renderer hg_renderer_##form;
HG_RENDERERS(HG_RENDERER_DECLARE)

extern const struct hg_renderer *const hg_renderers[]; /* ends with NULL */

/* NULL: unknown. */
const struct hg_renderer *hg_renderer_find(const char *name);

/* The format of a file with this name, by its ending; NULL: unknown. */
const struct hg_renderer *hg_renderer_of_file(const char *path);

/* Set err: `name` is not a format, with the ones that are. USAGE. Returns -1. */
int hg_renderer_unknown(const char *name, struct hg_err *err);

#endif
