/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static double read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

double hg_clock_wall_s(void)
{
    const char *fixed = getenv("HPCGRID_NOW");

    return fixed && *fixed ? strtod(fixed, NULL) : read_clock(CLOCK_REALTIME);
}

double hg_clock_mono_s(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int hg_clock_sleep_s(double seconds)
{
    struct timespec ts;

    if (seconds <= 0)
        return 0;
    ts.tv_sec = (time_t)seconds;
    ts.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL) == 0 ? 0 : -1;
}

void hg_clock_format_utc(double wall_s, char out[static 21])
{
    time_t t = (time_t)wall_s;
    struct tm tm;

    gmtime_r(&t, &tm);
    strftime(out, 21, "%Y-%m-%dT%H:%M:%SZ", &tm);
}
