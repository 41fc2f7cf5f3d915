/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_BAR_H
#define HG_BASE_BAR_H

#include <stdbool.h>
#include <stdint.h>

/* Progress of something long: one line on stderr, if that is a terminal. It appears after two seconds (HPCGRID_BAR_S: another
 * number) and is removed at the end. One bar at a time: one that begins within another is not shown, and its steps do not count.
 *
 *     hg_bar_begin("cells", n);
 *     for (...) { hg_bar_step(); ... }
 *     hg_bar_end();
 */

/* Off at first, and while a command itself draws on the terminal. */
void hg_bar_allow(bool allowed);

/* what: the things that are counted, a literal. total: 0 if it is not known. */
void hg_bar_begin(const char *what, uint64_t total);
void hg_bar_end(void);

/* Before anything else is written to the terminal. */
void hg_bar_hide(void);

/* One more is done. The clock is read about as often as the bar changes, not at every step. */
extern uint64_t hg_bar_done, hg_bar_next;
void hg_bar_look(void);
static inline void hg_bar_step(void)
{
    if (++hg_bar_done >= hg_bar_next)
        hg_bar_look();
}

#endif
