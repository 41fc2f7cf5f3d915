/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_HTML_STYLE_H
#define HG_RENDER_HTML_STYLE_H

/* What every page carries with it. */
extern const char hg_html_style[], hg_html_script[];

/* SHA-256 of the script, in base64: no other one may run in a page. A test computes it again. */
extern const char hg_html_script_hash[];

#endif
