/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SCREEN_CANVAS_H
#define HG_SCREEN_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* What stands on a screen: one mark for each place, without a terminal. */

enum hg_ink {
    HG_INK_PLAIN,
    HG_INK_FAINT,
    HG_INK_STRONG,
    HG_INK_GOOD,    /* these on a coloured ground */
    HG_INK_RUNNING, /* a cell that runs */
    HG_INK_QUEUED,
    HG_INK_HELD,
    HG_INK_BAD,
    HG_INK_HEAT, /* the lowest of HG_HEATS values of a metric */
};
#define HG_HEATS 5
#define HG_INKS (HG_INK_HEAT + HG_HEATS)

struct hg_mark {
    uint32_t cp; /* 0: the right half of a wide character */
    uint8_t ink;
    bool cursor;
};

struct hg_canvas {
    struct hg_mark *marks; /* height times width */
    int width, height;
    bool utf8; /* else every mark is ASCII */
};

/* An empty canvas. hg_canvas_done it. */
void hg_canvas_init(struct hg_canvas *c, int width, int height, bool utf8);
void hg_canvas_done(struct hg_canvas *c);

/* Put a text on a line, at most max columns of it; control characters are left out, and so is what is outside. Returns the column behind
 * it. */
int hg_canvas_put(struct hg_canvas *c, int line, int column, int max, enum hg_ink ink,
                  const char *text);

/* The same, printf-like, up to the end of the line. */
int hg_canvas_printf(struct hg_canvas *c, int line, int column, enum hg_ink ink, const char *fmt,
                     ...) __attribute__((format(printf, 5, 6)));

/* Append the lines as text, without spaces at their ends: what tests compare. */
void hg_canvas_text(const struct hg_canvas *c, struct hg_buf *out);

/* Append a character as UTF-8. */
void hg_canvas_append(uint32_t cp, struct hg_buf *out);

#endif
