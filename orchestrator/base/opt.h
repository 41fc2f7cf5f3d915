/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_OPT_H
#define HG_BASE_OPT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum hg_opt_kind {
    HG_OPT_END = 0,
    HG_OPT_FLAG,   /* bool *: set to true; --no-NAME sets false */
    HG_OPT_STRING, /* const char **: lent, points into argv */
    HG_OPT_INT,    /* long *: within min..max */
    HG_OPT_REAL,   /* double *: within min..max */
    HG_OPT_LIST,   /* struct hg_opt_list *: may be given several times */
};

#define HG_OPT_LIST_MAX 64
#define HG_OPT_RARE '\1'

struct hg_opt_list {
    const char *items[HG_OPT_LIST_MAX + 1]; /* lent, point into argv; ends with NULL */
    size_t n;
};

/* One option. A table of them gives parsing, help and suggestions; end it with { 0 }. */
struct hg_opt {
    enum hg_opt_kind kind;
    char letter; /* 0: no short form; HG_OPT_RARE: none, and the help screen lists only its name */
    const char *name; /* without the dashes */
    void *target;     /* of the type the kind says; its value beforehand is the default */
    const char *arg;  /* name of the value in help; NULL for flags */
    const char *help; /* one line; NULL: none */
    double min, max;  /* INT and REAL; both 0 = any */
};

/* Parse argv[0..*argc). Options and operands may mix; "--" ends the options. On success
 * argv[0..*argc) holds the operands. Fails with USAGE: unknown option (with the nearest known one),
 * missing or wrong value. */
int hg_opt_parse(const struct hg_opt *opts, int *argc, char **argv, struct hg_err *err);

/* Append the words that the help of an option lists, with a blank before each: the help begins with "one of ", "some of " or
 * "all or ", and a colon or semicolon ends the list. Nothing if there is no list. */
void hg_opt_words(const struct hg_opt *o, struct hg_buf *out);

/* Append one line an option: "  -j, --json          print JSON". */
void hg_opt_help(const struct hg_opt *opts, struct hg_buf *out);

#endif
