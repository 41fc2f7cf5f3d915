/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <slurm/slurm_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agents/agent.h"

static const struct {
    int number;
    enum hg_err_code code;
} table[] = {
#define E(n, class, name) { n, HG_E_##class },
#include "agents/slurm_codes.def"
#undef E
};

static const enum hg_err_code *find(int number)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].number == number)
            return &table[i].code;
    return NULL;
}

bool hg_agent_knows(int number)
{
    return find(number) != NULL;
}

/* Errors of connecting are certain; any other of the system's may have come after the message was
 * sent. */
static enum hg_err_code classify_errno(int number)
{
    switch (number) {
    case EAGAIN: /* MaxJobCount is reached */
        return HG_E_AGAIN;
    case ENOENT:
    case EACCES:
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EMFILE:
    case ENFILE:
        return HG_E_ENV;
    default:
        return HG_E_AMBIGUOUS;
    }
}

/* Slurm gives the same numbers for "could not sign the request" and "could not read the answer". */
static bool never_signed(const char *site)
{
    return strstr(site, "Munge encode failed") && !strstr(site, "Munge decode failed");
}

static bool is_authentication(int number)
{
    return number == SLURM_PROTOCOL_AUTHENTICATION_ERROR || (number >= 6000 && number < 6100);
}

enum hg_err_code hg_agent_classify(int number, const char *site)
{
    const enum hg_err_code *code = find(number);

    if (number == SLURM_ERROR)
        return HG_E_REFUSED;
    if (is_authentication(number) && never_signed(site))
        return HG_E_ENV;
    if (code)
        return *code;
    if (number > 0 && number < 1000)
        return classify_errno(number);
    return number >= 2000 && number < 3000 ? HG_E_REFUSED : HG_E_AMBIGUOUS;
}

static void add_hint(struct hg_err *err, int number)
{
    if (is_authentication(number))
        hg_err_hint(err,
                    "is munged running? (`munge -n | unmunge`; where slurm.conf has AuthInfo, with "
                    "--socket)");
    else if (number == SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR || number == ECONNREFUSED)
        hg_err_hint(err, "is slurmctld running? (`scontrol ping`)");
    else if (number == ESLURM_ACCOUNTING_POLICY)
        hg_err_hint(err,
                    "if no job of yours is in the queue, these will never be let in: `sacctmgr "
                    "show assoc` and `sacctmgr show qos` list the limits");
    else if (number == SLURM_PROTOCOL_VERSION_ERROR)
        hg_err_hint(err, "build hpcgrid-slurm against this site's libslurm");
}

/* What people call it, where Slurm's own text leaves them in the dark. */
static const char *explain(int number)
{
    if (number == SLURM_ERROR)
        return "the site's submit plugin said no";
    if (number == EAGAIN)
        return "the job table is full (MaxJobCount)";
    if (number == ESLURM_ACCOUNTING_POLICY)
        return "a limit of the account or QOS is in the way: jobs at a time, their size or their time";
    if (number == SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT)
        return "slurmctld did not answer in time";
    if (is_authentication(number))
        return "authentication failed: munge cannot be used";
    return slurm_strerror(number);
}

int hg_agent_fail(struct hg_agent_call *call, int rc, const char *fmt, ...)
{
    /* Up to 24.05 functions return -1 and set errno, later ones may return the number. */
    int number = rc == SLURM_ERROR || rc == SLURM_SUCCESS ? errno : rc;
    enum hg_err_code code;
    char what[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    hg_agent_collect(&call->site);
    code = hg_agent_classify(number, hg_buf_str(&call->site));
    if (code == HG_E_AMBIGUOUS && !call->submitting)
        code = HG_E_AGAIN;
    call->number = number;
    call->unfit = number == SLURM_PROTOCOL_VERSION_ERROR;
    if (number == SLURM_ERROR)
        hg_err_set(&call->err, code, "%s: %s", what, explain(number));
    else
        hg_err_set(&call->err, code, "%s: %s (%d)", what, explain(number), number);
    add_hint(&call->err, number);
    return -1;
}
