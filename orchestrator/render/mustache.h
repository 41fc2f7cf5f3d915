/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_MUSTACHE_H
#define HG_RENDER_MUSTACHE_H

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Templates after mustache(5): {{name}}, {{{name}}} and {{&name}} (not escaped), {{#name}}...{{/name}},
 * {{^name}}...{{/name}}, {{! comment }}, {{=<% %>=}}. Inside a list, @first, @last and @index (from 1) give the
 * position. No logic, and no partials: a template is one file. Unknown names are errors, whatever the data are. */

/* Larger templates, deeper sections and longer outputs are rejected. */
#define HG_MUSTACHE_FILE_MAX ((size_t)1 << 20)
#define HG_MUSTACHE_DEPTH_MAX 32
#define HG_MUSTACHE_OUTPUT_MAX ((size_t)64 << 20)

/* Append text so that nothing in it is markup of the target format. */
typedef void hg_mustache_escape_fn(const char *text, struct hg_buf *out);

struct hg_mustache;

/* Parse a template; file is its name for messages, the text is copied. `shape` is what data look like:
 * objects with the members there are, lists with one element each; an object with a member "*" takes
 * any name. NULL with errs filled: INPUT with file, line and column for each problem. */
struct hg_mustache *hg_mustache_parse(const char *file, const char *text, size_t len,
                                      const json_t *shape, struct hg_errs *errs);
void hg_mustache_free(struct hg_mustache *m);

/* Append the template with data of that shape. A section of false, null, "", 0 or an empty list is skipped.
 * Returns 0, or -1 with err set: INPUT for a name below "*" that is not there, or too long an output. */
int hg_mustache_render(const struct hg_mustache *m, const json_t *data,
                       hg_mustache_escape_fn *escape, struct hg_buf *out, struct hg_err *err);

#endif
