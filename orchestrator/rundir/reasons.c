/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/reasons.h"

#include <string.h>

/* The first entry that the reason begins with counts, so longer names come before shorter ones. */
static const struct hg_reason reasons[] = {
    { "launch failed", HG_REASON_REDO, "the node could not start it; Slurm holds it" },
    { "JobLaunchFailure", HG_REASON_REDO, "the node could not start it" },
    { "BadConstraints", HG_REASON_NEVER, "no node has what it requests" },
    { "DependencyNeverSatisfied", HG_REASON_NEVER, "it waits for a job that failed" },
    { "InvalidAccount", HG_REASON_NEVER, "the account is not valid" },
    { "InvalidQOS", HG_REASON_NEVER, "the QOS is not valid" },
    { "QOSUsageThreshold", HG_REASON_WAIT, "the QOS's usage threshold is reached" },
    { "FrontEndDown", HG_REASON_WAIT, "no front end is up" },
    { "JobHeldUser", HG_REASON_ACT, "held by its user: `hpcgrid release`" },
    { "JobHeldAdmin", HG_REASON_ACT, "held by an administrator" },
    { "job requeued in held state", HG_REASON_ACT, "requeued and held: `hpcgrid release`" },
    { "PartitionDown", HG_REASON_ACT, "the partition is down" },
    { "PartitionInactive", HG_REASON_ACT, "the partition takes no jobs now" },
    { "PartitionNodeLimit", HG_REASON_ACT, "more nodes than the partition gives one job" },
    { "PartitionTimeLimit", HG_REASON_ACT, "a longer time limit than the partition allows" },
    { "PartitionConfig", HG_REASON_ACT, "the partition's rules do not let it start" },
    { "ReqNodeNotAvail", HG_REASON_ACT, "nodes it needs are down, drained or reserved" },
    { "NodeDown", HG_REASON_ACT, "a node it needs is down" },
    { "Nodes required for job are DOWN", HG_REASON_ACT, "nodes it needs are down or drained" },
    { "Reservation", HG_REASON_WAIT, "waits for its reservation" },
    { "Assoc", HG_REASON_WAIT, "a limit of the account is reached" },
    { "QOSMin", HG_REASON_ACT, "requests less than the QOS requires" },
    { "QOS", HG_REASON_WAIT, "a limit of the QOS is reached" },
    { "JobArrayTaskLimit", HG_REASON_WAIT, "the sweep's own limit of running cells" },
    { "Resources", HG_REASON_WAIT, "next in line, waits for nodes" },
    { "Priority", HG_REASON_WAIT, "others are before it" },
    { "Licenses", HG_REASON_WAIT, "waits for licenses (on a box: for free cores)" },
    { "BeginTime", HG_REASON_WAIT, "requeued: Slurm starts it a little later" },
    { "Dependency", HG_REASON_WAIT, "waits for another job" },
};

const struct hg_reason *hg_reason_find(const char *reason)
{
    static const struct hg_reason other = { "", HG_REASON_WAIT, "waits in the queue" };
    static const struct hg_reason too_much = {
        "PerJob", HG_REASON_ACT, "requests more than the account or QOS allows one job"
    };

    if (strstr(reason, too_much.name)) /* QOSMaxCpuPerJobLimit, AssocMaxGRESPerJob and many more */
        return &too_much;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strncmp(reason, reasons[i].name, strlen(reasons[i].name)) == 0)
            return &reasons[i];
    return &other;
}

bool hg_reason_is_hold(const char *reason)
{
    return strncmp(reason, "JobHeld", 7) == 0 || strstr(reason, "held") != NULL;
}

bool hg_reason_is_admin_hold(const char *reason)
{
    return strncmp(reason, "JobHeldAdmin", 12) == 0;
}
