/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_HTML_STYLE_H
#define HG_RENDER_HTML_STYLE_H

#include "base/buf.h"

/* Style and script that are part of every page. */
extern const char hg_html_style[], hg_html_script[];

/* SHA-256 of the script, in base64: the page allows no other script. A test computes it again. */
extern const char hg_html_script_hash[];

/* Append all of a page before its <body>, and that tag: title, style, and what it may load. html.c. */
void hg_html_head(const char *title, struct hg_buf *out);

#endif
