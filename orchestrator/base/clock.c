/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#define AHEAD_LEAST_S 30.0 /* less may be the time that a slow file server takes */

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

double hg_clock_ahead_s(double wall_s, const char *path)
{
    struct stat st;
    double ahead_s;

    if (getenv("HPCGRID_NOW") || stat(path, &st) < 0)
        return 0;
    ahead_s = wall_s - ((double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9);
    return fabs(ahead_s) > AHEAD_LEAST_S ? ahead_s : 0;
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
