/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_LISTING_H
#define HG_ANALYSIS_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "typeset/style.h"

/* A plain table with a title, as data: what a report says besides the places of its tables. Each analysis fills listings
 * (best.c, series.c, cost.c ...), and every form of the report writes them without knowing what they are about. */

enum hg_datum_kind { HG_DATUM_NONE, HG_DATUM_TEXT, HG_DATUM_NUMBER, HG_DATUM_SECONDS };

struct hg_datum {
    enum hg_datum_kind kind;
    double v;     /* NUMBER, SECONDS; NaN reads "–" */
    int decimals; /* for people; JSON has all digits */
    char *text;   /* TEXT */
    char *name;   /* what people read in its place; NULL: text */
};

struct hg_listing_column {
    char *name;  /* member of the JSON form: "serial_fraction" */
    char *title; /* for people: "serial fraction" */
    bool left;   /* words; numbers stand to the right */
};

struct hg_listing {
    char *name;  /* member of the JSON form: "best" */
    char *title; /* for people: "best strategy" */
    struct {
        struct hg_listing_column *items;
        size_t n, cap;
    } columns;
    /* First columns that say what a row is about: repeated where a wide listing is continued; 0: one. */
    size_t n_keys;
    struct {
        struct hg_datum *items; /* row by row, columns.n to a row */
        size_t n, cap;
    } data;
    struct {
        char **items; /* sentences below it */
        size_t n, cap;
    } notes;
};

struct hg_listings {
    struct hg_listing *items;
    size_t n, cap;
};

/* A new empty listing at the end. The pointer dies with the next add. */
struct hg_listing *hg_listing_add(struct hg_listings *list, const char *name, const char *title);

/* Columns first, then data row by row, from left to right. Texts are copied. */
void hg_listing_column(struct hg_listing *l, const char *name, const char *title, bool left);
void hg_listing_text(struct hg_listing *l, const char *text);
void hg_listing_cell(struct hg_listing *l, const char *id, const char *name);
void hg_listing_number(struct hg_listing *l, double v, int decimals);
void hg_listing_seconds(struct hg_listing *l, double s, int decimals);
void hg_listing_none(struct hg_listing *l);
void hg_listing_note(struct hg_listing *l, const char *text);

static inline size_t hg_listing_rows(const struct hg_listing *l)
{
    return l->columns.n ? l->data.n / l->columns.n : 0;
}

static inline const struct hg_datum *hg_listing_datum(const struct hg_listing *l, size_t row,
                                                      size_t column)
{
    return &l->data.items[row * l->columns.n + column];
}

void hg_listing_done(struct hg_listing *l);
void hg_listings_done(struct hg_listings *list);

/* Append a datum as people read it, nothing for NONE. Texts are not escaped. */
void hg_datum_format(const struct hg_datum *d, const struct hg_style *style, struct hg_buf *out);

#endif
