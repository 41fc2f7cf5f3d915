/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_COCKPIT_H
#define HG_CMD_COCKPIT_H

#include "base/err.h"
#include "rundir/rundir.h"
#include "rundir/runstate.h"

/* A run on a full screen: what `watch`, `run`, `resume` and `retry` show on a terminal (screen/). Its keys run the commands hold, release,
 * cancel and retry, for the cells under the cursor or those shown. */
struct hg_cockpit;
#define HG_COCKPIT_WHYS 8 /* most reasons why cells wait */

extern bool hg_cockpit_wanted; /* --no-screen: lines */
#define HG_OPTION_SCREEN(target)                                                                  \
    {                                                                                             \
        HG_OPT_FLAG, 0, "screen", target, NULL, "full screen on a terminal (--no-screen: lines)", \
            0, 0                                                                                  \
    }

/* Is it wanted, and is there a terminal? */
bool hg_cockpit_possible(void);

/* Take the terminal; from now on, messages are shown there. NULL: it is not wanted, there is no terminal, or the run's cells cannot be
 * read (with a warning). rd and state are lent. */
struct hg_cockpit *hg_cockpit_open(const struct hg_rundir *rd, const struct hg_run_state *state);

/* Give the terminal back and print the messages that came meanwhile. NULL is fine. */
void hg_cockpit_close(struct hg_cockpit *c);

/* What is new of a run. Lent until the next call. */
struct hg_cockpit_news {
    const struct hg_run_state *state;
    struct hg_run_why whys[HG_COCKPIT_WHYS]; /* why cells wait */
    size_t n_whys;
    double away_s; /* for so long the scheduler has not answered; 0: it does */
    bool driven;   /* some process drives it; if not, the caller runs cells again */
};
void hg_cockpit_show(struct hg_cockpit *c, const struct hg_cockpit_news *news);

/* Show what there is and follow the keys for so many seconds, or until hg_signals_stop is set, as the key q does. Ends
 * before the time has passed when a command that may have changed the run has ended, or cells are to run again. */
void hg_cockpit_wait(struct hg_cockpit *c, double wait_s);

/* Cells to run again of a run that is not driven, said once: a selector, "": all; yours. NULL: none. */
char *hg_cockpit_retry(struct hg_cockpit *c);

#endif
