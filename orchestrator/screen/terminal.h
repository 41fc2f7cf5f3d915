/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SCREEN_TERMINAL_H
#define HG_SCREEN_TERMINAL_H

#include "screen/canvas.h"

/* The terminal of this process, as a full screen on stderr with keys from stdin. There is one. */

enum {
    HG_PRESS_NONE = -1,
    HG_PRESS_UP = 0x110000, /* other keys are characters */
    HG_PRESS_DOWN,
    HG_PRESS_LEFT,
    HG_PRESS_RIGHT,
    HG_PRESS_PAGE_UP,
    HG_PRESS_PAGE_DOWN,
    HG_PRESS_HOME,
    HG_PRESS_END,
    HG_PRESS_ENTER,
    HG_PRESS_ESCAPE,
    HG_PRESS_ERASE,
    HG_PRESS_SIZE,  /* the terminal has another size now */
    HG_PRESS_CLICK, /* the left button of the mouse; hg_terminal_pointer says where */
    HG_PRESS_WHEEL_UP,
    HG_PRESS_WHEEL_DOWN,
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

/* The next key, or HG_PRESS_NONE: after wait_s seconds without one, when a signal came, or when there is something to read at fd (-1: none). */
int hg_terminal_key(double wait_s, int fd);

/* Where the mouse was at its last event. */
void hg_terminal_pointer(int *line, int *column);

#endif
