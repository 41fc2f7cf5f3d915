/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's commands print what happened, not its number. */
#include "slurm/common/texts.h"

#include <stdbool.h>
#include <string.h>

#include "slurm/common/codes.h"

#define SYSTEM_MAX 134 /* behind the last error number of Linux */

/* Words by which an error is known, in the order they are looked for, as Slurm 22.05 to 25.11 print them. Only
 * what a job can meet stands here, and nothing that two errors of different classes share: a test holds the
 * table against the Slurm that is installed. What is not found has no number, and nothing is certain then. */
static const struct {
    const char *words;
    int number;
} texts[] = {
    { "Unspecified error", HG_AGENT_SLURM_ERROR },
    { "(connect failure)", 1800 },
    { "(send failure)", 1801 },
    { "(receive failure)", 1802 },
    { "(shutdown failure)", 1803 },
    { "please retry momentarily", 1804 },
    { "please retry later", 1805 },
    { "Incompatible versions of client and server", 1005 },
    { "Protocol authentication error", 1007 },
    { "Insane message length", 1008 },
    { "Zero Bytes were transmitted or received", 5000 },
    { "Socket timed out", 5004 },
    { "Invalid partition name", 2000 },
    { "system default partition", 2001 },
    { "Access/permission denied", 2002 },
    { "not permitted to use this partition", 2003 },
    { "nodes not in this partition", 2004 },
    { "More processors requested", 2005 },
    { "Node count specification", 2006 },
    { "Unable to create job record", 2007 },
    { "Duplicate job id", 2011 },
    { "node configuration is not available", 2014 },
    { "partition configuration not available", 2015 },
    { "Requested nodes are busy", 2016 },
    { "Invalid job id", 2017 },
    { "Invalid node name", 2018 },
    { "can not be altered now", 2020 },
    { "already completing or completed", 2021 },
    { "Task distribution", 2023 },
    { "Task count", 2025 },
    { "in standby mode", 2027 },
    { "Invalid feature", 2029 },
    { "not supported on this system", 2036 },
    { "presently disabled", 2037 },
    { "Job dependency problem", 2038 },
    { "Memory required by task", 2044 },
    { "Invalid account or", 2045 },
    { "Invalid license", 2048 },
    { "violates accounting/QOS policy", 2050 },
    { "time limit is invalid", 2051 },
    { "denied to requested reservation", 2052 },
    { "Requested reservation is invalid", 2053 },
    { "Requested reservation not usable", 2056 },
    { "Invalid time specified", 2054 },
    { "Invalid wckey", 2057 },
    { "Invalid qos", 2066 },
    { "Required node not available", 2068 },
    { "CPU count", 2069 },
    { "Required partition not available", 2070 },
    { "Invalid generic resource", 2072 },
    { "no longer pending", 2073 },
    { "QOS usage threshold", 2074 },
    { "Invalid job array", 2081 },
    { "Job has already started", 2083 },
    { "Job has already finished", 2084 },
    { "Partition in DOWN", 2101 },
    { "submissions disabled", 2105 },
    { "--batch option", 2114 },
    { "Invalid Trackable RESource", 2115 },
    { "maintenance reservation", 2118 },
    { "Invalid GRES specification", 2119 },
    { "unsupported by configured SelectType", 2122 },
    { "Invalid --nice", 2123 },
    { "Invalid time-min", 2124 },
    { "Multiple partition job request", 2130 },
    { "standby mode", 2131 },
    { "more threads per core", 2132 },
    { "Invalid preferred", 2133 },
    { "Insufficient GRES", 2134 },
    { "unknown association", 2167 },
    { "topology configuration is not", 2178 },
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

int hg_agent_number_of(const char *text)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(text, texts[i].words))
            return texts[i].number;
    for (int number = 1; number < SYSTEM_MAX; number++) {
        const char *words = strerror(number);

        if (ends_with(text, words) && strncmp(words, "Unknown", 7) != 0)
            return number;
    }
    return 0;
}
