/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_SIGNALS_H
#define HG_CMD_SIGNALS_H

#include <signal.h>

/* The number of the signal that came; 0: none yet. */
extern volatile sig_atomic_t hg_signals_stop;

/* Called, if set, before a second signal, a crash or Ctrl-\ ends the process. */
extern void (*volatile hg_signals_last)(void);

/* Catch SIGINT, SIGTERM and SIGHUP (unless nohup has it ignored): the first sets hg_signals_stop, a second one ends the
 * process. A crash ends it as before, after hg_signals_last. */
void hg_signals_catch(void);

/* The exit code of a command that a signal has stopped: 128 + its number. */
int hg_signals_code(void);

#endif
