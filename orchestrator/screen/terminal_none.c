/* SPDX-License-Identifier: Apache-2.0 */
/* Without ncurses there is no full screen. */
#include "screen/terminal.h"

bool hg_terminal_is_there(void)
{
    return false;
}

bool hg_terminal_open(void)
{
    return false;
}

void hg_terminal_close(void)
{
}

void hg_terminal_abandon(void)
{
}

void hg_terminal_canvas(struct hg_canvas *c)
{
    hg_canvas_init(c, 0, 0, false);
}

void hg_terminal_show(const struct hg_canvas *c)
{
    (void)c;
}

void hg_terminal_pointer(int *line, int *column)
{
    *line = *column = 0;
}

int hg_terminal_key(double wait_s, int fd)
{
    (void)wait_s;
    (void)fd;
    return HG_PRESS_NONE;
}
