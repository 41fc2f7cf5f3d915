/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_WHERE_H
#define HG_NODE_WHERE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Where something ran: facts about the machine and the job. Facts that cannot be
 * found out are left out; nothing here fails. */

/* Processor model ("AMD EPYC 7452 32-Core Processor"), or the architecture if the kernel does not name it. */
void hg_where_cpu(char *out, size_t size);

/* Processors of this machine that are online: its ranks share them, unless it is a box (see
 * hg_proc_cpus()), which may have been started with fewer. */
long hg_where_cores(void);

/* Model of the first GPU that the kernel knows. False if there is none. */
bool hg_where_gpu(char *out, size_t size);

/* {"host", "kernel", "machine", "cpu", "cores", "gpu", "hpcgrid"}, and the variables that choose the ranks' network: of this process,
 * and of those that the ranks get on top (an object of strings, or NULL). A new reference. */
json_t *hg_where_env(const json_t *ranks);

/* {"job_id", "array_job_id", "array_task_id", "restarts", "nodes", "partition", "account", "qos",
 * "cluster", "version"} from the job's environment; an empty object outside of Slurm. `srun` prints the
 * version (NULL: left out). A new reference. */
json_t *hg_where_slurm(const char *srun);

/* An address at which the other nodes of this job reach this one: its Slurm node name. False if there is no
 * such host: the nodes are virtual ones of this machine (a box), or there is no Slurm; the address is then 127.0.0.1. */
bool hg_where_head(char *out, size_t size);

/* A free TCP port of this machine, another one for each job; outside of boxes the same for a job each time if it is free. */
int hg_where_port(void);

/* How many processes the kernel's OOM killer has killed in this process's control group so far; 0 if that is not
 * known. */
long long hg_where_oom_kills(void);

#endif
