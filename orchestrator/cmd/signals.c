/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/signals.h"

#include <stddef.h>

volatile sig_atomic_t hg_signals_stop;

static void on_signal(int number)
{
    hg_signals_stop = number;
}

void hg_signals_catch(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

    hg_signals_stop = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

int hg_signals_code(void)
{
    return 128 + (hg_signals_stop ? hg_signals_stop : SIGINT);
}
