/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/signals.h"

#include <stddef.h>

volatile sig_atomic_t hg_signals_stop;

void (*volatile hg_signals_last)(void);

static void on_end(int number)
{
    if (hg_signals_last)
        hg_signals_last();
    signal(number, SIG_DFL);
    raise(number); /* it comes when this handler returns */
}

static void on_signal(int number)
{
    if (hg_signals_stop)
        on_end(number);
    hg_signals_stop = number;
}

void hg_signals_catch(void)
{
    static const int stops[] = { SIGINT, SIGTERM, SIGHUP },
                     ends[] = { SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
    struct sigaction action = { .sa_handler = on_signal }, before;

    hg_signals_stop = 0;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (stops[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) < 0 ||
            before.sa_handler != SIG_IGN) /* nohup */
            sigaction(stops[i], &action, NULL);
    action.sa_handler = on_end;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL); /* else a sanitizer's */
}

int hg_signals_code(void)
{
    return 128 + (hg_signals_stop ? hg_signals_stop : SIGINT);
}
