/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_WATCHDOG_H
#define HG_MATRIX_WATCHDOG_H

#include <stddef.h>

/* Ends the process when a jq expression does not end: a timer of processor time that ticks while it has holders. libjq cannot be
 * interrupted: it has no budget of steps and no callback while it runs, and a jump out of it would leave its memory in an
 * unknown state. So the process prints what was evaluated and ends with exit code 3. Nothing can have been submitted then,
 * because cells are made before anything is. An evaluation in a second process would need a round trip of some 10 us for
 * each of up to ten million values. */

/* What is evaluated, for the message. */
struct hg_watched {
    const char *place; /* "x.json:3:5: error: /exclude/0" */
    /* Writes which cell it is, a text of at most size bytes; may neither allocate nor lock. NULL: not known. */
    void (*describe)(const void *context, char *out, size_t size);
    const void *context;
};

/* Start and stop the timer; holders are counted. */
void hg_watchdog_hold(void);
void hg_watchdog_release(void);

/* An evaluation begins; more than a second of processor time, or too much memory, end the process. */
void hg_watchdog_begin(const struct hg_watched *watched);
void hg_watchdog_end(void);

#endif
