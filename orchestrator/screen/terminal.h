/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SCREEN_TERMINAL_H
#define HG_SCREEN_TERMINAL_H

#include "screen/canvas.h"

/* The terminal of this process, as a full screen on stderr with keys from stdin. There is one. */

enum {
    HG_KEY_NONE = -1,
    HG_KEY_UP = 0x110000, /* other keys are characters */
    HG_KEY_DOWN,
    HG_KEY_LEFT,
    HG_KEY_RIGHT,
    HG_KEY_PAGE_UP,
    HG_KEY_PAGE_DOWN,
    HG_KEY_HOME,
    HG_KEY_END,
    HG_KEY_ENTER,
    HG_KEY_ESCAPE,
    HG_KEY_ERASE,
    HG_KEY_SIZE, /* the terminal has another size now */
};

/* Are stdin and stderr a terminal that can be one? Not if TERM is dumb, hpcgrid was built without ncurses, or it is in the background. */
bool hg_terminal_is_there(void);

/* Take it. False: TERM is not known. */
bool hg_terminal_open(void);

/* Give it back as it was. */
void hg_terminal_close(void);

/* The same from a signal handler, when the process is about to end. */
void hg_terminal_abandon(void);

/* An empty canvas of its size. */
void hg_terminal_canvas(struct hg_canvas *c);

/* Show a canvas: what has changed is sent. */
void hg_terminal_show(const struct hg_canvas *c);

/* The next key, or HG_KEY_NONE: after wait_s seconds without one, when a signal came, or when there is something to read at fd (-1: none). */
int hg_terminal_key(double wait_s, int fd);

#endif
