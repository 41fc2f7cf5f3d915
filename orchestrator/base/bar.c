/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define AFTER_S 2.0
#define EVERY_S 0.2 /* between two looks at the clock, and so between two lines */
#define COLUMNS 24

uint64_t hg_bar_done, hg_bar_next = UINT64_MAX;

static struct {
    bool allowed, shown;
    int depth;
    const char *what;
    uint64_t total, stride;
    uint64_t outer; /* steps of the bar that an inner one interrupts */
    double started_s, looked_s;
} bar;

void hg_bar_allow(bool allowed)
{
    const char *term = getenv("TERM");

    bar.allowed = allowed && isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

void hg_bar_begin(const char *what, uint64_t total)
{
    if (bar.depth++) {
        if (bar.depth == 2)
            bar.outer = hg_bar_done;
        return;
    }
    bar.what = what;
    bar.total = total;
    bar.stride = 1;
    bar.started_s = bar.looked_s = hg_clock_mono_s();
    hg_bar_done = 0;
    hg_bar_next = bar.allowed ? 1 : UINT64_MAX;
}

void hg_bar_hide(void)
{
    if (bar.shown)
        fputs("\r\033[K", stderr);
    bar.shown = false;
}

void hg_bar_end(void)
{
    if (--bar.depth == 1)
        hg_bar_done = bar.outer;
    if (bar.depth)
        return;
    hg_bar_hide();
    hg_bar_next = UINT64_MAX;
}

static void show(double elapsed_s)
{
    double part = (double)hg_bar_done / (double)bar.total;
    int filled = (int)(part * COLUMNS);
    char left[32];

    if (!bar.total || part > 1) {
        fprintf(stderr, "\r\033[K%llu %s", (unsigned long long)hg_bar_done, bar.what);
    } else {
        hg_text_duration_format(elapsed_s * (1 - part) / part, left);
        fprintf(stderr, "\r\033[K[%.*s%*s] %2d %% of %llu %s, %s left", filled,
                "########################", COLUMNS - filled, "", (int)(part * 100),
                (unsigned long long)bar.total, bar.what, left);
    }
    fflush(stderr);
    bar.shown = true;
}

void hg_bar_look(void)
{
    const char *set = getenv("HPCGRID_BAR_S");
    double now_s = hg_clock_mono_s(), since_s = now_s - bar.looked_s;

    if (bar.depth == 1 && now_s - bar.started_s >= (set ? atof(set) : AFTER_S))
        show(now_s - bar.started_s);
    if (since_s < EVERY_S / 2)
        bar.stride *= 2;
    else if (since_s > EVERY_S * 2 && bar.stride > 1)
        bar.stride /= 2;
    bar.looked_s = now_s;
    hg_bar_next = hg_bar_done + bar.stride;
}
