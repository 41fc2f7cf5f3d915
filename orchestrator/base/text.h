/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_TEXT_H
#define HG_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* The word of a list that a mistyped one most likely meant: smallest edit distance (insert, delete,
 * replace or swap neighbours), at most a third of the word's length and at least 1. NULL if none is
 * near. */
const char *hg_text_nearest(const char *word, const char *const *known, size_t n);

/* Hint for a wrong word: "did you mean \"ddp\"?" or "known: a, b, c"; both when a near one exists.
 */
void hg_text_suggest(struct hg_err *err, const char *word, const char *const *known, size_t n);

/* Wall time: "HH:MM:SS", "D-HH:MM:SS", "90m" (s m h d). Anything that could be read two ways
 * ("01:30", "90") is refused, and so are 1e9 seconds and more. Seconds into *seconds. */
int hg_text_duration_parse(const char *text, double *seconds, struct hg_err *err);
#define HG_TEXT_DURATION_PATTERN \
    "^([0-9]{1,4}-)?[0-9]{1,5}:[0-9]{1,2}:[0-9]{1,2}$|^[0-9]+([.][0-9]*)?[smhd]$"

/* "D-HH:MM:SS" or "HH:MM:SS", whole seconds rounded up: what Slurm reads. */
void hg_text_duration_slurm(double seconds, char out[static 32]);

/* For people: "0.42 s", "41.3 s", "3m 07s", "2h 05m", "3d 04h", "over 11574d 01h" (1e9 seconds). */
void hg_text_duration_format(double seconds, char out[static 32]);

/* Memory: "64G", "512M", "1T", "300K"; powers of 1024; a bare number is refused. Bytes into
 * *bytes, 1 to 2^63 - 1. */
int hg_text_size_parse(const char *text, uint64_t *bytes, struct hg_err *err);
#define HG_TEXT_SIZE_PATTERN "^[0-9]+([.][0-9]*)?[KMGTkmgt]$"

/* "1.5 GiB" */
void hg_text_size_format(uint64_t bytes, char out[static 32]);

/* Names that become file names, job names and columns: [A-Za-z0-9._-]{1,64}, not starting with "."
 * or "-". */
bool hg_text_is_name(const char *text);
#define HG_TEXT_NAME_PATTERN "^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$"

/* Are the first len bytes of text one of the words? Their list ends with NULL. */
bool hg_text_is_one_of(const char *text, size_t len, const char *const *words);

/* Append a word so that a shell reads it back byte for byte, in single quotes. */
void hg_text_quote(const char *word, struct hg_buf *out);

/* The same, without quotes where the word needs none. */
void hg_text_quote_if_needed(const char *word, struct hg_buf *out);

bool hg_text_ends_with(const char *text, const char *end);

/* Does the text, which is not at its end, begin with something that steers what shows it: a control character (also those of two bytes
 * in UTF-8, and such a byte by itself), one that changes the direction of writing, a separator of lines, or U+FFFE or U+FFFF, which XML
 * forbids? Returns its length, else 0. */
size_t hg_text_control(const char *text);

/* Append n bytes of a text that ends with NUL there or later; those characters become "\x1b" or "\u202e": what comes from outside must
 * not steer a terminal. */
void hg_text_escape(const char *text, size_t n, struct hg_buf *out);

/* The same, but tabs stay, and so do ends of lines, which a carriage return is, too. */
void hg_text_escape_lines(const char *text, size_t n, struct hg_buf *out);

/* Sets err to INPUT, "0 is out of range; 1 to 64". Returns -1. */
int hg_text_out_of_range(double v, double min, double max, struct hg_err *err);

/* units * 10^k, rounded as strtod rounds. */
double hg_text_decimal(uint64_t units, int k);

/* A double as JSON and JavaScript print it (ECMA-262 Number::toString, used by RFC 8785): shortest
 * digits that read back the same. v must be finite. Returns the length. */
size_t hg_text_number_format(double v, char out[static 32]);

/* A whole number in decimal, with NUL. Returns the length. */
size_t hg_text_integer_format(long long v, char out[static 32]);

/* The character that text, which is not at its end, begins with: its code point into *cp. Returns the
 * bytes it takes; a byte that is no UTF-8 is taken by itself, as U+FFFD. */
size_t hg_text_utf8_next(const char *text, uint32_t *cp);

/* How many of n bytes are whole characters, if the last one lacks bytes that may follow yet: n, or up to 3 less. */
size_t hg_text_utf8_whole(const char *text, size_t n);

/* Columns that a UTF-8 text takes on a terminal (wide characters count 2, combining ones 0). Bytes
 * that are no UTF-8 count 1 each. */
size_t hg_text_width(const char *text);

/* The end of a counted noun: "" for 1, "s" for any other number. */
const char *hg_text_s(unsigned long long n);

/* n random bytes as 2n lower-case hex digits and a NUL, from getrandom(2). */
void hg_text_random_hex(size_t n, char *out);

/* The first host of a Slurm node list: "a100-[02-04,7],b1" gives "a100-02". False if there is none. */
bool hg_text_first_host(const char *nodes, char *out, size_t size);

/* Call each with every host of a Slurm node list, in its order: "a100-[02-04,7],b1" gives "a100-02", "a100-03",
 * "a100-04", "a100-7", "b1". Lists in two brackets of one name are multiplied, the first varies slowest. each
 * returns 0 to go on. Returns what it returned, or -1 if this is no such list or one of more than 65536 hosts. */
int hg_text_each_host(const char *nodes, int (*each)(void *context, const char *host),
                      void *context);

#endif
