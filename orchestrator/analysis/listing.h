/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_ANALYSIS_LISTING_H
#define HG_ANALYSIS_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "analysis/style.h"

/* A plain table with a title: what is known about a report besides the places of its tables. An
 * analysis fills listings, and every form of the report writes them down without knowing what they
 * are about. */

enum hg_datum_kind { HG_DATUM_NONE, HG_DATUM_TEXT, HG_DATUM_NUMBER, HG_DATUM_SECONDS };

struct hg_datum {
    enum hg_datum_kind kind;
    double v;     /* NUMBER, SECONDS; NaN reads "–" */
    int decimals; /* for people; JSON has all digits */
    char *text;   /* TEXT */
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
    size_t n_keys; /* first columns that say what a row is about: they stand wherever the others are
                      continued; 0: the first one */
    struct {
        struct hg_datum *items; /* row by row, columns.n to a row */
        size_t n, cap;
    } data;
    struct {
        char **items; /* sentences below it */
        size_t n, cap;
    } notes;
    bool failed; /* memory is gone */
};

struct hg_listings {
    struct hg_listing *items;
    size_t n, cap;
};

/* A new empty listing at the end. Never fails to give one: without memory it is the scratch listing
 * `*spare`, marked failed (zero it before; hg_listing_done it). The pointer dies with the next add. */
struct hg_listing *hg_listing_add(struct hg_listings *list, const char *name, const char *title,
                                  struct hg_listing *spare);

/* Columns first, then data row by row, from left to right. Texts are copied. */
void hg_listing_column(struct hg_listing *l, const char *name, const char *title, bool left);
void hg_listing_text(struct hg_listing *l, const char *text);
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

/* Append what a datum reads like, "" for NONE; texts as they are, not escaped. */
void hg_datum_format(const struct hg_datum *d, const struct hg_style *style, struct hg_buf *out);

/* Write a listing down. Text fits the width; a failed listing marks out failed. */
void hg_listing_write_text(const struct hg_listing *l, const struct hg_style *style, size_t width,
                           struct hg_buf *out);
void hg_listing_write_md(const struct hg_listing *l, const struct hg_style *style,
                         struct hg_buf *out);

/* {"name", "title", "rows": [{column: value}], "notes"}; a new reference. Numbers have all digits,
 * NaN is null. */
json_t *hg_listing_encode(const struct hg_listing *l);

#endif
