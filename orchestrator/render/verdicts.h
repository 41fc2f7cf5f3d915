/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_RENDER_VERDICTS_H
#define HG_RENDER_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "typeset/sheet.h"

/* What `hpcgrid compare` and `hpcgrid history` print, as data, and its forms. */

enum hg_verdict_form {
    HG_FORM_TEXT,
    HG_FORM_MD,
    HG_FORM_JSON,
    HG_FORM_HTML,
    HG_FORM_JUNIT,
    HG_FORMS
};

/* " text md json html junit", for help and messages. */
#define HG_VERDICT_FORMS " text md json html junit"

/* A form of this name (NULL: text, or JSON if as_json). -1 with errs filled: USAGE. */
int hg_verdict_form(const char *name, bool as_json, enum hg_verdict_form *form,
                    struct hg_errs *errs);

/* A table with a title of its own; "" for none. */
struct hg_verdict_table {
    char *title;
    struct hg_sheet sheet;
};

/* One test case of JUnit. */
struct hg_verdict_case {
    char *name;
    char *message;       /* the figures and the verdict */
    const char *failure; /* its type, "slower"; NULL: it did not fail */
    bool skipped;        /* nothing to judge */
};

struct hg_verdict_page {
    char *title;
    char *suite; /* JUnit's class name */
    bool good;
    char *state; /* one line: counts */
    struct {
        char **items; /* sentences below the title */
        size_t n, cap;
    } head;
    struct {
        struct hg_verdict_table *items;
        size_t n, cap;
    } tables;
    struct {
        char **items; /* sentences below the tables */
        size_t n, cap;
    } tail;
    struct {
        struct hg_verdict_case *items;
        size_t n, cap;
    } cases;
    struct hg_buf pictures; /* SVG, for HTML */
};

/* Take over the text in a buffer as a sentence, and empty it. */
void hg_verdict_head(struct hg_verdict_page *p, struct hg_buf *text);
void hg_verdict_tail(struct hg_verdict_page *p, struct hg_buf *text);

void hg_verdict_md(const struct hg_verdict_page *p, struct hg_buf *out);
void hg_verdict_html(const struct hg_verdict_page *p, struct hg_buf *out);

/* One suite, a test case for each cell (as Jenkins and GitLab read it). */
void hg_verdict_junit(const struct hg_verdict_page *p, struct hg_buf *out);

void hg_verdict_page_done(struct hg_verdict_page *p);

#endif
