/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/watchdog.h"

#include <jv.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"

#define TICK_US 50000
#define GROWTH_MAX_KB (256 << 10) /* jq aborts when its stack passes 1 GiB: stop well before */
#define TICKS_MAX 20              /* 1 s */
#define NO_MEMORY ": the expression needs too much memory; stopped"

static const struct hg_watched *volatile running; /* being evaluated now */
static volatile sig_atomic_t ticks;               /* since that evaluation began */
static long peak_at_first_tick_kb;
static unsigned n_holders;

static void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
}

static void say_and_exit(const struct hg_watched *e, const char *text)
{
    char cell[400] = "";

    say(e->place);
    say(text);
    if (e->describe)
        e->describe(e->context, cell, sizeof cell);
    if (cell[0]) {
        say("\n  in the cell with ");
        say(cell);
    }
    say("\n");
    _exit(3);
}

static long peak_kb(void)
{
    struct rusage usage = { 0 };

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void on_tick(int signal_number)
{
    const struct hg_watched *e = running;

    (void)signal_number;
    if (!e)
        return;
    if (++ticks > TICKS_MAX)
        say_and_exit(e, ": the expression does not end; stopped after 1 s");
    if (ticks == 1)
        peak_at_first_tick_kb = peak_kb();
    else if (peak_kb() - peak_at_first_tick_kb > GROWTH_MAX_KB)
        say_and_exit(e, NO_MEMORY);
}

static void on_no_memory(void *data)
{
    const struct hg_watched *e = running;

    (void)data;
    if (e)
        say_and_exit(e, NO_MEMORY);
    hg_alloc_failed(); /* jq would abort */
}

static void watch(bool on)
{
    struct itimerval timer = { 0 };
    struct sigaction action = { .sa_handler = on ? on_tick : SIG_IGN, .sa_flags = SA_RESTART };

    if (on)
        timer.it_interval.tv_usec = timer.it_value.tv_usec = TICK_US;
    sigemptyset(&action.sa_mask);
    if (on) {
        sigaction(SIGVTALRM, &action, NULL);
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
    } else {
        setitimer(ITIMER_VIRTUAL, &timer, NULL);
        sigaction(SIGVTALRM, &action, NULL);
    }
}

void hg_watchdog_hold(void)
{
    if (n_holders++ == 0) {
        jv_nomem_handler(on_no_memory, NULL);
        watch(true);
    }
}

void hg_watchdog_release(void)
{
    if (--n_holders == 0)
        watch(false);
}

void hg_watchdog_begin(const struct hg_watched *watched)
{
    ticks = 0;
    running = watched;
}

void hg_watchdog_end(void)
{
    running = NULL;
}
