/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_COLOUR_H
#define HG_BASE_COLOUR_H

#include <stdbool.h>

#include "base/buf.h"

/* Colours of what is written to a terminal, by meaning. Off where the descriptor is not a terminal, NO_COLOR is set or TERM is dumb,
 * unless --color says otherwise; off for descriptor -1. Texts for files are made with -1. */
enum hg_colour {
    HG_COLOUR_GOOD,
    HG_COLOUR_BAD,
    HG_COLOUR_WARNING,
    HG_COLOUR_ACTIVE,
    HG_COLOUR_BEST
};

/* "auto", "always" or "never"; false: another word. */
bool hg_colour_set(const char *when);

/* What begins and ends a coloured text on the descriptor; "" if colours are off. */
const char *hg_colour_start(int fd, enum hg_colour colour);
const char *hg_colour_stop(int fd);

/* Append a text that may have such colours for the descriptor in it; whatever else could steer a terminal is shown instead
 * (hg_text_escape_lines). */
void hg_colour_append_clean(int fd, const char *text, struct hg_buf *out);

/* Append a line of n bytes; the first "error:" or "warning:" in it is coloured. */
void hg_colour_append_message(int fd, const char *line, size_t n, struct hg_buf *out);

#endif
