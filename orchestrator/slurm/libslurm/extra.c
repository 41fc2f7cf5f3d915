/* SPDX-License-Identifier: Apache-2.0 */
/* sbatch options in the descriptor that libslurm sends. */
#include "slurm/libslurm/extra.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"

struct setter {
    job_desc_msg_t *desc;
    struct hg_agent_words *kept;
    const struct hg_sbatch_option *o;
};

#define TEXT_SETTER(name, field)                   \
    static void set_##name(const struct setter *s) \
    {                                              \
        s->desc->field = s->o->text;               \
    }
#define NUMBER_SETTER(name, field)                 \
    static void set_##name(const struct setter *s) \
    {                                              \
        s->desc->field = s->o->number;             \
    }

TEXT_SETTER(exclude, exc_nodes)
TEXT_SETTER(nodelist, req_nodes)
TEXT_SETTER(dependency, dependency)
TEXT_SETTER(mail_user, mail_user)
TEXT_SETTER(wckey, wckey)
TEXT_SETTER(network, network)
TEXT_SETTER(container, container)
TEXT_SETTER(prefer, prefer)
TEXT_SETTER(gpu_freq, tres_freq)
NUMBER_SETTER(threads_per_core, threads_per_core)
NUMBER_SETTER(cores_per_socket, cores_per_socket)
NUMBER_SETTER(sockets_per_node, sockets_per_node)
NUMBER_SETTER(ntasks_per_core, ntasks_per_core)
NUMBER_SETTER(core_spec, core_spec)
NUMBER_SETTER(mincpus, pn_min_cpus)
NUMBER_SETTER(priority, priority)
NUMBER_SETTER(begin, begin_time)
NUMBER_SETTER(deadline, deadline)
NUMBER_SETTER(time_min, time_min)
NUMBER_SETTER(tmp, pn_min_tmp_disk)

static void set_exclusive(const struct setter *s)
{
    if (!s->o->text)
        s->desc->shared = JOB_SHARED_NONE;
    else if (strcasecmp(s->o->text, "user") == 0)
        s->desc->shared = JOB_SHARED_USER;
    else
        s->desc->shared = JOB_SHARED_MCS;
}

static void set_oversubscribe(const struct setter *s)
{
    s->desc->shared = JOB_SHARED_OK;
}

static void set_contiguous(const struct setter *s)
{
    s->desc->contiguous = 1;
}

static void set_no_kill(const struct setter *s)
{
    s->desc->kill_on_node_fail = 0;
}

static void set_hold(const struct setter *s)
{
    s->desc->priority = 0;
}

static void set_nice(const struct setter *s)
{
    s->desc->nice = (uint32_t)(NICE_OFFSET + s->o->number);
}

static void set_mem_per_cpu(const struct setter *s)
{
    s->desc->pn_min_memory = (uint64_t)s->o->number | MEM_PER_CPU;
}

static void set_mem_per_gpu(const struct setter *s)
{
    s->desc->mem_per_tres =
        hg_agent_words_take(s->kept, hg_str_printf(HG_AGENT_GRES "gpu:%lld", s->o->number));
}

static void set_cpus_per_gpu(const struct setter *s)
{
    s->desc->cpus_per_tres =
        hg_agent_words_take(s->kept, hg_str_printf(HG_AGENT_GRES "gpu:%lld", s->o->number));
}

static void set_gpu_bind(const struct setter *s)
{
    s->desc->tres_bind =
        hg_agent_words_take(s->kept, hg_str_printf(HG_AGENT_GRES "gpu:%s", s->o->text));
}

static void set_switches(const struct setter *s)
{
    s->desc->req_switch = (uint32_t)s->o->number;
    if (s->o->wait_min >= 0)
        s->desc->wait4switch = (uint32_t)(s->o->wait_min * 60);
}

static void set_mail_type(const struct setter *s)
{
    static const uint16_t bits[] = { MAIL_JOB_BEGIN,   MAIL_JOB_END,       MAIL_JOB_FAIL,
                                     MAIL_JOB_REQUEUE, MAIL_JOB_STAGE_OUT, MAIL_JOB_TIME100,
                                     MAIL_JOB_TIME90,  MAIL_JOB_TIME80,    MAIL_JOB_TIME50,
                                     MAIL_ARRAY_TASKS }; /* as in hg_sbatch_mail_kinds */

    s->desc->mail_type = 0;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (s->o->number & 1LL << i)
            s->desc->mail_type |= bits[i];
}

static const struct {
    const char *name;
    void (*set)(const struct setter *s);
} setters[] = {
    { "begin", set_begin },
    { "container", set_container },
    { "contiguous", set_contiguous },
    { "core-spec", set_core_spec },
    { "cores-per-socket", set_cores_per_socket },
    { "cpus-per-gpu", set_cpus_per_gpu },
    { "deadline", set_deadline },
    { "dependency", set_dependency },
    { "exclude", set_exclude },
    { "exclusive", set_exclusive },
    { "gpu-bind", set_gpu_bind },
    { "gpu-freq", set_gpu_freq },
    { "hold", set_hold },
    { "mail-type", set_mail_type },
    { "mail-user", set_mail_user },
    { "mem-per-cpu", set_mem_per_cpu },
    { "mem-per-gpu", set_mem_per_gpu },
    { "mincpus", set_mincpus },
    { "network", set_network },
    { "nice", set_nice },
    { "no-kill", set_no_kill },
    { "nodelist", set_nodelist },
    { "ntasks-per-core", set_ntasks_per_core },
    { "oversubscribe", set_oversubscribe },
    { "prefer", set_prefer },
    { "priority", set_priority },
    { "sockets-per-node", set_sockets_per_node },
    { "switches", set_switches },
    { "threads-per-core", set_threads_per_core },
    { "time-min", set_time_min },
    { "tmp", set_tmp },
    { "wckey", set_wckey },
};

int hg_agent_extra(job_desc_msg_t *desc, const struct hg_sbatch_options *options,
                   struct hg_agent_words *kept, struct hg_err *err)
{
    for (size_t i = 0; i < options->n; i++) {
        const struct hg_sbatch_option *o = &options->items[i];
        size_t k = 0, n = sizeof setters / sizeof *setters;

        while (k < n && strcmp(setters[k].name, o->name) != 0)
            k++;
        if (k == n)
            return hg_err_set(err, HG_E_REFUSED, "sbatch option --%s: libslurm has no field for it",
                              o->name);
        setters[k].set(&(struct setter){ desc, kept, o });
    }
    return 0;
}
