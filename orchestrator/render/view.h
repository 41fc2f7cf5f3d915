/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_VIEW_H
#define HG_RENDER_VIEW_H

#include <jansson.h>

#include "render/page.h"

/* A report as a template sees it: everything that people read, as text in the report's style, and the figures behind it with all
 * their digits. templates/reports/README.md lists it. */

/* A new reference. page may be NULL. */
json_t *hg_view(const struct hg_report *r, const struct hg_page *page);

/* The shape of every view, with one element in each list: for hg_mustache_parse. A new reference. */
json_t *hg_view_shape(void);

/* Append the template in a file, filled with a report. Its values are escaped for the format (a renderer's name; NULL: as the file's
 * ending says). Returns 0, or -1 with errs filled. */
int hg_view_render(const struct hg_report *r, const struct hg_page *page, const char *path,
                   const char *format, struct hg_buf *out, struct hg_errs *errs);

#endif
