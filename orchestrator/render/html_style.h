/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_HTML_STYLE_H
#define HG_RENDER_HTML_STYLE_H

#include "base/buf.h"

/* Append all of a page before its <body>, and that tag: title, style, and what it may load. */
void hg_html_head(const char *title, struct hg_buf *out);

/* The script of every page, for the end of its <body>: the head allows no other. */
extern const char hg_html_script[];

#endif
