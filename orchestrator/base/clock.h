/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_CLOCK_H
#define HG_BASE_CLOCK_H

/* Seconds since 1970. Where the environment has HPCGRID_NOW (seconds), that fixed time: tests
 * compare whole outputs. */
double hg_clock_wall_s(void);

/* Seconds on a clock that never jumps; only differences mean something. All durations come from it.
 */
double hg_clock_mono_s(void);

/* Sleep; a signal ends it early. Returns 0 when the whole time passed, -1 on a signal. */
int hg_clock_sleep_s(double seconds);

/* How far ahead a clock was that said wall_s when it made this file, seconds: by the file's time stamp, which a file server gives.
 * 0 if they agree within 30 s, if there is no file, or if HPCGRID_NOW is set. */
double hg_clock_ahead_s(double wall_s, const char *path);

/* "2026-11-20T12:34:56Z" */
void hg_clock_format_utc(double wall_s, char out[static 21]);

#endif
