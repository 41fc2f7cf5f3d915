/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/common/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define INDEX_MAX 4000001L /* no Slurm takes more */

bool hg_agent_find_key(const char *text, char key[static HG_AGENT_KEY_DIGITS + 1])
{
    for (const char *p = text; p && (p = strstr(p, "hg-")); p++)
        if (strspn(p + 3, "0123456789abcdef") == HG_AGENT_KEY_DIGITS) {
            snprintf(key, HG_AGENT_KEY_DIGITS + 1, "%.*s", HG_AGENT_KEY_DIGITS, p + 3);
            return true;
        }
    return false;
}

bool hg_agent_plain_set(const char *text, struct hg_buf *out)
{
    for (const char *p = text; *p && *p != '%';) {
        long first, last, step = 1;
        char *end;

        if (*p == '[' || *p == ']' || *p == ',') {
            p++;
            continue;
        }
        first = last = strtol(p, &end, 10);
        if (end == p)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        if (first < 0 || last < first || last > INDEX_MAX || step < 1)
            return false;
        if (step == 1 && last > first)
            hg_buf_printf(out, "%s%ld-%ld", out->len ? "," : "", first, last);
        else
            for (long i = first; i <= last; i += step)
                hg_buf_printf(out, "%s%ld", out->len ? "," : "", i);
        p = end;
    }
    return true;
}

static void add(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
}

/* States from which a job goes on. */
static bool has_ended(const char *state)
{
    return strcmp(state, "PENDING") != 0 && strcmp(state, "RUNNING") != 0 &&
           strcmp(state, "SUSPENDED") != 0;
}

json_t *hg_agent_record_encode(const struct hg_agent_record *r)
{
    bool ended = has_ended(r->state), started = strcmp(r->state, "PENDING") != 0;
    json_t *o = json_object();

    add(o, "key", json_string(r->key));
    add(o, "job_id", json_integer(r->job_id));
    add(o, "tasks", json_string(r->tasks));
    add(o, "state", json_string(r->state));
    add(o, "reason", hg_agent_text(r->reason));
    add(o, "nodes", hg_agent_text(r->nodes));
    add(o, "restarts", json_integer(r->restarts));
    add(o, "exit_status", json_integer(ended ? r->exit_status : 0));
    add(o, "submit_s", json_integer(r->submit));
    add(o, "start_s", json_integer(started ? r->start : 0));
    add(o, "end_s", json_integer(ended ? r->end : 0));
    return o;
}

json_t *hg_agent_wanted_keys(const json_t *request)
{
    json_t *list = json_object_get(request, "keys"), *set = json_object(), *key;
    size_t i;

    json_array_foreach(list, i, key)
        if (json_is_string(key))
            json_object_set_new(set, json_string_value(key), json_true());
    return set;
}

void hg_agent_keep_latest(json_t *latest, const char *id, json_t *record)
{
    json_t *other = json_object_get(latest, id), *first = record, *second = other;

    if (!other) {
        json_object_set_new(latest, id, record);
        return;
    }
    if (json_integer_value(json_object_get(other, "submit_s")) <=
        json_integer_value(json_object_get(record, "submit_s"))) {
        first = other;
        second = record;
    }
    json_object_set_new(second, "restarts",
                        json_integer(json_integer_value(json_object_get(first, "restarts")) + 1));
    if (second == record)
        json_object_set_new(latest, id, record);
    else
        json_decref(record);
}
