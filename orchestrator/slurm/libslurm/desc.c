/* SPDX-License-Identifier: Apache-2.0 */
/* From a job to the descriptor that libslurm sends. */
#include "slurm/libslurm/desc.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "slurm/libslurm/extra.h"

static char *keep(struct hg_agent_desc *d, char *s)
{
    return hg_agent_words_take(&d->kept, s);
}

/* Slurm 23.11 and later also use this for a task's CPUs: srun in the job takes its --cpus-per-task from it. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
#define TASK_CPUS "cpu="
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define TASK_CPUS "cpu:"
#endif

static void set_task_cpus(struct hg_agent_desc *d)
{
#ifdef TASK_CPUS
    d->msg.tres_per_task = keep(d, hg_str_printf(TASK_CPUS "%lld", d->job->f.cpus_per_task));
    hg_agent_words_take(&d->job->env,
                        hg_str_printf("SLURM_TRES_PER_TASK=%s", d->msg.tres_per_task));
#else
    (void)d;
#endif
}

/* "gpu:a100:2,nic:1" with Slurm's prefix before each part */
static void set_gres(struct hg_agent_desc *d)
{
    struct hg_buf text = HG_BUF_INIT;

    if (!d->job->f.gres || !d->job->f.gres[0])
        return;
    for (const char *p = d->job->f.gres; *p;) {
        size_t n = strcspn(p, ",");

        hg_buf_printf(&text, "%s" HG_AGENT_GRES "%.*s", text.len ? "," : "", (int)n, p);
        p += n + (p[n] == ',');
    }
    d->msg.tres_per_node = keep(d, hg_buf_detach(&text));
}

static void set_array(struct hg_agent_desc *d)
{
    const struct hg_agent_fields *f = &d->job->f;

    if (f->array)
        d->msg.array_inx =
            keep(d, f->running_max ? hg_str_printf("%s%%%lld", f->array, f->running_max)
                                   : hg_strdup(f->array));
}

static void set_argv(struct hg_agent_desc *d)
{
    size_t n = 0;

    while (d->job->f.args && d->job->f.args[n])
        n++;
    d->argv = hg_alloc_zeroed(n + 2, sizeof *d->argv);
    d->argv[0] = d->job->f.script;
    for (size_t i = 0; i < n; i++)
        d->argv[i + 1] = d->job->f.args[i];
    d->msg.argv = d->argv;
    d->msg.argc = (uint32_t)(n + 1);
}

static void set_size(struct hg_agent_desc *d)
{
    const struct hg_agent_fields *f = &d->job->f;
    job_desc_msg_t *m = &d->msg;

    m->min_nodes = m->max_nodes = (uint32_t)f->nodes;
    m->num_tasks = (uint32_t)(f->nodes * f->tasks_per_node);
    m->ntasks_per_node = (uint16_t)f->tasks_per_node;
    m->cpus_per_task = (uint16_t)f->cpus_per_task;
    m->min_cpus = (uint32_t)(m->num_tasks * f->cpus_per_task);
    m->bitflags |= JOB_NTASKS_SET | JOB_CPUS_SET;
    if (f->mem_mib >= 0)
        m->pn_min_memory = (uint64_t)f->mem_mib;
    if (f->time_s > 0)
        m->time_limit = hg_agent_job_minutes(f);
}

static void set_rest(struct hg_agent_desc *d)
{
    const struct hg_agent_fields *f = &d->job->f;
    job_desc_msg_t *m = &d->msg;

    m->partition = f->partition;
    m->account = f->account;
    m->qos = f->qos;
    m->features = f->constraint;
    m->reservation = f->reservation;
    m->licenses = f->licenses;
    m->work_dir = f->work_dir;
    m->std_in = (char *)"/dev/null";
    m->std_out = f->output;
    m->open_mode = OPEN_MODE_APPEND;
    m->script = d->job->script.data;
    m->user_id = getuid();
    m->group_id = getgid();
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
    m->oom_kill_step = NO_VAL16; /* as the site has it; libslurm's 0 would be "no" */
#endif
    if (f->signal_lead_s) {
        m->warn_signal = SIGUSR1;
        m->warn_time = (uint16_t)f->signal_lead_s;
    }
}

int hg_agent_desc_fill(struct hg_agent_desc *d, struct hg_agent_job *job, bool for_array,
                       struct hg_err *err)
{
    *d = (struct hg_agent_desc){ .job = job };
    slurm_init_job_desc_msg(&d->msg);
    d->msg.comment = d->job->comment;
    d->msg.name = d->job->name;
    set_task_cpus(d);
    set_gres(d);
    set_argv(d);
    if (for_array)
        set_array(d);
    set_size(d);
    set_rest(d);
    if (d->job->f.requeue_is_said)
        d->msg.requeue = d->job->f.requeue;
    hg_agent_job_add_slurm_env(d->job);
    d->msg.environment = d->job->env.items;
    d->msg.env_size = (uint32_t)d->job->env.n;
    return hg_agent_extra(&d->msg, &d->job->options, &d->kept, err);
}

void hg_agent_desc_done(struct hg_agent_desc *d)
{
    hg_agent_words_done(&d->kept);
    free(d->argv);
}
