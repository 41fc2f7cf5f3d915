/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_RENDERER_H
#define HG_RENDER_RENDERER_H

#include "analysis/report.h"
#include "base/buf.h"
#include "render/page.h"
#include "typeset/sheet.h"

struct hg_render_options {
    size_t width; /* columns of the terminal; 0: 80 */
    bool screen;  /* text: it is written to stdout, in colours if that takes them */
    /* A tidy form: rows and columns as in the table instead of one line for each result. */
    bool pivot;
    const char *caption, *label; /* latex: as they are; NULL: its own caption, no label */
    size_t points; /* latex: width of a column of the paper, in pt; 0: HG_LATEX_COLUMN_PT */
    const struct hg_page *page; /* html: links and how it was made; NULL: unknown */
};

/* A form of a report: text, Markdown, CSV ... Each is one file with one of these at its end, and a word in renderers.h: everything
 * that commands and messages know of formats comes from here. */
struct hg_renderer {
    const char *name;    /* --format NAME */
    const char *endings; /* of its files, with blanks between them: "html htm svg" */
    const char *file;    /* its name in the folder `tables` of a run; NULL: not saved there */
    /* For programs: one line for each result, or --pivot; also made of sets too large for tables. */
    bool tidy;
    bool fixed_numbers; /* --numbers does not apply */
    bool typeset;       /* for a paper: --caption, --label; --width is in pt */

    /* Append the report. The same report and options give the same bytes: no dates, no paths, no locale. */
    void (*render)(const struct hg_report *r, const struct hg_render_options *o,
                   struct hg_buf *out);

    /* Append a text so that nothing in it is markup: how a template of this format writes values. */
    void (*escape)(const char *text, struct hg_buf *out);

    /* Append the lines of --ranks; NULL: not in this format. */
    void (*sheet)(const struct hg_sheet *s, struct hg_buf *out);
};

#endif
