/* SPDX-License-Identifier: Apache-2.0 */
/* slurm.conf, as far as it must be known before Slurm's own code reads it. */
#include "slurm/common/conf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "slurm/common/munge.h"

#define CREDENTIAL_LIFE_S 300 /* munge's, unless AuthInfo says otherwise */

/* Without any, libslurm's first call would hang for a minute looking for a server of configurations. */
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

#define SOCKET_MAX (sizeof((struct sockaddr_un *)0)->sun_path)

/* Where slurm.conf puts munge's socket: "AuthInfo=...socket=PATH", else munge's own place if it is
 * there. Other kinds of authentication have none: "". */
static void find_munge(const char *conf, char out[static SOCKET_MAX])
{
    static const char usual[] = "/run/munge/munge.socket.2";
    FILE *f = conf ? fopen(conf, "re") : NULL;
    char line[4096], *at;

    out[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (strncasecmp(line, "AuthInfo", 8) == 0 && (at = strstr(line, "socket="))) {
            at += strlen("socket=");
            at[strcspn(at, ", \t\r\n")] = 0;
            snprintf(out, SOCKET_MAX, "%.*s", (int)SOCKET_MAX - 1, at);
        } else if (strncasecmp(line, "AuthType", 8) == 0 && !strstr(line, "munge")) {
            out[0] = 0;
            fclose(f);
            return;
        }
    }
    if (f)
        fclose(f);
    if (!out[0] && access(usual, F_OK) == 0)
        snprintf(out, SOCKET_MAX, "%s", usual);
}

int hg_agent_check_auth(struct hg_agent_call *call, const char *conf)
{
    char munge_socket[SOCKET_MAX];

    find_munge(conf, munge_socket);
    return munge_socket[0] ? hg_agent_check_munge(call, munge_socket) : 0;
}

long hg_agent_credential_life_s(const char *auth_info)
{
    const char *ttl = auth_info ? strstr(auth_info, "ttl=") : NULL;
    long life = ttl ? strtol(ttl + 4, NULL, 10) : 0;

    return life > 0 ? life : CREDENTIAL_LIFE_S;
}
