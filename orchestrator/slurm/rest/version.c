/* SPDX-License-Identifier: Apache-2.0 */
/* Which version of slurmrestd's API is spoken. */
#include "slurm/rest/version.h"

#include <stdio.h>
#include <string.h>

#include "slurm/rest/ask.h"
#include "slurm/rest/server.h"
#include "slurm/rest/values.h"

#define SCHEMAS "#/components/schemas/"

/* Where a schema only names another one, that. */
static json_t *resolve(const json_t *root, json_t *schema)
{
    const char *name = json_string_value(json_object_get(schema, "$ref"));

    if (!name || strncmp(name, SCHEMAS, strlen(SCHEMAS)) != 0)
        return schema;
    return json_object_get(json_object_get(json_object_get(root, "components"), "schemas"),
                           name + strlen(SCHEMAS));
}

static json_t *path_of(const json_t *root, const char *area, const char *api, const char *rest)
{
    char path[96];

    snprintf(path, sizeof path, "/%s/%s%s", area, api, rest);
    return json_object_get(json_object_get(root, "paths"), path);
}

/* The members that a job may have, by the slurmrestd's own description. */
static json_t *find_members(const json_t *root, const char *api)
{
    json_t *body = json_object_get(
        json_object_get(path_of(root, "slurm", api, "/job/submit"), "post"), "requestBody");
    json_t *schema = json_object_get(
        json_object_get(json_object_get(body, "content"), "application/json"), "schema");
    json_t *job = json_object_get(json_object_get(resolve(root, schema), "properties"), "job");

    return json_object_get(resolve(root, job), "properties");
}

static int no_version(struct hg_agent_call *call, const json_t *root)
{
    struct hg_buf theirs = HG_BUF_INIT, ours = HG_BUF_INIT;
    const char *path;
    const json_t *value;
    char api[16];

    json_object_foreach(json_object_get(root, "paths"), path, value)
        if (sscanf(path, "/slurm/%15[^/]", api) == 1 && !strstr(hg_buf_str(&theirs), api))
            hg_buf_printf(&theirs, "%s%s", theirs.len ? ", " : "", api);
    for (const char *const *v = hg_rest_versions; *v; v++)
        hg_buf_printf(&ours, "%s%s", ours.len ? ", " : "", *v);
    call->unfit = true;
    hg_err_set(&call->err, HG_E_ENV, "slurmrestd at %s speaks %s: hpcgrid-rest needs %s",
               hg_rest.base, theirs.len ? hg_buf_str(&theirs) : "no version of Slurm's API",
               hg_rest.config.api ? hg_rest.config.api : hg_buf_str(&ours));
    hg_buf_done(&theirs);
    hg_buf_done(&ours);
    return -1;
}

static int choose_version(struct hg_agent_call *call, const json_t *root)
{
    const char *chosen = NULL;

    for (const char *const *v = hg_rest_versions; *v && !chosen; v++)
        if ((!hg_rest.config.api || strcmp(hg_rest.config.api, *v) == 0) &&
            path_of(root, "slurm", *v, "/job/submit"))
            chosen = *v;
    if (!chosen || !find_members(root, chosen))
        return no_version(call, root);
    snprintf(hg_rest.api, sizeof hg_rest.api, "%s", chosen);
    hg_rest.plain = strcmp(chosen, "v0.0.38") == 0;
    hg_rest.kills_lists = json_object_get(path_of(root, "slurm", chosen, "/jobs/"), "delete") ||
                          json_object_get(path_of(root, "slurm", chosen, "/jobs"), "delete");
    json_decref(hg_rest.members);
    hg_rest.members = json_incref(find_members(root, chosen));
    hg_rest.has_accounts =
        path_of(root, "slurmdb", chosen, "/jobs") || path_of(root, "slurmdb", chosen, "/jobs/");
    return 0;
}

/* "meta" of every answer has Slurm's version, and in newer ones its cluster and where accounts go. */
static void learn(const json_t *answer)
{
    const json_t *meta = json_object_get(answer, "meta"), *slurm = json_object_get(meta, "slurm");
    const char *store =
        json_string_value(json_object_get(json_object_get(meta, "plugin"), "accounting_storage"));

    if (!slurm)
        slurm = json_object_get(meta, "Slurm");
    snprintf(hg_rest.release, sizeof hg_rest.release, "%s",
             hg_rest_text(json_object_get(slurm, "release")));
    snprintf(hg_rest.cluster, sizeof hg_rest.cluster, "%s",
             hg_rest_text(json_object_get(slurm, "cluster")));
    if (store && !strstr(store, "slurmdbd"))
        hg_rest.has_accounts = false;
}

/* Does it let us in, and does it reach its slurmctld? Known before the first submission, a wrong token is no
 * riddle there. */
static int try_it(struct hg_agent_call *call)
{
    json_t *answer;

    if (hg_rest_get(call, HG_REST_SLURM, "/partitions", "cannot ask slurmctld", &answer) < 0) {
        call->err.code = HG_E_ENV;
        return -1;
    }
    learn(answer);
    json_decref(answer);
    return 0;
}

int hg_rest_ready(struct hg_agent_call *call)
{
    json_t *root = NULL;

    hg_rest_start_clock();
    if (hg_rest.known)
        return 0;
    if (!hg_rest.base) {
        hg_err_set(&call->err, HG_E_ENV, "no URL of a slurmrestd");
        return hg_err_hint(&call->err, "write \"rest\": {\"url\": \"http://HOST:6820\"} in the "
                                       "site, or set SLURMRESTD_URL");
    }
    if (hg_rest_ask(call, "GET", HG_REST_OTHER, "/openapi/v3", NULL, &root) == 0 &&
        choose_version(call, root) == 0 && try_it(call) == 0)
        hg_rest.known = true;
    json_decref(root);
    return hg_rest.known ? 0 : -1;
}
