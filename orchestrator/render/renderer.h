/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_RENDERER_H
#define HG_RENDER_RENDERER_H

#include "base/buf.h"
#include "render/page.h"
#include "analysis/table.h"

struct hg_render_options {
    size_t width; /* columns of the terminal; 0: 80 */
    bool pivot;   /* csv: rows and columns as in the table instead of one line a cell and attempt */
    const struct hg_page *page; /* html: links and how it was made; NULL: not known */
};

/* A way to write a report down. One file holds one; renderers.c lists them. */
struct hg_renderer {
    const char *name;    /* --format NAME */
    const char *summary; /* for the help */
    /* Append the report. The same report and options give the same bytes. Fails only when memory
     * is gone (the buffer is marked failed). */
    void (*render)(const struct hg_report *r, const struct hg_render_options *o,
                   struct hg_buf *out);
};

extern const struct hg_renderer *const hg_renderers[]; /* ends with NULL */
extern const struct hg_renderer hg_renderer_text, hg_renderer_md, hg_renderer_csv, hg_renderer_json,
    hg_renderer_latex, hg_renderer_html;

const struct hg_renderer *hg_renderer_find(const char *name);

#endif
