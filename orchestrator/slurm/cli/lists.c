/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions and nodes as scontrol prints them, accounts as sacctmgr does. */
#include "slurm/cli/lists.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "slurm/cli/run.h"

/* The value of KEY=VALUE in one line of `scontrol -o`, up to the next blank; "" if absent or "(null)". */
static const char *member(const char *line, const char *key, struct hg_buf *out)
{
    size_t n = strlen(key);

    hg_buf_clear(out);
    for (const char *p = line; (p = strstr(p, key)); p += n)
        if ((p == line || p[-1] == ' ') && p[n] == '=') {
            hg_buf_append(out, p + n + 1, strcspn(p + n + 1, " \n"));
            break;
        }
    if (strcmp(hg_buf_str(out), "(null)") == 0)
        hg_buf_clear(out);
    return hg_buf_str(out);
}

static json_t *text_of(const char *line, const char *key, struct hg_buf *scratch)
{
    return hg_agent_text(member(line, key, scratch));
}

static json_t *number_of(const char *line, const char *key, struct hg_buf *scratch)
{
    return json_integer(strtoll(member(line, key, scratch), NULL, 10));
}

/* "1-02:03:04", "02:03:04"; null for UNLIMITED and NONE */
static json_t *seconds_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch), *clock = strchr(text, '-');
    long long days = clock ? strtoll(text, NULL, 10) : 0, h = 0, m = 0, s = 0;

    if (sscanf(clock ? clock + 1 : text, "%lld:%lld:%lld", &h, &m, &s) != 3)
        return json_null();
    return json_integer(days * 86400 + h * 3600 + m * 60 + s);
}

static json_t *limit_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch);

    return isdigit((unsigned char)*text) ? json_integer(strtoll(text, NULL, 10)) : json_null();
}

/* "" for ALL */
static json_t *list_of(const char *line, const char *key, struct hg_buf *scratch)
{
    const char *text = member(line, key, scratch);

    return hg_agent_text(strcmp(text, "ALL") == 0 ? "" : text);
}

static json_t *encode_partition(const char *line, struct hg_buf *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", text_of(line, "PartitionName", t));
    json_object_set_new(o, "default", json_boolean(strcmp(member(line, "Default", t), "YES") == 0));
    json_object_set_new(o, "up", json_boolean(strcmp(member(line, "State", t), "UP") == 0));
    json_object_set_new(o, "max_time_s", seconds_of(line, "MaxTime", t));
    json_object_set_new(o, "default_time_s", seconds_of(line, "DefaultTime", t));
    json_object_set_new(o, "max_nodes", limit_of(line, "MaxNodes", t));
    json_object_set_new(o, "nodes", text_of(line, "Nodes", t));
    json_object_set_new(o, "total_nodes", number_of(line, "TotalNodes", t));
    json_object_set_new(o, "total_cpus", number_of(line, "TotalCPUs", t));
    json_object_set_new(o, "allow_accounts", list_of(line, "AllowAccounts", t));
    json_object_set_new(o, "allow_qos", list_of(line, "AllowQos", t));
    return o;
}

/* "Reason=fan is loud [root@2026-11-22T06:00:00]", the last but the comment */
static json_t *reason_of(const char *line)
{
    const char *at = strstr(line, " Reason="), *end = at ? strstr(at, " [") : NULL;
    char *text;
    json_t *reason;

    if (!at)
        return json_string("");
    at += strlen(" Reason=");
    text = hg_strndup(at, end ? (size_t)(end - at) : strlen(at));
    reason = hg_agent_text(text);
    free(text);
    return reason;
}

static json_t *encode_node(const char *line, struct hg_buf *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", text_of(line, "NodeName", t));
    json_object_set_new(o, "state", text_of(line, "State", t));
    json_object_set_new(o, "reason", reason_of(line));
    json_object_set_new(o, "cpus", number_of(line, "CPUTot", t));
    json_object_set_new(o, "mem_mib", number_of(line, "RealMemory", t));
    json_object_set_new(o, "gres", text_of(line, "Gres", t));
    json_object_set_new(o, "features", text_of(line, "AvailableFeatures", t));
    json_object_set_new(o, "version", text_of(line, "Version", t));
    return o;
}

/* `scontrol show WHAT`: one line for each. */
static int list(struct hg_agent_call *call, const char *what, json_t *all,
                json_t *(*encode)(const char *line, struct hg_buf *scratch))
{
    struct hg_buf scratch = HG_BUF_INIT;
    struct hg_agent_said said;
    char *save = NULL;
    int rc = hg_agent_run_well(
        call, (const char *const[]){ "scontrol", "-a", "-o", "show", what, NULL }, &said, what);

    for (char *line = rc == 0 && said.out.len ? strtok_r(said.out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "Name="))
            json_array_append_new(all, encode(line, &scratch));
    hg_buf_done(&scratch);
    hg_agent_said_done(&said);
    return rc;
}

int hg_agent_partitions(struct hg_agent_call *call, json_t *all)
{
    return list(call, "partition", all, encode_partition);
}

int hg_agent_nodes(struct hg_agent_call *call, json_t *all)
{
    return list(call, "node", all, encode_node);
}

/* "DEFAULT ACCOUNT|CLUSTER|ACCOUNT|DEFAULT QOS" */
static json_t *encode_account(char *line)
{
    const char *words[4] = { "", "", "", "" };

    for (size_t i = 0; line && i < 4; i++)
        words[i] = strsep(&line, "|");
    return json_pack("{s:o, s:o, s:o, s:b}", "cluster", hg_agent_text(words[1]), "account",
                     hg_agent_text(words[2]), "qos", hg_agent_text(words[3]), "default",
                     strcmp(words[0], words[2]) == 0);
}

int hg_agent_accounts(struct hg_agent_call *call, const char *user, json_t *all)
{
    struct hg_agent_said said;
    char *save = NULL;
    int rc = hg_agent_run_well(
        call,
        (const char *const[]){ "sacctmgr", "-n", "-P", "show", "user", user, "withassoc",
                               "format=defaultaccount,cluster,account,defaultqos", NULL },
        &said, "cannot read the user's accounts");

    for (char *line = rc == 0 && said.out.len ? strtok_r(said.out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        json_array_append_new(all, encode_account(line));
    hg_agent_said_done(&said);
    return rc;
}
