/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/signals.h"

#include <stddef.h>

volatile sig_atomic_t hg_signals_stop;

void (*volatile hg_signals_last)(void);

static void on_signal(int number)
{
    if (hg_signals_stop) {
        if (hg_signals_last)
            hg_signals_last();
        signal(number, SIG_DFL);
        raise(number); /* it comes when this handler returns */
    }
    hg_signals_stop = number;
}

void hg_signals_catch(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    hg_signals_stop = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int hg_signals_code(void)
{
    return 128 + (hg_signals_stop ? hg_signals_stop : SIGINT);
}
