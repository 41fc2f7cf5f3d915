/* SPDX-License-Identifier: Apache-2.0 */
#include "manual/markup.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "typeset/plain.h"

#define CELLS_MAX 8

/* What the lines read so far belong to. */
enum kind { NOTHING, PARAGRAPH, ITEM, CODE };

struct writer {
    enum hg_markup_form form;
    struct hg_buf *out;
    enum kind kind;
    struct hg_buf block; /* text of the open paragraph or item */
    size_t depth;        /* of the item: columns before its bullet */
    char bullet[8];      /* of the item: "-", "12." */
    bool fenced;         /* inside ``` */
    bool in_table;
    struct hg_buf header; /* of the table: its cells, each with a NUL behind it */
};

/* ---- Characters ---- */

void hg_markup_roff(const char *text, bool at, struct hg_buf *out)
{
    for (; *text; text++) {
        if (at && (*text == '.' || *text == '\''))
            hg_buf_puts(out, "\\&");
        at = *text == '\n';
        if (*text == '\\')
            hg_buf_puts(out, "\\e");
        else if (*text == '-')
            hg_buf_puts(out, "\\-");
        else
            hg_buf_append(out, text, 1);
    }
}

/* n bytes of text between the marks of bold type, which a terminal's text has around code only. */
static void append_strong(struct writer *w, const char *text, size_t n, const char *mark,
                          struct hg_buf *out)
{
    struct hg_buf part = HG_BUF_INIT;

    hg_buf_append(&part, text, n);
    if (w->form == HG_MARKUP_MAN) {
        hg_buf_puts(out, "\\fB");
        hg_markup_roff(hg_buf_str(&part), false, out);
        hg_buf_puts(out, "\\fR");
    } else {
        hg_buf_printf(out, "%s%s%s", mark, hg_buf_str(&part), mark);
    }
    hg_buf_done(&part);
}

/* `code`, **bold**, [text](address) of a run of text; the rest as it is. quote: what stands around code on a terminal. */
static void append_inline(struct writer *w, const char *text, const char *quote, struct hg_buf *out)
{
    for (const char *end; *text;) {
        char one[2] = { *text, '\0' };

        if (*text == '`' && (end = strchr(text + 1, '`'))) {
            append_strong(w, text + 1, (size_t)(end - text - 1), quote, out);
            text = end + 1;
        } else if (strncmp(text, "**", 2) == 0 && (end = strstr(text + 2, "**"))) {
            append_strong(w, text + 2, (size_t)(end - text - 2), "", out);
            text = end + 2;
        } else if (*text == '*' && isalpha((unsigned char)text[1]) &&
                   (end = strchr(text + 1, '*'))) {
            append_strong(w, text + 1, (size_t)(end - text - 1), "", out);
            text = end + 1;
        } else if (*text == '[' && (end = strstr(text, "](")) && strchr(end, ')')) {
            struct hg_buf part = HG_BUF_INIT;

            hg_buf_append(&part, text + 1, (size_t)(end - text - 1));
            append_inline(w, hg_buf_str(&part), quote, out);
            hg_buf_done(&part);
            text = strchr(end, ')') + 1;
        } else {
            if (w->form == HG_MARKUP_MAN)
                hg_markup_roff(one, !out->len, out);
            else
                hg_buf_puts(out, one);
            text++;
        }
    }
}

/* ---- Blocks ---- */

/* man(1) wants no paragraph's beginning right after a heading. */
static const char *man_paragraph(struct writer *w)
{
    const char *last = hg_buf_str(w->out);

    for (const char *p = last; (p = strchr(p, '\n')) && p[1]; last = ++p)
        ;
    return strncmp(last, ".SH ", 4) == 0 ? "" : ".PP\n";
}

static void append_indented(struct writer *w, size_t indent, const char *text)
{
    for (size_t i = 0; i < indent; i++)
        hg_buf_puts(w->out, " ");
    hg_wrapped_append(text, HG_MARKUP_COLUMNS, indent, indent, w->out);
}

static void write_item(struct writer *w, const char *text)
{
    size_t indent = w->depth + strlen(w->bullet) + 1;

    if (w->form == HG_MARKUP_MAN) {
        hg_buf_printf(w->out, ".IP \"%*s%s\" %zu\n%s\n", (int)w->depth, "",
                      w->bullet[0] == '-' ? "\\(bu" : w->bullet, indent + 1, text);
        return;
    }
    hg_buf_printf(w->out, "%*s%s ", (int)w->depth, "", w->bullet);
    hg_wrapped_append(text, HG_MARKUP_COLUMNS, indent, indent, w->out);
}

/* End what is open. */
static void flush(struct writer *w)
{
    struct hg_buf text = HG_BUF_INIT;

    if (w->kind == CODE)
        hg_buf_puts(w->out, w->form == HG_MARKUP_MAN ? ".EE\n.RE\n" : "\n");
    append_inline(w, hg_buf_str(&w->block), "`", &text);
    if (w->kind == ITEM) {
        write_item(w, hg_buf_str(&text));
    } else if (w->kind == PARAGRAPH && w->form == HG_MARKUP_MAN) {
        hg_buf_printf(w->out, "%s%s\n", man_paragraph(w), hg_buf_str(&text));
    } else if (w->kind == PARAGRAPH) {
        append_indented(w, 0, hg_buf_str(&text));
        hg_buf_puts(w->out, "\n");
    }
    hg_buf_clear(&w->block);
    hg_buf_done(&text);
    w->kind = NOTHING;
}

/* After the items of a list, or the rows of a table. */
static void end_list(struct writer *w)
{
    if (w->form == HG_MARKUP_TEXT && w->out->len > 1 && w->out->data[w->out->len - 2] != '\n')
        hg_buf_puts(w->out, "\n");
}

static void write_heading(struct writer *w, const char *title)
{
    struct hg_buf text = HG_BUF_INIT;

    append_inline(w, title, "", &text);
    if (w->form == HG_MARKUP_MAN)
        hg_buf_printf(w->out, ".SH %s\n", hg_buf_str(&text));
    else
        hg_buf_printf(w->out, "%s\n\n", hg_buf_str(&text));
    hg_buf_done(&text);
}

static void write_code(struct writer *w, const char *line)
{
    if (w->kind != CODE) {
        flush(w);
        if (w->form == HG_MARKUP_MAN)
            hg_buf_printf(w->out, "%s.RS 4\n.EX\n", man_paragraph(w));
        w->kind = CODE;
    }
    if (w->form == HG_MARKUP_MAN)
        hg_markup_roff(line, true, w->out);
    else
        hg_buf_printf(w->out, "    %s", line);
    hg_buf_puts(w->out, "\n");
}

/* ---- Tables ---- */

/* Split "| a | b |" into its cells, in place. */
static size_t split_row(char *line, char *cells[CELLS_MAX])
{
    size_t n = 0;

    for (char *p = line + 1, *end; n < CELLS_MAX && *p; p = end + 1) {
        end = strstr(p, " |");
        if (!end)
            break;
        *end++ = '\0';
        while (*p == ' ')
            p++;
        cells[n++] = p;
    }
    return n;
}

/* What stands between the first cell and the last: "integer, 1 to 3; in the id: yes". */
static void append_middle(struct writer *w, char *const *cells, size_t n, struct hg_buf *out)
{
    const char *name = hg_buf_str(&w->header);

    for (size_t i = 1; i + 1 < n; i++) {
        name += strlen(name) + 1;
        hg_buf_puts(out, i == 1 ? " (" : "; ");
        if (strcmp(name, "type") != 0)
            hg_buf_printf(out, "%s: ", name);
        append_inline(w, cells[i], "", out);
    }
    if (n > 2)
        hg_buf_puts(out, ")");
}

static void write_row(struct writer *w, char *line)
{
    struct hg_buf term = HG_BUF_INIT, text = HG_BUF_INIT;
    char *cells[CELLS_MAX];
    size_t n = split_row(line, cells);

    if (!w->in_table) {
        flush(w);
        hg_buf_clear(&w->header);
        for (size_t i = 0; i < n; i++)
            hg_buf_append(&w->header, cells[i], strlen(cells[i]) + 1);
        w->in_table = true;
    } else if (n && strspn(cells[0], "-") < 3) {
        append_inline(w, cells[0], "", &term);
        append_middle(w, cells, n, &term);
        append_inline(w, n > 1 ? cells[n - 1] : "", "`", &text);
        if (w->form == HG_MARKUP_MAN) {
            hg_buf_printf(w->out, ".TP\n%s\n%s\n", hg_buf_str(&term), hg_buf_str(&text));
        } else {
            append_indented(w, 2, hg_buf_str(&term));
            append_indented(w, 8, hg_buf_str(&text));
        }
    }
    hg_buf_done(&term);
    hg_buf_done(&text);
}

/* ---- Pages ---- */

/* Bytes of "- " or "12. " at the beginning of a line, else 0. */
static size_t bullet(const char *line)
{
    size_t digits = strspn(line, "0123456789");

    if (digits && strncmp(line + digits, ". ", 2) == 0)
        return digits + 2;
    return strncmp(line, "- ", 2) == 0 ? 2 : 0;
}

/* A line that is neither code nor part of a table. */
static void read_prose(struct writer *w, const char *line)
{
    size_t blanks = strspn(line, " "), mark = bullet(line + blanks);

    if (line[0] == '#') {
        flush(w);
        end_list(w);
        write_heading(w, line + strspn(line, "# "));
        return;
    }
    if (mark) {
        flush(w);
        w->kind = ITEM;
        w->depth = blanks;
        snprintf(w->bullet, sizeof w->bullet, "%.*s", (int)mark - 1, line + blanks);
    } else if (w->kind == NOTHING) {
        end_list(w);
        w->kind = PARAGRAPH;
    } else {
        hg_buf_puts(&w->block, " ");
    }
    hg_buf_puts(&w->block, line + blanks + mark);
}

static void read_line(struct writer *w, char *line)
{
    bool list;

    if (strncmp(line, "```", 3) == 0) {
        flush(w);
        w->fenced = !w->fenced;
    } else if (w->fenced) {
        write_code(w, line);
    } else if (strncmp(line, "    ", 4) == 0 && (w->kind == NOTHING || w->kind == CODE)) {
        write_code(w, line + 4);
    } else if (line[0] == '|') {
        write_row(w, line);
    } else if (!line[0] || strncmp(line, "<!--", 4) == 0) {
        list = w->kind == ITEM || w->in_table;
        flush(w);
        if (list)
            end_list(w);
        w->in_table = false;
    } else {
        if (w->kind == CODE)
            flush(w);
        read_prose(w, line);
    }
}

static void append_lines(const char *page, size_t len, enum hg_markup_form form, struct hg_buf *out)
{
    struct writer w = { .form = form, .out = out };
    struct hg_buf line = HG_BUF_INIT;

    for (const char *end = page + len; page < end; page++) {
        size_t n = strcspn(page, "\n");

        n = n < (size_t)(end - page) ? n : (size_t)(end - page);
        hg_buf_clear(&line);
        hg_buf_append(&line, page, n);
        hg_buf_append(&line, "", 1);
        read_line(&w, line.data);
        page += n;
    }
    flush(&w);
    hg_buf_done(&w.block);
    hg_buf_done(&w.header);
    hg_buf_done(&line);
}

void hg_markup_append(const char *page, enum hg_markup_form form, struct hg_buf *out)
{
    append_lines(page, strlen(page), form, out);
}

/* The line "## TITLE" of a page, NULL if it has none. */
static const char *find_heading(const char *page, const char *title)
{
    size_t n = strlen(title);

    for (const char *p = page; (p = strstr(p, "\n## ")); p += 4)
        if (strncmp(p + 4, title, n) == 0 && p[4 + n] == '\n')
            return p + 1;
    return NULL;
}

bool hg_markup_sections(const char *page, const char *first, const char *last,
                        enum hg_markup_form form, struct hg_buf *out)
{
    const char *from = first ? find_heading(page, first) : strchr(page, '\n');
    const char *to = last && *last ? find_heading(page, last) : from, *end;

    if (!from || !to || to < from)
        return false;
    end = first || last ? strstr(to, "\n## ") : NULL;
    if (!first && form == HG_MARKUP_MAN)
        hg_buf_puts(out, ".SH Description\n");
    append_lines(from, end ? (size_t)(end - from) : strlen(from), form, out);
    while (form == HG_MARKUP_TEXT && out->len > 1 && out->data[out->len - 2] == '\n')
        out->data[--out->len] = '\0';
    return true;
}
