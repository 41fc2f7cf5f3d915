/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_ERR_H
#define HG_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

struct hg_buf;

/* Kinds of failure. A kind exists because some caller branches on it. */
enum hg_err_code {
    HG_E_NONE = 0,
    HG_E_USAGE,     /* the command line is wrong */
    HG_E_INPUT,     /* a file or value written by a person is wrong */
    HG_E_ENV,       /* the surroundings fail: Slurm, disk, permission, memory */
    HG_E_AGAIN,     /* certain failure, the same call may succeed later */
    HG_E_AMBIGUOUS, /* the outcome is not known: look before trying again */
    HG_E_REFUSED,   /* another program said no for good */
    HG_E_NOTFOUND,  /* the thing asked for does not exist */
    HG_E_BUG,       /* hpcgrid contradicts itself */
};

/* One failure with its place and next step. Lives on the caller's stack and owns nothing. Start it as HG_ERR_INIT.
 * The first error wins: setting an error that is already set changes nothing. */
struct hg_err {
    enum hg_err_code code;
    int line, column;  /* 1-based; 0 = unknown */
    char file[256];    /* "" = no file */
    char pointer[192]; /* RFC 6901 pointer into the file, "" = none */
    char text[1024];   /* what is wrong: thing, value found, value wanted */
    char hint[512];    /* what to try next, "" = nothing to add */
};
#define HG_ERR_INIT       \
    {                     \
        .code = HG_E_NONE \
    }

#define HG_ERR_REASON_MAX 128

/* Record a failure. Returns -1, so that a failing branch is one statement. err may be NULL. */
int hg_err_set(struct hg_err *err, enum hg_err_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with ": <reason of errno>" behind the text; code ENV. */
int hg_err_sys(struct hg_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* strerror(sys), and where the process has too many files open how many it may: what to raise. Returns
 * out. */
const char *hg_err_reason(int sys, char out[static HG_ERR_REASON_MAX]);

/* Put "<context>: " in front of an error that is set. Returns -1. */
int hg_err_wrap(struct hg_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Say what to try; replaces an earlier hint. Returns -1. */
int hg_err_hint(struct hg_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Say where: file and JSON pointer; line and column are filled by whoever has the text. Returns -1.
 */
int hg_err_at(struct hg_err *err, const char *file, const char *pointer);

/* Process exit code of a kind: 2 usage, 3 input, 4 environment, 5 bug. */
int hg_err_exit_code(enum hg_err_code code);

/* Append "file:line:col: error: /pointer: text\n  hint\n", leaving out what is not known. */
void hg_err_format(const struct hg_err *err, struct hg_buf *out);

/* Several errors, for files written by people: all problems are reported, not only the first. */
struct hg_errs {
    struct hg_err *items;
    size_t n, cap;
    size_t dropped; /* beyond HG_ERRS_MAX */
};
#define HG_ERRS_INIT \
    {                \
        0            \
    }
#define HG_ERRS_MAX 50

/* A fresh error to fill, kept in the list; when the list is full, a scratch error that is counted as dropped.
 * The pointer dies with the next call of hg_errs_next. */
struct hg_err *hg_errs_next(struct hg_errs *errs);

/* Copy a set error into the list; an unset one is ignored. Returns -1 if it was set, else 0. */
int hg_errs_add(struct hg_errs *errs, const struct hg_err *err);

/* Copy all of another list. */
void hg_errs_append(struct hg_errs *errs, const struct hg_errs *more);

/* Sort by file, line and column; the order of equal places is kept. */
void hg_errs_sort(struct hg_errs *errs);

/* Append every error as hg_err_format does, then a line that counts the dropped ones. */
void hg_errs_format(const struct hg_errs *errs, struct hg_buf *out);

void hg_errs_done(struct hg_errs *errs);

#endif
