/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/boundaries.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/vec.h"
#include "analysis/differences.h"
#include "analysis/groups.h"

#define NOTES_MAX 20

static void sort_entries(struct hg_boundaries *b)
{
    size_t n = b->r->n_entries, configs = 0;
    size_t *of_entry = hg_alloc((n + 1) * sizeof *of_entry);

    for (size_t i = 0; i < n; i++) {
        const struct hg_report_entry *e = &b->r->entries[i];

        configs = e->config >= configs ? e->config + 1 : configs;
        of_entry[i] = e->shown && !e->state ? e->config : HG_MAP_NONE;
    }
    b->begin = hg_alloc_zeroed(configs + 2, sizeof *b->begin);
    b->entries = hg_alloc((n + 1) * sizeof *b->entries);
    hg_groups_sort(of_entry, n, configs, b->begin, b->entries);
    free(of_entry);
}

/* The results of a row in a set; free its runs. */
static struct hg_side side_of(const struct hg_boundaries *b, const struct hg_table *t, size_t row,
                              size_t set)
{
    struct hg_side side = { NULL, 0 };

    for (size_t column = 0; column < t->n_columns && !side.n; column++) {
        const struct hg_point *p = hg_table_point(t, row, column);
        const size_t *items;

        if (p->n == 0)
            continue;
        items = b->entries + b->begin[p->config];
        if (b->r->entries[*items].set != set)
            continue;
        side.runs = hg_alloc(p->n * sizeof *side.runs);
        for (; side.n < p->n; side.n++)
            side.runs[side.n] = b->r->entries[items[side.n]].result;
    }
    return side;
}

/* ---- One boundary ---- */

static void append_once(struct hg_buf *out, const char *text)
{
    if (out->len == 0 || !strstr(hg_buf_str(out), text))
        hg_buf_printf(out, "%s%s", out->len ? ", " : "", text);
}

static void append_difference(void *context, const struct hg_difference *d)
{
    struct hg_buf text = HG_BUF_INIT;

    if (strcmp(d->key, "revision") == 0) /* that is what one follows */
        return;
    hg_buf_printf(&text, "%s ", d->key);
    hg_differences_value(d->mine, &text);
    hg_buf_puts(&text, " (before ");
    hg_differences_value(d->theirs, &text);
    hg_buf_puts(&text, ")");
    append_once(context, hg_buf_str(&text));
    hg_buf_done(&text);
}

static void append_mixed(void *context, const struct hg_difference *d)
{
    char *text = hg_str_printf("its runs differ in %s", d->key);

    append_once(context, text);
    free(text);
}

static void append_doubts(const struct hg_side *own, struct hg_buf *out)
{
    const char *what;
    json_t *value;

    for (size_t i = 0; i < own->n; i++)
        json_object_foreach((json_t *)own->runs[i]->doubts, what, value) {
            char *text = hg_str_printf("%s%s", what, json_string_value(value));

            if (out->len == 0 || !strstr(hg_buf_str(out), what)) /* one run is enough to doubt it */
                append_once(out, text);
            free(text);
        }
}

static void append_samples(const struct hg_boundaries *b, const struct hg_side *own,
                           const struct hg_side *before, struct hg_buf *out)
{
    double excess = hg_differences_samples(b->r, own, before);

    if (isnan(excess))
        return;
    hg_buf_puts(out, out->len ? ", counts " : "counts ");
    hg_number_append(&b->r->style, excess, 2, out);
    hg_buf_puts(out, " times the samples for the same work");
}

bool hg_boundaries_text(const struct hg_boundaries *b, const struct hg_table *t, size_t row,
                        size_t set, struct hg_buf *out)
{
    struct hg_side own = side_of(b, t, row, set), before = { NULL, 0 };
    struct hg_buf text = HG_BUF_INIT;
    bool differs;

    for (size_t s = set; own.n && s-- > 0 && !before.n;)
        before = side_of(b, t, row, s);
    if (before.n) {
        hg_differences_each(b->r, &own, &before, append_difference, &text);
        hg_differences_within(b->r, &own, append_mixed, &text);
        append_samples(b, &own, &before, &text);
        append_doubts(&own, &text);
    }
    differs = text.len > 0;
    hg_buf_puts(out, hg_buf_str(&text));
    hg_buf_done(&text);
    free(own.runs);
    free(before.runs);
    return differs;
}

size_t hg_boundaries_last(const struct hg_boundaries *b, const struct hg_table *t, size_t row,
                          size_t from)
{
    struct hg_buf text = HG_BUF_INIT;
    size_t last = SIZE_MAX;

    for (size_t set = b->r->n_sets; b->notes.n && set-- > from && last == SIZE_MAX;)
        if (hg_boundaries_text(b, t, row, set, &text))
            last = set;
    hg_buf_done(&text);
    return last;
}

/* ---- All of them ---- */

static void add_note(struct hg_boundaries *b, size_t set, const char *differences)
{
    char *text = hg_str_printf("%s: %s", b->r->labels[set], differences);
    size_t at = hg_map_put(&b->index, text, strlen(text), b->notes.n);

    if (at == b->notes.n) {
        HG_VEC_PUSH(&b->notes);
        b->notes.items[at].text = text;
        b->notes.items[at].cells = 0;
    } else {
        free(text);
    }
    b->notes.items[at].cells++;
}

void hg_boundaries_open(const struct hg_report *r, struct hg_boundaries *b)
{
    struct hg_buf text = HG_BUF_INIT;

    *b = (struct hg_boundaries){ .r = r };
    sort_entries(b);
    for (size_t set = 1; set < r->n_sets; set++)
        for (size_t i = 0; i < r->tables.n; i++)
            for (size_t row = 0; row < r->tables.items[i].n_rows; row++) {
                hg_buf_clear(&text);
                if (hg_boundaries_text(b, &r->tables.items[i], row, set, &text))
                    add_note(b, set, hg_buf_str(&text));
            }
    hg_buf_done(&text);
}

void hg_boundaries_close(struct hg_boundaries *b)
{
    for (size_t i = 0; i < b->notes.n; i++)
        free(b->notes.items[i].text);
    HG_VEC_DONE(&b->notes);
    hg_map_done(&b->index);
    free(b->begin);
    free(b->entries);
}

void hg_boundaries_list(const struct hg_boundaries *b, size_t cells, struct hg_listing *l)
{
    for (size_t i = 0; i < b->notes.n && i < NOTES_MAX; i++) {
        size_t n = b->notes.items[i].cells;
        char *where = n < cells ? hg_str_printf(" (%zu of %zu cells)", n, cells) : hg_strdup("");
        char *note = hg_str_printf("not like the set before: %s%s", b->notes.items[i].text, where);

        hg_listing_note(l, note);
        free(where);
        free(note);
    }
    if (b->notes.n > NOTES_MAX) {
        char *note = hg_str_printf("and %zu more", b->notes.n - NOTES_MAX);

        hg_listing_note(l, note);
        free(note);
    }
}
