/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions and nodes, as one of the versions writes them. */
#include "slurm/rest/lists.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "slurm/rest/ask.h"
#include "slurm/rest/server.h"
#include "slurm/rest/values.h"

/* The first of two places that has something; parts of a path are separated by dots. */
static const json_t *find(const json_t *object, const char *path)
{
    char part[64];

    while (object && *path) {
        size_t n = strcspn(path, ".");

        snprintf(part, sizeof part, "%.*s", (int)n, path);
        object = json_object_get(object, part);
        path += n + (path[n] == '.');
    }
    return object;
}

static const json_t *either(const json_t *object, const char *plain, const char *newer)
{
    return find(object, hg_rest.plain ? plain : newer);
}

static json_t *text(const json_t *object, const char *plain, const char *newer)
{
    return hg_agent_text(hg_rest_text(either(object, plain, newer)));
}

static json_t *minutes_to_s(const json_t *value)
{
    json_int_t minutes = hg_rest_number(value, -1);

    return minutes < 0 ? json_null() : json_integer(minutes * 60);
}

static json_t *count(const json_t *value)
{
    json_int_t n = hg_rest_number(value, -1);

    return n < 0 ? json_null() : json_integer(n);
}

/* "default" is null where slurmrestd does not show it (since v0.0.40). */
static json_t *encode_partition(const json_t *p)
{
    const json_t *flags = find(p, "flags");
    json_t *o = json_object();

    json_object_set_new(o, "name", text(p, "name", "name"));
    json_object_set_new(o, "default",
                        flags ? json_boolean(hg_rest_has(flags, "default")) : json_null());
    json_object_set_new(o, "up",
                        json_boolean(hg_rest_has(either(p, "state", "partition.state"), "UP")));
    json_object_set_new(o, "max_time_s",
                        minutes_to_s(either(p, "max_time_limit", "maximums.time")));
    json_object_set_new(o, "default_time_s",
                        minutes_to_s(either(p, "default_time_limit", "defaults.time")));
    json_object_set_new(o, "max_nodes",
                        count(either(p, "maximum_nodes_per_job", "maximums.nodes")));
    json_object_set_new(o, "nodes", text(p, "nodes", "nodes.configured"));
    json_object_set_new(o, "total_nodes", count(either(p, "total_nodes", "nodes.total")));
    json_object_set_new(o, "total_cpus", count(either(p, "total_cpus", "cpus.total")));
    json_object_set_new(o, "allow_accounts", text(p, "allowed_accounts", "accounts.allowed"));
    json_object_set_new(o, "allow_qos", text(p, "allowed_qos", "qos.allowed"));
    return o;
}

static void add_words(struct hg_buf *out, const json_t *value, const char *separator)
{
    const json_t *item;
    size_t i;

    if (!json_is_array(value) && *hg_rest_text(value))
        hg_buf_printf(out, "%s%s", out->len ? separator : "", hg_rest_text(value));
    json_array_foreach(value, i, item)
        hg_buf_printf(out, "%s%s", out->len ? separator : "", hg_rest_text(item));
}

/* "DOWN+DRAIN": the state, then its flags. */
static json_t *node_state(const json_t *n)
{
    struct hg_buf words = HG_BUF_INIT;
    json_t *value;

    add_words(&words, find(n, "state"), "+");
    add_words(&words, find(n, "state_flags"), "+");
    for (size_t i = 0; i < words.len; i++)
        words.data[i] = (char)toupper((unsigned char)words.data[i]);
    value = hg_agent_text(hg_buf_str(&words));
    hg_buf_done(&words);
    return value;
}

static json_t *joined(const json_t *list)
{
    struct hg_buf words = HG_BUF_INIT;
    json_t *value;

    add_words(&words, list, ",");
    value = hg_agent_text(hg_buf_str(&words));
    hg_buf_done(&words);
    return value;
}

static json_t *encode_node(const json_t *n)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", text(n, "name", "name"));
    json_object_set_new(o, "state", node_state(n));
    json_object_set_new(o, "reason", text(n, "reason", "reason"));
    json_object_set_new(o, "cpus", count(find(n, "cpus")));
    json_object_set_new(o, "mem_mib", count(find(n, "real_memory")));
    json_object_set_new(o, "gres", text(n, "gres", "gres"));
    json_object_set_new(o, "features", joined(find(n, "features")));
    json_object_set_new(o, "version", text(n, "slurmd_version", "version"));
    return o;
}

static json_t *encode_account(const json_t *a)
{
    return json_pack("{s:o, s:o, s:o, s:b}", "cluster", text(a, "cluster", "cluster"), "account",
                     text(a, "account", "account"), "qos", text(a, "default.qos", "default.qos"),
                     "default", json_is_true(json_object_get(a, "is_default")));
}

static int list(struct hg_agent_call *call, enum hg_rest_area area, const char *path,
                const char *what, json_t *all, json_t *(*encode)(const json_t *item))
{
    char name[32];
    json_t *answer;
    const json_t *item;
    size_t i;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(path + 1, "?"), path + 1);
    if (hg_rest_get(call, area, path, what, &answer) < 0)
        return -1;
    json_array_foreach(json_object_get(answer, name), i, item)
        json_array_append_new(all, encode(item));
    json_decref(answer);
    return 0;
}

int hg_rest_partitions(struct hg_agent_call *call, json_t *all)
{
    return list(call, HG_REST_SLURM, "/partitions", "cannot list partitions", all,
                encode_partition);
}

int hg_rest_nodes(struct hg_agent_call *call, json_t *all)
{
    return list(call, HG_REST_SLURM, "/nodes", "cannot list nodes", all, encode_node);
}

int hg_rest_accounts(struct hg_agent_call *call, const char *user, json_t *all)
{
    char path[192];

    if (!hg_text_is_name(user))
        return 0;
    snprintf(path, sizeof path, "/associations?user=%s", user);
    return list(call, HG_REST_DATABASE, path, "cannot read the user's accounts", all,
                encode_account);
}
