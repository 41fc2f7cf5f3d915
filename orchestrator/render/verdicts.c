/* SPDX-License-Identifier: Apache-2.0 */
#include "render/verdicts.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/html_style.h"
#include "typeset/escape.h"

int hg_verdict_form(const char *name, bool as_json, enum hg_verdict_form *form,
                    struct hg_errs *errs)
{
    static const char *const names[HG_FORMS] = { "text", "md", "json", "html", "junit" };
    struct hg_err *err;

    *form = as_json ? HG_FORM_JSON : HG_FORM_TEXT;
    if (!name)
        return 0;
    for (size_t i = 0; i < HG_FORMS; i++)
        if (strcmp(name, names[i]) == 0) {
            *form = (enum hg_verdict_form)i;
            if (!as_json || *form == HG_FORM_JSON)
                return 0;
        }
    err = hg_errs_next(errs);
    if (as_json)
        return hg_err_set(err, HG_E_USAGE, "--json cannot be combined with --format %s", name);
    hg_err_set(err, HG_E_USAGE, "--format: unknown format \"%s\"", name);
    hg_text_suggest(err, name, names, HG_FORMS);
    return -1;
}

void hg_verdict_head(struct hg_verdict_page *p, struct hg_buf *text)
{
    *HG_VEC_PUSH(&p->head) = hg_buf_detach(text);
}

void hg_verdict_tail(struct hg_verdict_page *p, struct hg_buf *text)
{
    *HG_VEC_PUSH(&p->tail) = hg_buf_detach(text);
}

void hg_verdict_page_done(struct hg_verdict_page *p)
{
    for (size_t i = 0; i < p->head.n; i++)
        free(p->head.items[i]);
    for (size_t i = 0; i < p->tail.n; i++)
        free(p->tail.items[i]);
    for (size_t i = 0; i < p->tables.n; i++) {
        free(p->tables.items[i].title);
        hg_sheet_done(&p->tables.items[i].sheet);
    }
    for (size_t i = 0; i < p->cases.n; i++) {
        free(p->cases.items[i].name);
        free(p->cases.items[i].message);
    }
    HG_VEC_DONE(&p->head);
    HG_VEC_DONE(&p->tail);
    HG_VEC_DONE(&p->tables);
    HG_VEC_DONE(&p->cases);
    hg_buf_done(&p->pictures);
    free(p->title);
    free(p->suite);
    free(p->state);
}

/* ---- Markdown ---- */

static void md_paragraph(const char *text, struct hg_buf *out)
{
    hg_md_append(text, out);
    hg_buf_puts(out, "\n\n");
}

void hg_verdict_md(const struct hg_verdict_page *p, struct hg_buf *out)
{
    hg_buf_puts(out, "# ");
    md_paragraph(p->title, out);
    hg_buf_puts(out, "**");
    hg_md_append(p->state, out);
    hg_buf_puts(out, "**\n\n");
    for (size_t i = 0; i < p->head.n; i++)
        md_paragraph(p->head.items[i], out);
    for (size_t i = 0; i < p->tables.n; i++) {
        const struct hg_verdict_table *t = &p->tables.items[i];

        if (*t->title) {
            hg_buf_puts(out, "## ");
            md_paragraph(t->title, out);
        }
        hg_sheet_md(&t->sheet, out);
        hg_buf_puts(out, i + 1 < p->tables.n || p->tail.n ? "\n" : "");
    }
    for (size_t i = 0; i < p->tail.n; i++) {
        hg_md_append(p->tail.items[i], out);
        hg_buf_puts(out, i + 1 < p->tail.n ? "\n\n" : "\n");
    }
}

/* ---- HTML ---- */

static void element(const char *open, const char *text, const char *close, struct hg_buf *out)
{
    hg_buf_puts(out, open);
    hg_html_append(text, out);
    hg_buf_puts(out, close);
}

static void html_table(const struct hg_verdict_table *t, struct hg_buf *out)
{
    const struct hg_sheet *s = &t->sheet;

    if (*t->title)
        element("<h2>", t->title, "</h2>\n", out);
    hg_buf_puts(out, "<div class=\"scroll\"><table>\n");
    for (size_t i = 0; i < s->n; i++) {
        size_t column = i % s->n_columns;
        bool left = column < 8 * sizeof s->left && s->left >> column & 1;

        if (column == 0)
            hg_buf_puts(out, i == 0 ? "<thead><tr>" : "<tr>");
        hg_buf_puts(out, i < s->n_columns ? "<th scope=\"col\"" : "<td");
        element(left ? " class=\"l\">" : ">", s->items[i], i < s->n_columns ? "</th>" : "</td>",
                out);
        if (column + 1 == s->n_columns)
            hg_buf_puts(out, i < s->n_columns ? "</tr></thead>\n<tbody>\n" : "</tr>\n");
    }
    hg_buf_puts(out, "</tbody></table></div>\n");
}

void hg_verdict_html(const struct hg_verdict_page *p, struct hg_buf *out)
{
    hg_html_head(p->title, out);
    element("<header>\n<h1>", p->title, "</h1>\n", out);
    hg_buf_printf(out, "<p class=\"state %s\">", p->good ? "good" : "bad");
    element("", p->state, "</p>\n", out);
    for (size_t i = 0; i < p->head.n; i++)
        element("<p>", p->head.items[i], "</p>\n", out);
    hg_buf_puts(out, "</header>\n<main>\n<section>\n");
    for (size_t i = 0; i < p->tables.n; i++)
        html_table(&p->tables.items[i], out);
    for (size_t i = 0; i < p->tail.n; i++)
        element("<p class=\"soft\">", p->tail.items[i], "</p>\n", out);
    hg_buf_puts(out, hg_buf_str(&p->pictures));
    hg_buf_puts(out, "</section>\n</main>\n<script>");
    hg_buf_puts(out, hg_html_script);
    hg_buf_puts(out, "</script>\n</body>\n</html>\n");
}

/* ---- JUnit ---- */

/* Bytes that are not UTF-8 would make the file unreadable. */
static void attribute(const char *name, const char *text, struct hg_buf *out)
{
    json_t *clean = hg_json_text(text);

    hg_buf_printf(out, " %s=\"", name);
    hg_html_append(json_string_value(clean), out);
    hg_buf_puts(out, "\"");
    json_decref(clean);
}

static void junit_case(const struct hg_verdict_page *p, const struct hg_verdict_case *c,
                       struct hg_buf *out)
{
    hg_buf_puts(out, "    <testcase");
    attribute("classname", p->suite, out);
    attribute("name", c->name, out);
    hg_buf_puts(out, ">\n      <");
    hg_buf_puts(out, c->failure ? "failure" : c->skipped ? "skipped" : "system-out");
    if (c->failure || c->skipped) {
        attribute("message", c->message, out);
        if (c->failure)
            attribute("type", c->failure, out);
        hg_buf_puts(out, "/>\n");
    } else {
        hg_buf_puts(out, ">");
        hg_html_append(c->message, out);
        hg_buf_puts(out, "</system-out>\n");
    }
    hg_buf_puts(out, "    </testcase>\n");
}

void hg_verdict_junit(const struct hg_verdict_page *p, struct hg_buf *out)
{
    size_t failures = 0, skipped = 0;

    for (size_t i = 0; i < p->cases.n; i++) {
        failures += p->cases.items[i].failure != NULL;
        skipped += !p->cases.items[i].failure && p->cases.items[i].skipped;
    }
    hg_buf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite");
    attribute("name", p->title, out);
    hg_buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
                  p->cases.n, failures, skipped);
    for (size_t i = 0; i < p->cases.n; i++)
        junit_case(p, &p->cases.items[i], out);
    hg_buf_puts(out, "  </testsuite>\n</testsuites>\n");
}
