/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.conf, as far as it must be known before Slurm's own code reads it. */
#include "slurm/common/conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

#define CREDENTIAL_LIFE_S 300 /* munge's, unless AuthInfo says otherwise */

/* Without one, libslurm's first call would hang for a minute looking for a configuration server. */
char *hg_agent_find_conf(const char *prefix)
{
    static const char *const places[] = { "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf",
                                          "/etc/slurm-llnl/slurm.conf",
                                          "/usr/local/etc/slurm.conf" };
    const char *named = getenv("SLURM_CONF");
    char *conf;

    if (named)
        return access(named, R_OK) == 0 ? hg_strdup(named) : NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0)
            return hg_strdup(places[i]);
    if (!prefix)
        return NULL;
    conf = hg_fs_join(prefix, "etc/slurm.conf");
    if (access(conf, R_OK) == 0)
        return conf;
    free(conf);
    return NULL;
}

int hg_agent_no_conf(struct hg_agent_call *call)
{
    const char *named = getenv("SLURM_CONF");
    char reason[HG_ERR_REASON_MAX];

    if (named)
        hg_err_set(&call->err, HG_E_ENV, "SLURM_CONF names %s: %s", named,
                   hg_err_reason(access(named, R_OK) == 0 ? ENOENT : errno, reason));
    else
        hg_err_set(&call->err, HG_E_ENV, "no slurm.conf found: SLURM_CONF is not set");
    return hg_err_hint(&call->err,
                       "export SLURM_CONF=PATH, or start a private Slurm: hpcgrid box up");
}

long hg_agent_credential_life_s(const char *auth_info)
{
    const char *ttl = auth_info ? strstr(auth_info, "ttl=") : NULL;
    long life = ttl ? strtol(ttl + 4, NULL, 10) : 0;

    return life > 0 ? life : CREDENTIAL_LIFE_S;
}
