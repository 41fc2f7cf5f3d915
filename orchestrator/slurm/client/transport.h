/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_SLURM_CLIENT_TRANSPORT_H
#define HG_SLURM_CLIENT_TRANSPORT_H

#include <jansson.h>

#include "base/err.h"

/* The ways to a Slurm. Each is a program of its own that speaks the JSON lines of slurm/README.md; what is
 * submitted through one can be followed through any other, because a submission is known by its key. */
struct hg_transport {
    const char *name;     /* as "transport" of a site and HPCGRID_TRANSPORT have it */
    const char *program;  /* name of the agent's file */
    const char *variable; /* of the environment: the path of another agent to take instead */
    const char *means;    /* what it uses, for people */
    const char *next;     /* what to do if the program is missing */
    /* Member of the site that is the program's one argument, as JSON; NULL: none. */
    const char *member;

    /* Is everything here that it needs? 0, or -1 with ENV and the reason. A local check. NULL: the
     * program itself knows (its "hello" has a "conf"). site may be NULL. */
    int (*look)(const json_t *site, struct hg_err *err);
};

extern const struct hg_transport
    hg_transports[]; /* in the order that "auto" tries; name NULL: end */

/* The agent's path, yours. NULL with ENV: its program is not installed, or look failed. */
char *hg_transport_find(const struct hg_transport *t, const json_t *site, struct hg_err *err);

/* The argument that the agent is started with, yours; NULL: none. */
char *hg_transport_argument(const struct hg_transport *t, const json_t *site);

/* The one that is requested: by HPCGRID_TRANSPORT, else by "transport" of the site, else by naming an agent
 * for libslurm. *t is NULL if none is ("auto"); *by is the requester. INPUT for an unknown word. */
int hg_transport_wanted(const json_t *site, const struct hg_transport **t, const char **by,
                        struct hg_err *err);

#endif
